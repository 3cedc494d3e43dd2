/* Answers a question about a batch: what is the value of the pieces sold below a price? One pass, no temporary arrays.
 *
 * cc expressions.c $(pkg-config --cflags --libs bowstring) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bowstring.h"

static void check(enum BowstringStatus status, int line) {
  if (status == BOWSTRING_STATUS_OK) return;
  fprintf(stderr, "line %d: status %d: %s\n", line, (int)status, bowstring_last_error());
  exit(1);
}
#define CHECK(call) check(call, __LINE__)

/* A producer: a batch of two columns that live as long as the program. */
static void release_array(struct ArrowArray* array) { array->release = NULL; }
static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static const int32_t pieces[] = {3, 100, 7, 2000000000};
static const double prices[] = {9.5, 1.25, 0.5, 20};

static struct BowstringBatch* import(const struct BowstringDevice* device) {
  static const void *first[] = {NULL, pieces}, *second[] = {NULL, prices}, *none[] = {NULL};
  static struct ArrowArray columns[2];
  static struct ArrowArray* children[] = {&columns[0], &columns[1]};
  static struct ArrowSchema fields[2];
  static struct ArrowSchema* types[] = {&fields[0], &fields[1]};
  for (int i = 0; i < 2; i++) {
    columns[i].length = 4;
    columns[i].n_buffers = 2;
    columns[i].buffers = i == 0 ? first : second;
    columns[i].release = release_array;
    fields[i].format = i == 0 ? "i" : "g";
    fields[i].name = i == 0 ? "pieces" : "price";
    fields[i].flags = ARROW_FLAG_NULLABLE;
    fields[i].release = release_schema;
  }
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  memset(&array, 0, sizeof array);
  memset(&schema, 0, sizeof schema);
  array.array.length = 4;
  array.array.n_buffers = 1;
  array.array.buffers = none;
  array.array.n_children = 2;
  array.array.children = children;
  array.array.release = release_array;
  array.device_id = -1;
  array.device_type = ARROW_DEVICE_CPU;
  schema.format = "+s";
  schema.name = "";
  schema.n_children = 2;
  schema.children = types;
  schema.release = release_schema;
  struct BowstringBatch* batch;
  CHECK(bowstring_batch_import(device, &array, &schema, &batch));
  return batch;
}

static struct BowstringExpr* column(const char* name) {
  struct BowstringExpr* made;
  CHECK(bowstring_expr_column(name, &made));
  return made;
}

/* Frees the expressions that it is made of. */
static struct BowstringExpr* binary(enum BowstringBinary op, struct BowstringExpr* a, struct BowstringExpr* b) {
  struct BowstringExpr* made;
  CHECK(bowstring_expr_binary((int32_t)op, a, b, &made));
  bowstring_expr_free(a);
  bowstring_expr_free(b);
  return made;
}

int main(void) {
  struct BowstringDevice* device;
  struct BowstringStream* stream;
  CHECK(bowstring_device_open(ARROW_DEVICE_CPU, -1, &device));
  CHECK(bowstring_stream_new(device, &stream));
  struct BowstringBatch* batch = import(device);

  struct BowstringExpr *ten, *twice;
  CHECK(bowstring_expr_double(10, &ten));
  struct BowstringExpr* cheap = binary(BOWSTRING_BINARY_LT, column("price"), ten);
  const char* text;
  CHECK(bowstring_expr_to_string(cheap, &text));
  printf("where %s\n", text);

  struct BowstringBatch *kept, *row, *nothing = NULL;
  uint64_t rows;
  CHECK(bowstring_filter_where(batch, cheap, NULL, stream, &kept));
  CHECK(bowstring_batch_length(kept, &rows));
  printf("rows: %" PRIu64 "\n", rows);

  struct BowstringExpr* sold = column("pieces");
  struct BowstringAggregate aggregates[2] = {{0}, {0}};
  aggregates[0].function = BOWSTRING_FUNCTION_COUNT_ALL;
  aggregates[1].function = BOWSTRING_FUNCTION_SUM;
  aggregates[1].of = sold;
  CHECK(bowstring_aggregate(batch, aggregates, 2, cheap, NULL, stream, &row));
  for (uint64_t i = 0; i < 2; i++) {
    struct BowstringArray* array;
    struct ArrowDeviceArray value;
    struct ArrowSchema type;
    CHECK(bowstring_batch_column(row, i, &array));
    CHECK(bowstring_array_export(array, &value, &type));
    printf("%s: %" PRId64 "\n", type.name, ((const int64_t*)value.array.buffers[1])[value.array.offset]);
    value.array.release(&value.array);
    type.release(&type);
    bowstring_array_free(array);
  }

  /* An overflow is an error that names its row, or a null. */
  CHECK(bowstring_expr_clone(sold, &twice));
  twice = binary(BOWSTRING_BINARY_ADD, twice, sold);
  const struct BowstringExpr* exprs[] = {twice};
  enum BowstringStatus status = bowstring_evaluate(batch, exprs, 1, NULL, stream, &nothing);
  printf("status %d: %s\n", (int)status, bowstring_last_error());
  if (status != BOWSTRING_STATUS_EVALUATION || nothing) return 1;
  struct BowstringExprOptions options = {0};
  options.size = sizeof options;
  options.overflow = 2;
  struct BowstringBatch* doubled;
  CHECK(bowstring_evaluate(batch, exprs, 1, &options, stream, &doubled));
  uint64_t nulls;
  CHECK(bowstring_null_count_batch(doubled, stream, 1, &nulls));
  printf("nulls: %" PRIu64 "\n", nulls);

  bowstring_batch_free(doubled);
  bowstring_batch_free(row);
  bowstring_batch_free(kept);
  bowstring_batch_free(batch);
  bowstring_expr_free(twice);
  bowstring_expr_free(cheap);
  bowstring_stream_free(stream);
  bowstring_device_free(device);
  return 0;
}

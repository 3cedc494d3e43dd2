/* Filters, takes and casts an array over the Arrow C device data interface, like a C or C++ engine.
 *
 * cc filter.c $(pkg-config --cflags --libs bowstring) */
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

/* A producer of arrays in this program's memory; it counts their releases. */
static int released = 0;

static void release_array(struct ArrowArray* array) {
  free(array->private_data);
  array->release = NULL;
  released++;
}

static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static struct ArrowSchema schema_of(const char* format) {
  struct ArrowSchema schema = {0};
  schema.format = format;
  schema.name = "x";
  schema.flags = ARROW_FLAG_NULLABLE;
  schema.release = release_schema;
  return schema;
}

static struct BowstringArray* import(const struct BowstringDevice* device, int64_t length, const void* validity,
                                     const void* values, const char* format) {
  const void** buffers = (const void**)malloc(2 * sizeof *buffers);
  buffers[0] = validity;
  buffers[1] = values;
  struct ArrowDeviceArray array;
  memset(&array, 0, sizeof array);
  array.array.length = length;
  array.array.null_count = validity ? -1 : 0;
  array.array.n_buffers = 2;
  array.array.buffers = buffers;
  array.array.release = release_array;
  array.array.private_data = (void*)buffers;
  array.device_id = -1;
  array.device_type = ARROW_DEVICE_CPU;
  struct ArrowSchema schema = schema_of(format);
  struct BowstringArray* handle;
  CHECK(bowstring_array_import(device, &array, &schema, &handle));
  if (array.array.release) abort(); /* it was moved */
  schema.release(&schema);
  return handle;
}

static void print(const char* what, const struct BowstringArray* handle) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  CHECK(bowstring_array_export(handle, &array, &schema));
  const unsigned char* validity = (const unsigned char*)array.array.buffers[0];
  printf("%s:", what);
  for (int64_t i = 0; i < array.array.length; i++) {
    int64_t at = i + array.array.offset;
    if (validity && !(validity[at / 8] >> (at % 8) & 1)) {
      printf(" null");
    } else if (schema.format[0] == 'i') {
      printf(" %" PRId32, ((const int32_t*)array.array.buffers[1])[at]);
    } else {
      printf(" %g", ((const double*)array.array.buffers[1])[at]);
    }
  }
  printf("\n");
  array.array.release(&array.array);
  schema.release(&schema);
}

int main(void) {
  static const int32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const unsigned char valid[] = {0xfb}, keep[] = {0xd6}; /* the third is null; keep rows 1, 2, 4, 6, 7 */
  static const int64_t at[] = {7, 0, 2};

  struct BowstringDevice* device;
  struct BowstringStream* stream;
  CHECK(bowstring_device_open(ARROW_DEVICE_CPU, -1, &device));
  CHECK(bowstring_stream_new(device, &stream));
  struct BowstringArray* values = import(device, 8, valid, numbers, "i");
  struct BowstringArray* mask = import(device, 8, NULL, keep, "b");
  struct BowstringArray* indices = import(device, 3, NULL, at, "l");
  print("values", values);

  struct BowstringArray *kept, *taken, *doubles;
  CHECK(bowstring_filter(values, mask, stream, &kept));
  print("filter", kept);
  CHECK(bowstring_take(values, indices, NULL, stream, &taken));
  print("take", taken);
  struct ArrowSchema to = schema_of("g");
  CHECK(bowstring_cast(values, &to, NULL, stream, &doubles));
  print("cast", doubles);
  uint64_t nulls;
  CHECK(bowstring_null_count(values, stream, &nulls));
  printf("nulls: %" PRIu64 "\n", nulls);

  /* A failed call reports its reason, and changes nothing. */
  struct BowstringArray* nothing = NULL;
  enum BowstringStatus status = bowstring_filter(values, indices, stream, &nothing);
  printf("a mask of numbers: status %d, %s\n", (int)status, bowstring_last_error());
  if (status != BOWSTRING_STATUS_INVALID || nothing) return 1;
  struct BowstringArray *five, *nulled;
  CHECK(bowstring_array_slice(values, 0, 5, &five));
  status = bowstring_take(five, indices, NULL, stream, &nothing);
  printf("an index too far: status %d, %s\n", (int)status, bowstring_last_error());
  if (status != BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS || nothing) return 1;
  struct BowstringTakeOptions options = {0};
  options.size = sizeof options;
  options.out_of_bounds_is_null = 1;
  CHECK(bowstring_take(five, indices, &options, stream, &nulled));
  print("as null", nulled);

  bowstring_array_free(nulled);
  bowstring_array_free(five);
  bowstring_array_free(doubles);
  bowstring_array_free(taken);
  bowstring_array_free(kept);
  bowstring_array_free(indices);
  bowstring_array_free(mask);
  bowstring_array_free(values);
  bowstring_stream_free(stream);
  bowstring_device_free(device);
  printf("released: %d of 3\n", released);
  return released == 3 ? 0 : 1;
}

/* A hand-written producer of asynchronous device streams, for C and C++. It sends batches of one column of
 * numbers, with the number of each as its metadata, and records the requests that it gets and the fate of the
 * batches. It sends as many batches as the test says, regardless of the requests. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 3

struct Sent {
  int requested, requests, cancels, extracted, discarded, released;
};

struct Producer {
  struct ArrowAsyncProducer asked; /* The first member: `request` and `cancel` get a pointer to it. */
  struct ArrowAsyncDeviceStreamHandler* handler;
  struct Sent sent;
};

/* One pair in the encoding of ArrowSchema.metadata. */
static void producer_pair(char out[64], const char* key, const char* value) {
  const char* texts[2] = {key, value};
  int32_t count = 1;
  memcpy(out, &count, 4);
  out += 4;
  for (int i = 0; i < 2; i++) {
    int32_t length = (int32_t)strlen(texts[i]);
    memcpy(out, &length, 4);
    memcpy(out + 4, texts[i], (size_t)length);
    out += 4 + length;
  }
}

static void producer_request(struct ArrowAsyncProducer* self, int64_t n) {
  struct Producer* producer = (struct Producer*)self;
  producer->sent.requested += (int)n;
  producer->sent.requests++;
}

static void producer_cancel(struct ArrowAsyncProducer* self) { ((struct Producer*)self)->sent.cancels++; }

struct Rows {
  struct ArrowArray column, *columns[1];
  const void* buffers[2];
  const void* no_buffers[1];
  int32_t numbers[ROWS];
  struct Sent* sent;
  int left; /* the struct and its child; either may be released last */
};

static void producer_let_go(struct ArrowArray* array) {
  struct Rows* rows = (struct Rows*)array->private_data;
  array->release = NULL;
  if (--rows->left == 0) {
    rows->sent->released++;
    free(rows);
  }
}

static void producer_release(struct ArrowArray* array) {
  struct Rows* rows = (struct Rows*)array->private_data;
  if (rows->column.release) rows->column.release(&rows->column);
  producer_let_go(array);
}

static void producer_array(struct Sent* sent, int number, struct ArrowDeviceArray* out) {
  struct Rows* rows = (struct Rows*)calloc(1, sizeof *rows);
  memset(out, 0, sizeof *out);
  for (int i = 0; i < ROWS; i++) rows->numbers[i] = number * ROWS + i;
  rows->sent = sent;
  rows->left = 2;
  rows->buffers[1] = rows->numbers;
  rows->columns[0] = &rows->column;
  rows->column.length = ROWS;
  rows->column.n_buffers = 2;
  rows->column.buffers = rows->buffers;
  rows->column.release = producer_let_go;
  rows->column.private_data = rows;
  out->array.length = ROWS;
  out->array.n_buffers = 1;
  out->array.buffers = rows->no_buffers;
  out->array.n_children = 1;
  out->array.children = rows->columns;
  out->array.release = producer_release;
  out->array.private_data = rows;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
}

struct Task {
  struct Sent* sent;
  int number;
};

static int producer_extract(struct ArrowAsyncTask* task, struct ArrowDeviceArray* out) {
  struct Task* made = (struct Task*)task->private_data;
  if (!made) abort(); /* a second time */
  if (out) {
    made->sent->extracted++;
    producer_array(made->sent, made->number, out);
  } else {
    made->sent->discarded++;
  }
  free(made);
  task->private_data = NULL;
  return 0;
}

static void producer_no_schema(struct ArrowSchema* schema) { schema->release = NULL; }

/* Sends the schema, `struct<n: int32>`, and the stream's metadata "ours". Returns what the handler returned. */
static int producer_begin(struct Producer* producer, struct ArrowAsyncDeviceStreamHandler* handler) {
  static char words[64];
  static struct ArrowSchema field, *fields[1];
  struct ArrowSchema schema;
  memset(producer, 0, sizeof *producer);
  memset(&schema, 0, sizeof schema);
  memset(&field, 0, sizeof field);
  producer_pair(words, "stream", "ours");
  producer->handler = handler;
  producer->asked.device_type = ARROW_DEVICE_CPU;
  producer->asked.request = producer_request;
  producer->asked.cancel = producer_cancel;
  producer->asked.additional_metadata = words;
  field.format = "i";
  field.name = "n";
  field.flags = ARROW_FLAG_NULLABLE;
  field.release = producer_no_schema;
  fields[0] = &field;
  schema.format = "+s";
  schema.name = "";
  schema.n_children = 1;
  schema.children = fields;
  schema.release = producer_no_schema;
  handler->producer = &producer->asked;
  return handler->on_schema(handler, &schema);
}

/* Sends batch `number`, requested or not. Returns what the handler returned. */
static int producer_send(struct Producer* producer, int number) {
  char words[64], text[16];
  struct ArrowAsyncTask task;
  struct Task* made = (struct Task*)malloc(sizeof *made);
  made->sent = &producer->sent;
  made->number = number;
  task.extract_data = producer_extract;
  task.private_data = made;
  text[0] = (char)('0' + number % 10);
  text[1] = 0;
  producer_pair(words, "batch", text);
  return producer->handler->on_next_task(producer->handler, &task, words);
}

static void producer_end(struct Producer* producer) {
  producer->handler->on_next_task(producer->handler, NULL, NULL);
  producer->handler->release(producer->handler);
}

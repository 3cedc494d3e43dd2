/* A function that moves many bytes asks its thread's callback, and ends when that says so: at once, or in the middle.
 * Its inputs are unchanged. Without a callback it asks nothing. */

#include "bowstring.h"

#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A row of a megabyte, which is taken many times. */
#define WIDTH "1048576"
#define ROWS 64

static uint8_t bytes[1 << 20];
static int32_t indices[ROWS];

static void release_array(struct ArrowArray* array) { array->release = NULL; }
static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static struct BowstringArray* import(const struct BowstringDevice* device, int64_t rows, const char* format,
                                     const void* memory) {
  const void* buffers[2] = {NULL, memory};
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  struct BowstringArray* handle = NULL;
  memset(&array, 0, sizeof array);
  memset(&schema, 0, sizeof schema);
  array.array.length = rows;
  array.array.n_buffers = 2;
  array.array.buffers = buffers;
  array.array.release = release_array;
  array.device_id = -1;
  array.device_type = ARROW_DEVICE_CPU;
  schema.format = format;
  schema.name = "x";
  schema.release = release_schema;
  bowstring_array_import(device, &array, &schema, &handle);
  return handle;
}

/* Ends the current work after a number of questions. */
struct Deadline {
  int asked, most;
  const struct BowstringArray *row, *again;
  const struct BowstringStream* stream;
};

static int32_t is_over(void* data) {
  struct Deadline* deadline = (struct Deadline*)data;
  struct BowstringArray* taken = NULL;
  /* A function called inside the callback asks nothing. */
  if (bowstring_take(deadline->row, deadline->again, NULL, deadline->stream, &taken) != BOWSTRING_STATUS_OK) return 1;
  bowstring_array_free(taken);
  return deadline->asked++ == deadline->most;
}

static void* of_another_thread(void* data) {
  struct Deadline* deadline = (struct Deadline*)data;
  struct BowstringArray* taken = NULL;
  bowstring_take(deadline->row, deadline->again, NULL, deadline->stream, &taken);
  return taken;
}

/* A callback that removes itself is not asked again: what it is asked with may be gone. */
static int32_t asked_once(void* data) {
  ++*(int*)data;
  bowstring_set_interrupt(NULL, NULL, 0);
  return 0;
}

int main(void) {
  struct BowstringDevice* device;
  struct BowstringStream* stream;
  struct BowstringArray *row, *again, *taken = NULL;
  pthread_t thread;
  void* elsewhere;
  CHECK(bowstring_device_open(ARROW_DEVICE_CPU, -1, &device) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_stream_new(device, &stream) == BOWSTRING_STATUS_OK);
  CHECK((row = import(device, 1, "w:" WIDTH, bytes)) && (again = import(device, ROWS, "i", indices)));

  struct Deadline deadline = {0, 0, row, again, stream};
  CHECK(bowstring_set_interrupt(is_over, &deadline, 0) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_take(row, again, NULL, stream, &taken) == BOWSTRING_STATUS_INTERRUPTED);
  CHECK(deadline.asked == 1 && !taken && strstr(bowstring_last_error(), "interrupted"));
  deadline.asked = 0, deadline.most = 1;
  CHECK(bowstring_take(row, again, NULL, stream, &taken) == BOWSTRING_STATUS_INTERRUPTED);
  CHECK(deadline.asked == 2 && !taken);

  deadline.asked = 0, deadline.most = -1;
  CHECK(bowstring_take(row, again, NULL, stream, &taken) == BOWSTRING_STATUS_OK);
  CHECK(deadline.asked > 2);
  bowstring_array_free(taken);

  deadline.asked = 0, deadline.most = 0;
  CHECK(pthread_create(&thread, NULL, of_another_thread, &deadline) == 0 && pthread_join(thread, &elsewhere) == 0);
  CHECK(elsewhere && deadline.asked == 0);
  bowstring_array_free((struct BowstringArray*)elsewhere);

  CHECK(bowstring_set_interrupt(NULL, NULL, 0) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_take(row, again, NULL, stream, &taken) == BOWSTRING_STATUS_OK && deadline.asked == 0);
  bowstring_array_free(taken);

  int asked = 0;
  CHECK(bowstring_set_interrupt(asked_once, &asked, 0) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_take(row, again, NULL, stream, &taken) == BOWSTRING_STATUS_OK && asked == 1);
  bowstring_array_free(taken);

  /* This test exports nothing; it only sets the device's fence. */
  CHECK(bowstring_device_set_export_fence(device, 0) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_device_set_export_fence(device, 1) == BOWSTRING_STATUS_OK);

  bowstring_array_free(row);
  bowstring_array_free(again);
  bowstring_stream_free(stream);
  bowstring_device_free(device);
  printf("interrupted\n");
  return 0;
}

/* A producer in C that ignores the number of requested batches and floods our handler. Batches beyond that number are
 * released at once, exactly once, and the producer is cancelled once. The requested batches arrive with their
 * metadata, followed by an error. */

#include "bowstring.h"

#include "check.h"

#include "async_producer.h"

#include <stdio.h>

#define QUEUE 2
#define FLOOD 1000

int main(void) {
  struct BowstringDevice* device;
  struct ArrowAsyncDeviceStreamHandler* handler;
  struct BowstringAsyncBatches* async;
  struct BowstringBatches* batches;
  struct BowstringBatch *batch, *again;
  struct Producer producer;
  char expected[64];
  const char* said;
  CHECK(bowstring_device_open(ARROW_DEVICE_CPU, -1, &device) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_async_batches_new(device, QUEUE, &handler, &async) == BOWSTRING_STATUS_OK);
  CHECK(producer_begin(&producer, handler) == 0);
  CHECK(producer.sent.requested == QUEUE && producer.sent.requests == 1);

  for (int i = 0; i < QUEUE; i++) CHECK(producer_send(&producer, i) == 0);
  CHECK(producer.sent.discarded == 0 && producer.sent.cancels == 0);
  for (int i = 1; i <= FLOOD; i++) {
    CHECK(producer_send(&producer, QUEUE) == 0);
    CHECK(producer.sent.discarded == i && producer.sent.cancels == 1);
  }
  CHECK(producer.sent.extracted == 0);

  CHECK(bowstring_async_batches_metadata(async, &said) == BOWSTRING_STATUS_OK);
  producer_pair(expected, "stream", "ours");
  CHECK(said && memcmp(said, expected, 4 + 4 + 6 + 4 + 4) == 0);
  CHECK(bowstring_async_batches_wait(async, &batches) == BOWSTRING_STATUS_OK);
  CHECK(bowstring_async_batches_metadata(async, &said) == BOWSTRING_STATUS_INVALID);
  for (int i = 0; i < QUEUE; i++) {
    char number[2] = {(char)('0' + i), 0};
    uint64_t rows;
    CHECK(bowstring_batches_next(batches, &batch) == BOWSTRING_STATUS_OK && batch);
    CHECK(bowstring_batch_length(batch, &rows) == BOWSTRING_STATUS_OK && rows == ROWS);
    CHECK(bowstring_batch_metadata(batch, &said) == BOWSTRING_STATUS_OK);
    producer_pair(expected, "batch", number);
    CHECK(said && memcmp(said, expected, 4 + 4 + 5 + 4 + 1) == 0);
    CHECK(bowstring_batch_with_metadata(batch, NULL, &again) == BOWSTRING_STATUS_OK);
    bowstring_batch_free(batch);
    CHECK(bowstring_batch_metadata(again, &said) == BOWSTRING_STATUS_OK && said == NULL);
    bowstring_batch_free(again);
    CHECK(producer.sent.extracted == i + 1 && producer.sent.released == i + 1);
  }
  CHECK(bowstring_batches_next(batches, &batch) == BOWSTRING_STATUS_OUT_OF_SPEC);
  CHECK(strstr(bowstring_last_error(), "batch 3 of 2 requested"));
  CHECK(bowstring_batches_next(batches, &batch) == BOWSTRING_STATUS_OK && !batch);
  producer_end(&producer);
  bowstring_batches_free(batches);
  bowstring_async_batches_free(async);
  bowstring_device_free(device);
  CHECK(producer.sent.requests == 1 && producer.sent.cancels == 1);
  printf("sent: %d, kept: %d, let go of: %d\n", QUEUE + FLOOD, producer.sent.released, producer.sent.discarded);
  return 0;
}

// A stream of batches of Arrow C++, filtered by one of its columns: the program of docs/src/foreign.md. docs/check.sh
// compiles it against the Arrow C++ of a Python's pyarrow, and runs it.

// ANCHOR: arrow
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <cstdio>

#include "bowstring.h"

// Arrow's header defines Arrow's structs, bowstring's leaves them alone then.
static int fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  return 1;
}

int main() {
  arrow::Int64Builder numbers;
  arrow::BooleanBuilder odd;
  for (int i = 0; i < 10; i++) {
    if (!numbers.Append(i).ok() || !odd.Append(i % 2 == 1).ok()) return fail("no memory");
  }
  auto schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("odd", arrow::boolean())});
  auto batch = arrow::RecordBatch::Make(schema, 10, {*numbers.Finish(), *odd.Finish()});
  auto reader = *arrow::RecordBatchReader::Make({batch, batch}, schema);

  ArrowDeviceArrayStream theirs, ours;
  if (!arrow::ExportDeviceRecordBatchReader(reader, &theirs).ok()) return fail("not exported");

  BowstringDevice* device;
  BowstringStream* stream;
  BowstringBatches *batches, *kept;
  if (bowstring_device_open(ARROW_DEVICE_CPU, -1, &device) || bowstring_stream_new(device, &stream) ||
      bowstring_batches_import(device, &theirs, &batches) ||      // nothing is read yet
      bowstring_batches_filter_by(batches, 1, stream, &kept) ||  // the rows where column 1 is true
      bowstring_batches_export(kept, &ours)) {
    return fail(bowstring_last_error());
  }

  auto filtered = *arrow::ImportDeviceRecordBatchReader(&ours);
  auto table = *filtered->ToTable();  // now every batch is read and filtered
  std::printf("%lld rows\n", static_cast<long long>(table->num_rows()));

  bowstring_batches_free(kept);
  bowstring_batches_free(batches);
  bowstring_stream_free(stream);
  bowstring_device_free(device);
  return table->num_rows() == 10 ? 0 : fail("10 were expected");
}
// ANCHOR_END: arrow

// Asynchronous device streams with the Arrow C++ in pyarrow's wheel. It consumes our streams, we consume its streams,
// and its header and ours describe the same structs. `async_arrow.sh` compiles and runs this program.

#include <stddef.h>
#include <stdint.h>

// Includes our definitions in a namespace of their own, then Arrow's definitions of the same structs.
namespace ours {
#include "bowstring.h"
}
#undef ARROW_C_DATA_INTERFACE
#undef ARROW_C_DEVICE_DATA_INTERFACE
#undef ARROW_C_STREAM_INTERFACE
#undef ARROW_C_DEVICE_STREAM_INTERFACE
#undef ARROW_C_ASYNC_STREAM_INTERFACE

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/thread_pool.h>

#include "async_producer.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// The last number of each is the one that `host/ffi/async_stream.rs` asserts for the Rust struct.
#define SAME(type, member, at)                                                      \
  static_assert(offsetof(::type, member) == offsetof(ours::type, member));          \
  static_assert(offsetof(::type, member) == (at));                                  \
  static_assert(sizeof(::type::member) == sizeof(ours::type::member))
SAME(ArrowAsyncTask, extract_data, 0);
SAME(ArrowAsyncTask, private_data, 8);
SAME(ArrowAsyncProducer, device_type, 0);
SAME(ArrowAsyncProducer, request, 8);
SAME(ArrowAsyncProducer, cancel, 16);
SAME(ArrowAsyncProducer, additional_metadata, 24);
SAME(ArrowAsyncProducer, private_data, 32);
SAME(ArrowAsyncDeviceStreamHandler, on_schema, 0);
SAME(ArrowAsyncDeviceStreamHandler, on_next_task, 8);
SAME(ArrowAsyncDeviceStreamHandler, on_error, 16);
SAME(ArrowAsyncDeviceStreamHandler, release, 24);
SAME(ArrowAsyncDeviceStreamHandler, producer, 32);
SAME(ArrowAsyncDeviceStreamHandler, private_data, 40);
static_assert(sizeof(::ArrowAsyncTask) == 16 && sizeof(ours::ArrowAsyncTask) == 16);
static_assert(sizeof(::ArrowAsyncProducer) == 40 && sizeof(ours::ArrowAsyncProducer) == 40);
static_assert(sizeof(::ArrowAsyncDeviceStreamHandler) == 48 && sizeof(ours::ArrowAsyncDeviceStreamHandler) == 48);
static_assert(sizeof(::ArrowDeviceArray) == sizeof(ours::ArrowDeviceArray));
static_assert(sizeof(::ArrowSchema) == sizeof(ours::ArrowSchema));

#define CHECK(what)                                                          \
  do {                                                                       \
    if (!(what)) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);        \
      std::fprintf(stderr, "last error: %s\n", ours::bowstring_last_error()); \
      std::_Exit(1);                                                         \
    }                                                                        \
  } while (false)

namespace {

using Batch = std::shared_ptr<arrow::RecordBatch>;
using Generator = arrow::AsyncGenerator<Batch>;

template <typename T>
T get(arrow::Result<T> result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  CHECK(result.ok());
  return std::move(result).ValueUnsafe();
}

// Memory for a handler until it is released, which may be later than the last call that the consumer waits for.
::ArrowAsyncDeviceStreamHandler& new_handler() {
  static std::deque<::ArrowAsyncDeviceStreamHandler> handlers;
  return handlers.emplace_back();
}

// Batches of `rows` rows, with most features of the layouts, sliced out of a longer batch.
std::vector<Batch> samples(int n, int64_t rows) {
  arrow::Int64Builder numbers;
  arrow::BooleanBuilder odd;
  arrow::StringBuilder words;
  arrow::StringViewBuilder views;
  auto items = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), items);
  arrow::StringDictionaryBuilder keys;
  for (int64_t i = 0; i < n * rows; i++) {
    CHECK((i % 7 == 3 ? numbers.AppendNull() : numbers.Append(i)).ok());
    CHECK(odd.Append(i % 2 == 1).ok());
    CHECK((i % 5 == 1 ? words.AppendNull() : words.Append(std::string(i % 20, 'a' + i % 26))).ok());
    CHECK(views.Append(std::string(i % 40, 'k')).ok());
    CHECK(lists.Append().ok());
    for (int64_t j = 0; j < i % 4; j++) CHECK(items->Append(static_cast<int32_t>(j)).ok());
    CHECK(keys.Append(i % 3 == 0 ? "three" : "other").ok());
  }
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (arrow::ArrayBuilder* builder : std::vector<arrow::ArrayBuilder*>{&numbers, &odd, &words, &views, &lists, &keys})
    columns.push_back(get(builder->Finish()));
  std::vector<std::shared_ptr<arrow::Field>> fields;
  const char* names[] = {"n", "odd", "words", "views", "lists", "keys"};
  for (size_t i = 0; i < columns.size(); i++) fields.push_back(arrow::field(names[i], columns[i]->type()));
  Batch whole = arrow::RecordBatch::Make(arrow::schema(fields), n * rows, columns);
  std::vector<Batch> parts;
  for (int i = 0; i < n; i++) parts.push_back(whole->Slice(i * rows, rows));
  return parts;
}

// A reader that gives batches and then fails.
class Failing : public arrow::RecordBatchReader {
 public:
  explicit Failing(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return batches_[0]->schema(); }
  arrow::Status ReadNext(Batch* out) override {
    if (next_ == batches_.size()) return arrow::Status::IOError("the disk is on fire");
    *out = batches_[next_++];
    return arrow::Status::OK();
  }

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

struct Device {
  ours::BowstringDevice* handle = nullptr;
  Device() { CHECK(ours::bowstring_device_open(ARROW_DEVICE_CPU, -1, &handle) == ours::BOWSTRING_STATUS_OK); }
  ~Device() { ours::bowstring_device_free(handle); }
};

// Makes a stream of ours from an Arrow reader.
ours::BowstringBatches* import(const Device& device, std::shared_ptr<arrow::RecordBatchReader> reader) {
  ::ArrowDeviceArrayStream stream;
  CHECK(arrow::ExportDeviceRecordBatchReader(std::move(reader), &stream).ok());
  ours::BowstringBatches* batches = nullptr;
  CHECK(ours::bowstring_batches_import(device.handle, reinterpret_cast<ours::ArrowDeviceArrayStream*>(&stream),
                                       &batches) == ours::BOWSTRING_STATUS_OK);
  return batches;
}

// Sends our batches to a handler.
void send(ours::BowstringBatches* batches, ::ArrowAsyncDeviceStreamHandler* handler) {
  CHECK(ours::bowstring_batches_export_async(
            batches, nullptr, reinterpret_cast<ours::ArrowAsyncDeviceStreamHandler*>(handler)) == ours::BOWSTRING_STATUS_OK);
  ours::bowstring_batches_free(batches);
}

// Connects a handler of ours to an Arrow generator, which sends from its own thread.
struct Sender {
  ours::BowstringAsyncBatches* batches = nullptr;
  std::thread thread;
  arrow::Status outcome;

  Sender(const Device& device, uint64_t queue, std::shared_ptr<arrow::Schema> schema, Generator generator) {
    ours::ArrowAsyncDeviceStreamHandler* handler = nullptr;
    CHECK(ours::bowstring_async_batches_new(device.handle, queue, &handler, &batches) == ours::BOWSTRING_STATUS_OK);
    thread = std::thread([this, handler, schema, generator] {
      outcome = arrow::ExportAsyncRecordBatchReader(schema, generator, arrow::DeviceAllocationType::kCPU,
                                                    reinterpret_cast<::ArrowAsyncDeviceStreamHandler*>(handler))
                    .status();
    });
  }

  ours::BowstringBatches* wait() {
    ours::BowstringBatches* waited = nullptr;
    CHECK(ours::bowstring_async_batches_wait(batches, &waited) == ours::BOWSTRING_STATUS_OK);
    return waited;
  }

  ~Sender() {
    ours::bowstring_async_batches_free(batches);
    thread.join();
  }
};

// Makes an Arrow reader from a stream of ours.
std::shared_ptr<arrow::RecordBatchReader> give_back(ours::BowstringBatches* batches) {
  ::ArrowDeviceArrayStream stream;
  CHECK(ours::bowstring_batches_export(batches, reinterpret_cast<ours::ArrowDeviceArrayStream*>(&stream)) ==
        ours::BOWSTRING_STATUS_OK);
  ours::bowstring_batches_free(batches);
  return get(arrow::ImportDeviceRecordBatchReader(&stream));
}

void check_same(const Batch& got, const Batch& expected) {
  CHECK(got != nullptr);
  CHECK(got->ValidateFull().ok());
  CHECK(got->Equals(*expected, true));
}

// Reads everything that an Arrow consumer was sent. With `late` it waits first, so that our side has finished by then.
void read(const arrow::AsyncRecordBatchGenerator& from, const std::vector<Batch>& expected, bool late) {
  if (late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const Batch& batch : expected) check_same(get(from.generator().result()).batch, batch);
  CHECK(get(from.generator().result()).batch == nullptr);
}

void arrow_consumes(const Device& device, const std::vector<Batch>& batches, uint64_t queue, bool late) {
  ::ArrowAsyncDeviceStreamHandler& handler = new_handler();
  auto future = arrow::CreateAsyncDeviceStreamHandler(&handler, arrow::internal::GetCpuThreadPool(), queue);
  send(import(device, get(arrow::RecordBatchReader::Make(batches, batches[0]->schema()))), &handler);
  auto from = get(future.result());
  CHECK(from.schema->Equals(*batches[0]->schema(), true));
  CHECK(from.device_type == arrow::DeviceAllocationType::kCPU);
  read(from, batches, late);
}

void arrow_produces(const Device& device, const std::vector<Batch>& batches, uint64_t queue) {
  Sender sender(device, queue, batches[0]->schema(), arrow::MakeVectorGenerator(batches));
  auto reader = give_back(sender.wait());
  CHECK(reader->schema()->Equals(*batches[0]->schema(), true));
  for (const Batch& batch : batches) check_same(get(reader->Next()), batch);
  CHECK(get(reader->Next()) == nullptr);
}

void both_with_a_filter_between(const Device& device, const std::vector<Batch>& batches) {
  ::ArrowAsyncDeviceStreamHandler& handler = new_handler();
  auto future = arrow::CreateAsyncDeviceStreamHandler(&handler, arrow::internal::GetCpuThreadPool(), 2);
  Sender sender(device, 3, batches[0]->schema(), arrow::MakeVectorGenerator(batches));
  ours::BowstringBatches *all = sender.wait(), *kept = nullptr;
  ours::BowstringStream* stream = nullptr;
  CHECK(ours::bowstring_stream_new(device.handle, &stream) == ours::BOWSTRING_STATUS_OK);
  CHECK(ours::bowstring_batches_filter_by(all, 1, stream, &kept) == ours::BOWSTRING_STATUS_OK);
  ours::bowstring_batches_free(all);
  ours::bowstring_stream_free(stream);
  send(kept, &handler);
  auto from = get(future.result());
  for (const Batch& batch : batches) {
    Batch got = get(from.generator().result()).batch;
    CHECK(got != nullptr && got->ValidateFull().ok());
    int64_t expected = 0;
    auto odd = std::static_pointer_cast<arrow::BooleanArray>(batch->column(1));
    for (int64_t i = 0; i < batch->num_rows(); i++) {
      if (!odd->Value(i)) continue;
      CHECK(got->column(0)->RangeEquals(*batch->column(0), expected, expected + 1, i));
      CHECK(got->column(2)->RangeEquals(*batch->column(2), expected, expected + 1, i));
      expected++;
    }
    CHECK(got->num_rows() == expected);
  }
  CHECK(get(from.generator().result()).batch == nullptr);
}

void errors_reach_arrow(const Device& device, const std::vector<Batch>& batches) {
  ::ArrowAsyncDeviceStreamHandler& handler = new_handler();
  auto future = arrow::CreateAsyncDeviceStreamHandler(&handler, arrow::internal::GetCpuThreadPool(), 1);
  send(import(device, std::make_shared<Failing>(batches)), &handler);
  auto from = get(future.result());
  arrow::Status status;
  for (size_t i = 0; i <= batches.size() && status.ok(); i++) status = from.generator().result().status();
  CHECK(!status.ok() && status.ToString().find("the disk is on fire") != std::string::npos);
}

void errors_reach_us(const Device& device, const std::vector<Batch>& batches) {
  auto next = std::make_shared<std::atomic<size_t>>(0);
  Generator failing = [next, batches]() -> arrow::Future<Batch> {
    size_t at = (*next)++;
    if (at < batches.size()) return arrow::Future<Batch>::MakeFinished(batches[at]);
    return arrow::Future<Batch>::MakeFinished(arrow::Status::IOError("the disk is on fire"));
  };
  Sender sender(device, 2, batches[0]->schema(), failing);
  ours::BowstringBatches* waited = sender.wait();
  for (size_t i = 0; i < batches.size(); i++) {
    ours::BowstringBatch* batch = nullptr;
    CHECK(ours::bowstring_batches_next(waited, &batch) == ours::BOWSTRING_STATUS_OK && batch);
    ours::bowstring_batch_free(batch);
  }
  ours::BowstringBatch* batch = nullptr;
  CHECK(ours::bowstring_batches_next(waited, &batch) == ours::BOWSTRING_STATUS_PRODUCER);
  CHECK(std::string(ours::bowstring_last_error()).find("the disk is on fire") != std::string::npos);
  ours::bowstring_batches_free(waited);
}

void we_go_away(const Device& device, const std::vector<Batch>& batches) {
  for (int taken = -1; taken < 3; taken++) {
    Sender sender(device, 2, batches[0]->schema(), arrow::MakeVectorGenerator(batches));
    if (taken < 0) continue;
    ours::BowstringBatches* waited = sender.wait();
    for (int i = 0; i < taken; i++) {
      ours::BowstringBatch* batch = nullptr;
      CHECK(ours::bowstring_batches_next(waited, &batch) == ours::BOWSTRING_STATUS_OK && batch);
      ours::bowstring_batch_free(batch);
    }
    ours::bowstring_batches_free(waited);
  }
}

// The producer's metadata of each batch passes through us to Arrow C++, which has it as custom metadata.
void what_is_said_of_batches_arrives(const Device& device) {
  constexpr int kBatches = 5;
  ours::ArrowAsyncDeviceStreamHandler* in = nullptr;
  ours::BowstringAsyncBatches* async = nullptr;
  CHECK(ours::bowstring_async_batches_new(device.handle, kBatches, &in, &async) == ours::BOWSTRING_STATUS_OK);
  ::Producer producer;
  CHECK(producer_begin(&producer, reinterpret_cast<::ArrowAsyncDeviceStreamHandler*>(in)) == 0);
  for (int i = 0; i < kBatches; i++) CHECK(producer_send(&producer, i) == 0);
  producer_end(&producer);
  ours::BowstringBatches* batches = nullptr;
  CHECK(ours::bowstring_async_batches_wait(async, &batches) == ours::BOWSTRING_STATUS_OK);
  ::ArrowAsyncDeviceStreamHandler& out = new_handler();
  auto future = arrow::CreateAsyncDeviceStreamHandler(&out, arrow::internal::GetCpuThreadPool(), 2);
  send(batches, &out);
  auto from = get(future.result());
  for (int i = 0; i < kBatches; i++) {
    arrow::RecordBatchWithMetadata got = get(from.generator().result());
    CHECK(got.batch && got.batch->num_rows() == ROWS && got.custom_metadata);
    CHECK(get(got.custom_metadata->Get("batch")) == std::to_string(i));
  }
  CHECK(get(from.generator().result()).batch == nullptr);
  ours::bowstring_async_batches_free(async);
  for (int i = 0; i < 400 && producer.sent.released < kBatches; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(producer.sent.released == kBatches && producer.sent.extracted == kBatches && producer.sent.cancels == 0);
}

// Runs a scenario. Afterwards Arrow's memory must be empty, once threads have had time to release it.
template <typename Body>
void run(const char* name, Body body) {
  arrow::MemoryPool* pool = arrow::default_memory_pool();
  const int64_t before = pool->bytes_allocated();
  body();
  int64_t left = 0;
  for (int i = 0; i < 400; i++) {
    left = pool->bytes_allocated() - before;
    if (left == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(left == 0);
  std::printf("%s: ok\n", name);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  Device device;
  run("Arrow C++ consumes", [&] {
    auto batches = samples(20, 50);
    for (int i = 0; i < rounds; i++) {
      for (uint64_t queue : {1, 3, 100}) arrow_consumes(device, batches, queue, i % 2 == 0);
    }
  });
  run("Arrow C++ produces", [&] {
    auto batches = samples(20, 50);
    for (int i = 0; i < rounds; i++) {
      for (uint64_t queue : {0, 3, 100}) arrow_produces(device, batches, queue);
    }
  });
  run("both, with a filter between", [&] { both_with_a_filter_between(device, samples(10, 30)); });
  run("errors reach us", [&] { errors_reach_us(device, samples(3, 10)); });
  run("errors reach Arrow C++", [&] { errors_reach_arrow(device, samples(3, 10)); });
  run("what is said of batches arrives", [&] { what_is_said_of_batches_arrives(device); });
  run("we go away", [&] { we_go_away(device, samples(50, 10)); });
  // An Arrow C++ consumer that goes away is not tested: it drops the batches that it was sent, and never cancels.
  return 0;
}

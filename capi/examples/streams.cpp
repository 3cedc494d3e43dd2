// Streams of batches in C++: filters the struct arrays of a producer by one of their columns, casts the columns, and
// exports the result as a stream again. Batches are made one at a time, when the consumer asks. The stream itself
// reports errors in the middle.
//
// c++ -std=c++17 streams.cpp $(pkg-config --cflags --libs bowstring)

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bowstring.h"

namespace {

void check(BowstringStatus status) {
  if (status != BOWSTRING_STATUS_OK) throw std::runtime_error(bowstring_last_error());
}

// Handles that free themselves.
template <typename T, void (*Free)(T*)>
struct Handle {
  T* get() const { return held.get(); }
  T** out() {
    raw = nullptr;
    return &raw;
  }
  void keep() { held.reset(raw); }

 private:
  struct Deleter {
    void operator()(T* handle) const { Free(handle); }
  };
  std::unique_ptr<T, Deleter> held;
  T* raw = nullptr;
};
using Device = Handle<BowstringDevice, bowstring_device_free>;
using Stream = Handle<BowstringStream, bowstring_stream_free>;
using Batches = Handle<BowstringBatches, bowstring_batches_free>;

int made = 0, released = 0;

// One node of an array that owns its memory.
struct Node {
  std::vector<char> bytes;
  std::array<const void*, 2> buffers{};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

void release_array(ArrowArray* array) {
  auto* node = static_cast<Node*>(array->private_data);
  for (ArrowArray& child : node->children) {
    if (child.release) child.release(&child);
  }
  delete node;
  array->release = nullptr;
  released++;
}

ArrowArray array_of(std::size_t length, Node* node, std::size_t buffers) {
  made++;
  ArrowArray array{};
  node->buffers[1] = node->bytes.data();
  for (ArrowArray& child : node->children) node->pointers.push_back(&child);
  array.length = static_cast<std::int64_t>(length);
  array.n_buffers = static_cast<std::int64_t>(buffers);
  array.buffers = node->buffers.data();
  array.n_children = static_cast<std::int64_t>(node->pointers.size());
  array.children = node->pointers.data();
  array.release = release_array;
  array.private_data = node;
  return array;
}

void release_schema(ArrowSchema* schema) {
  for (std::int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
  }
  schema->release = nullptr;
}

ArrowSchema field(const char* format, const char* name) {
  ArrowSchema schema{};
  schema.format = format;
  schema.name = name;
  schema.flags = ARROW_FLAG_NULLABLE;
  schema.release = release_schema;
  return schema;
}

// A schema of the columns `keep` and `number`, the latter of the given format. Its children are static.
ArrowSchema two_columns(const char* number, std::array<ArrowSchema, 2>& columns, std::array<ArrowSchema*, 2>& pointers) {
  columns = {field("b", "keep"), field(number, "number")};
  pointers = {&columns[0], &columns[1]};
  ArrowSchema schema = field("+s", "");
  schema.flags = 0;
  schema.n_children = 2;
  schema.children = pointers.data();
  return schema;
}

// The producer: batches of eight numbers, with a mask that keeps every third. It fails after `last` batches.
struct Source {
  int next = 0;
  int last = 0;
  std::array<ArrowSchema, 2> columns;
  std::array<ArrowSchema*, 2> pointers;
};

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  auto* source = static_cast<Source*>(stream->private_data);
  *out = two_columns("i", source->columns, source->pointers);
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* source = static_cast<Source*>(stream->private_data);
  if (source->next == source->last) return 5;
  const int first = 8 * source->next++;
  auto* keep = new Node;
  keep->bytes.assign(1, 0);
  auto* numbers = new Node;
  numbers->bytes.resize(8 * sizeof(std::int32_t));
  for (int i = 0; i < 8; i++) {
    const std::int32_t number = first + i;
    std::memcpy(numbers->bytes.data() + i * sizeof number, &number, sizeof number);
    if (number % 3 == 0) keep->bytes[0] = static_cast<char>(keep->bytes[0] | 1 << i);
  }
  auto* rows = new Node;
  rows->children = {array_of(8, keep, 2), array_of(8, numbers, 2)};
  *out = array_of(8, rows, 1);
  return 0;
}

const char* get_last_error(ArrowArrayStream*) { return "the disk is on fire"; }

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Source*>(stream->private_data);
  stream->release = nullptr;
  released++;
}

ArrowArrayStream source(int last) {
  made++;
  auto* state = new Source;
  state->last = last;
  return {get_schema, get_next, get_last_error, release_stream, state};
}

}  // namespace

int main() {
  Device device;
  check(bowstring_device_open(ARROW_DEVICE_CPU, -1, device.out()));
  device.keep();
  Stream stream;
  check(bowstring_stream_new(device.get(), stream.out()));
  stream.keep();

  // The input has three batches and then a failure. Only the schema is read so far.
  ArrowArrayStream producer = source(3);
  Batches batches, kept, doubles;
  check(bowstring_batches_import_host(&producer, batches.out()));
  batches.keep();
  check(bowstring_batches_filter_by(batches.get(), 0, stream.get(), kept.out()));
  kept.keep();
  std::array<ArrowSchema, 2> columns;
  std::array<ArrowSchema*, 2> pointers;
  ArrowSchema to = two_columns("g", columns, pointers);
  check(bowstring_batches_cast(kept.get(), &to, nullptr, stream.get(), doubles.out()));
  doubles.keep();
  to.release(&to);
  ArrowDeviceArrayStream result;
  check(bowstring_batches_export(doubles.get(), &result));

  // The output can be read by any consumer of Arrow device streams.
  std::string seen;
  int code = 0, rounds = 0;
  for (;; rounds++) {
    ArrowDeviceArray batch;
    code = result.get_next(&result, &batch);
    if (code != 0 || !batch.array.release) break;
    const ArrowArray& number = *batch.array.children[1];
    for (std::int64_t i = 0; i < number.length; i++) {
      char text[32];
      std::snprintf(text, sizeof text, " %g", static_cast<const double*>(number.buffers[1])[number.offset + i]);
      seen += text;
    }
    batch.array.release(&batch.array);
  }
  const std::string error = code ? result.get_last_error(&result) : "none";
  std::printf("kept:%s\nafter %d batches: code %d, %s\n", seen.c_str(), rounds, code, error.c_str());
  result.release(&result);
  std::printf("released: %d of %d\n", released, made);
  const bool good = seen == " 0 3 6 9 12 15 18 21" && rounds == 3 && code == 5 && released == made;
  return good ? 0 : 1;
}

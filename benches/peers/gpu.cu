// What CUDA's own libraries do for the work of benches/{filter,take,null_count}.rs: CUB's select by byte flags and by bits,
// Thrust's gather, CUB's sum of popcounts, and the runtime's copy. Inputs are those of the Rust benches, row by row.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 -o gpu benches/peers/gpu.cu && ./gpu > gpu.jsonl
//
// Prints one JSON object a line: the id of the Rust bench, who ran, the median of the device's time in seconds (by events,
// behind work that lets the host get ahead), and the bytes that the Rust benches count for it. Arguments are parts of
// ids: only what contains one of them runs. With BOWSTRING_BENCH=tiny inputs are tiny and figures mean nothing.
// Before it is timed, each result is compared with what the host computes; a wrong one ends the program.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/transform_reduce.h>

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t code, const char *call, int line) {
  if (code != cudaSuccess) {
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(code));
    std::exit(1);
  }
}

// --- the inputs of benches/support/data.rs -------------------------------------------------------------------------

// SplitMix64's number `i` of a sequence.
__host__ __device__ inline uint64_t random_bits(uint64_t sequence, uint64_t i) {
  uint64_t state = (sequence << 48) + (i + 1) * 0x9e3779b97f4a7c15ull;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
  return state ^ (state >> 31);
}

// The same below a limit of at most 32 bits: the high half of the product of 96 bits.
__host__ __device__ inline uint64_t below(uint64_t sequence, uint64_t i, uint64_t limit) {
  uint64_t drawn = random_bits(sequence, i);
  return ((drawn >> 32) * limit + ((drawn & 0xffffffffu) * limit >> 32)) >> 32;
}

// Which rows a mask keeps.
struct Kept {
  uint64_t sequence, limit;
  bool clustered;
  uint64_t before;  // bits before the first row's
  __host__ __device__ bool operator()(uint64_t row) const {
    row += before;
    return random_bits(sequence, clustered ? row / 1024 : row) >> 32 < limit;
  }
};

static Kept kept(double percent, bool clustered, uint64_t sequence, uint64_t before = 0) {
  return {sequence, static_cast<uint64_t>(percent / 100.0 * 4294967296.0), clustered, before};
}

struct Value {
  __host__ __device__ uint64_t operator()(uint64_t row) const { return random_bits(3, row); }
};

// Where row `i` of a take comes from.
struct Index {
  uint64_t rows;
  bool random;
  __host__ __device__ uint64_t operator()(uint64_t i) const { return random ? below(4, i, rows) : i; }
};

template <typename T, typename F> __global__ void fill(T *to, uint64_t n, F f) {
  for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * uint64_t(blockDim.x))
    to[i] = static_cast<T>(f(i));
}

// Word `i` of the bits of a mask, which begin `before` bits before the first row.
struct Word {
  Kept keep;
  __host__ __device__ uint64_t operator()(uint64_t i) const {
    Kept all = keep;
    all.before = 0;
    uint64_t word = 0;
    for (int bit = 0; bit < 64; bit++) word |= uint64_t(all(i * 64 + bit)) << bit;
    return word;
  }
};

// --- device memory, time, results ----------------------------------------------------------------------------------

template <typename T> struct Memory {
  T *at = nullptr;
  uint64_t length;
  explicit Memory(uint64_t n) : length(n) { CHECK(cudaMalloc(&at, std::max<uint64_t>(n, 1) * sizeof(T))); }
  ~Memory() { cudaFree(at); }
  Memory(const Memory &) = delete;
  template <typename F> void set(F f) {
    fill<<<4096, 256>>>(at, length, f);
    CHECK(cudaGetLastError());
  }
};

static std::vector<std::string> parts;
static cudaStream_t stream;

static bool wanted(const std::string &id) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](auto &part) { return id.find(part) != id.npos; });
}

// The median of some runs, each behind fills that the device is busy with while the host queues the run.
static double seconds(const std::function<void()> &run) {
  static Memory<char> *busy = new Memory<char>(16 << 20);
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  std::vector<float> times;
  float all = 0;
  while (times.size() < 11 || (all < 200 && times.size() < 101)) {
    for (int i = 0; i < 8; i++) CHECK(cudaMemsetAsync(busy->at, 0, busy->length, stream));
    CHECK(cudaEventRecord(start, stream));
    run();
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    times.push_back(milliseconds);
    all += milliseconds;
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] / 1e3;
}

static void report(const std::string &id, const char *who, uint64_t bytes, const std::function<void()> &run) {
  std::printf("{\"id\": \"%s\", \"who\": \"%s\", \"seconds\": %.9f, \"bytes\": %llu}\n", id.c_str(), who, seconds(run),
              static_cast<unsigned long long>(bytes));
  std::fflush(stdout);
}

// How many values, and a sum in which each counts by its place, so that order matters.
struct Sum {
  uint64_t count = 0, sum = 0;
  bool operator==(const Sum &other) const { return count == other.count && sum == other.sum; }
};

template <typename T> __host__ __device__ uint64_t placed(uint64_t place, uint64_t value) {
  return (2 * place + 1) * static_cast<uint64_t>(static_cast<T>(value));
}

// What a host makes of it: `keep` says which rows there are, `value` what they hold.
template <typename T, typename K, typename V> Sum on_host(uint64_t rows, K keep, V value) {
  uint64_t threads = std::max(1u, std::thread::hardware_concurrency()), chunk = (rows + threads - 1) / threads;
  std::vector<uint64_t> first(threads + 1, 0), sums(threads, 0);
  auto each = [&](auto work) {
    std::vector<std::thread> running;
    for (uint64_t t = 0; t < threads; t++)
      running.emplace_back([=, &work] { work(t, std::min(rows, t * chunk), std::min(rows, (t + 1) * chunk)); });
    for (auto &thread : running) thread.join();
  };
  each([&](uint64_t t, uint64_t from, uint64_t to) {
    uint64_t count = 0;
    for (uint64_t row = from; row < to; row++) count += keep(row);
    first[t + 1] = count;
  });
  for (uint64_t t = 0; t < threads; t++) first[t + 1] += first[t];
  each([&](uint64_t t, uint64_t from, uint64_t to) {
    uint64_t place = first[t], sum = 0;
    for (uint64_t row = from; row < to; row++)
      if (keep(row)) sum += placed<T>(place++, value(row));
    sums[t] = sum;
  });
  Sum all{first[threads], 0};
  for (uint64_t sum : sums) all.sum += sum;
  return all;
}

template <typename T> struct Placed {
  const T *at;
  __host__ __device__ uint64_t operator()(uint64_t i) const { return placed<T>(i, at[i]); }
};

template <typename T> Sum on_device(const Memory<T> &memory, uint64_t count) {
  auto policy = thrust::cuda::par.on(stream);
  thrust::counting_iterator<uint64_t> first(0);
  return {count, thrust::transform_reduce(policy, first, first + count, Placed<T>{memory.at}, uint64_t(0),
                                          thrust::plus<uint64_t>())};
}

static void same(const std::string &id, const char *who, Sum ours, Sum theirs) {
  if (!(ours == theirs)) {
    std::fprintf(stderr, "%s: %s is wrong: %llu values, not %llu, or others\n", id.c_str(), who,
                 (unsigned long long)theirs.count, (unsigned long long)ours.count);
    std::exit(1);
  }
}

// --- the work ------------------------------------------------------------------------------------------------------

struct BitAt {
  const uint8_t *bytes;
  uint64_t before;
  __host__ __device__ uint8_t operator()(int64_t row) const {
    uint64_t bit = row + before;
    return bytes[bit / 8] >> (bit % 8) & 1;
  }
};

template <typename T> const char *name() {
  return sizeof(T) == 1 ? "int8" : sizeof(T) == 2 ? "int16" : sizeof(T) == 4 ? "int32" : "int64";
}

struct Mask {
  int percent;
  bool clustered;
  int offset;
};

template <typename T> void filters(uint64_t rows, const std::vector<Mask> &masks) {
  for (const Mask &mask : masks) {
    std::string id = std::string("filter/cuda/") + name<T>() + "/" + std::to_string(rows) + "/" +
                     std::to_string(mask.percent) + "%-" + (mask.clustered ? "clustered" : "uniform") +
                     (mask.offset ? "-offset-" + std::to_string(mask.offset) : "") + "/no-nulls/1";
    if (!wanted(id)) continue;
    Kept keep = kept(mask.percent, mask.clustered, 1, mask.offset);
    Memory<T> values(rows), out(rows);
    Memory<uint8_t> flags(rows);
    Memory<uint64_t> words((rows + mask.offset + 63) / 64);
    Memory<int64_t> total(1);
    values.set(Value{});
    flags.set(keep);
    words.set(Word{keep});
    thrust::transform_iterator<BitAt, thrust::counting_iterator<int64_t>> bits(
        thrust::counting_iterator<int64_t>(0),
        BitAt{reinterpret_cast<const uint8_t *>(words.at), uint64_t(mask.offset)});
    Sum right = on_host<T>(rows, keep, Value{});
    uint64_t bytes = rows * sizeof(T) + rows / 8 + right.count * sizeof(T);
    auto one = [&](const char *who, auto chosen) {
      size_t scratch = 0;
      auto select = [&](void *memory) {
        CHECK(cub::DeviceSelect::Flagged(memory, scratch, values.at, chosen, out.at, total.at, int(rows), stream));
      };
      select(nullptr);
      Memory<char> temporary(scratch);
      CHECK(cudaMemsetAsync(out.at, 0, rows * sizeof(T), stream));
      select(temporary.at);
      int64_t count = 0;
      CHECK(cudaMemcpyAsync(&count, total.at, sizeof count, cudaMemcpyDefault, stream));
      CHECK(cudaStreamSynchronize(stream));
      same(id, who, right, on_device(out, count));
      report(id, who, bytes, [&] { select(temporary.at); });
    };
    one("CUB Flagged, bytes", flags.at);
    one("CUB Flagged, bits", bits);
  }
}

template <typename T> void takes(uint64_t rows) {
  for (bool random : {true, false}) {
    std::string id = std::string("take/cuda/") + name<T>() + "/" + std::to_string(rows) + "/" +
                     (random ? "random" : "ascending") + "/no-nulls/1";
    if (!wanted(id)) continue;
    Memory<T> values(rows), out(rows);
    Memory<int32_t> indices(rows);
    values.set(Value{});
    indices.set(Index{rows, random});
    auto gather = [&] {
      thrust::gather(thrust::cuda::par_nosync.on(stream), indices.at, indices.at + rows, values.at, out.at);
    };
    CHECK(cudaMemsetAsync(out.at, 0, rows * sizeof(T), stream));
    gather();
    Index from{rows, random};
    auto all = [](uint64_t) { return true; };
    Sum right = on_host<T>(rows, all, [=](uint64_t i) { return Value{}(from(i)); });
    same(id, "thrust::gather", right, on_device(out, rows));
    report(id, "thrust::gather", rows * (4 + 2 * sizeof(T)), gather);
  }
}

struct Ones {
  __host__ __device__ int64_t operator()(uint64_t word) const {
#ifdef __CUDA_ARCH__
    return __popcll(word);
#else
    return __builtin_popcountll(word);
#endif
  }
};

static void counts(uint64_t rows) {
  std::string id = "null_count/cuda/bits/" + std::to_string(rows) + "/offset-0/-/1";
  if (!wanted(id)) return;
  Kept valid = kept(90, false, 2);
  uint64_t length = rows / 64;
  Memory<uint64_t> words(length);
  Memory<int64_t> total(1);
  words.set(Word{valid});
  thrust::transform_iterator<Ones, const uint64_t *> ones(words.at, Ones{});
  size_t scratch = 0;
  auto sum = [&](void *memory) {
    CHECK(cub::DeviceReduce::Sum(memory, scratch, ones, total.at, int64_t(length), stream));
  };
  sum(nullptr);
  Memory<char> temporary(scratch);
  sum(temporary.at);
  int64_t count = 0;
  CHECK(cudaMemcpyAsync(&count, total.at, sizeof count, cudaMemcpyDefault, stream));
  CHECK(cudaStreamSynchronize(stream));
  uint64_t right = on_host<uint64_t>(rows, valid, [](uint64_t) { return 0; }).count;
  same(id, "CUB sum of popcounts", {right, 0}, {uint64_t(count), 0});
  report(id, "CUB sum of popcounts", rows / 8, [&] { sum(temporary.at); });
}

static void copies(uint64_t bytes) {
  std::string id = "copy/cuda/bytes/" + std::to_string(bytes) + "/-/-/1";
  if (!wanted(id)) return;
  Memory<uint64_t> from(bytes / 8), to(bytes / 8);
  from.set(Value{});
  auto copy = [&] { CHECK(cudaMemcpyAsync(to.at, from.at, bytes, cudaMemcpyDeviceToDevice, stream)); };
  copy();
  same(id, "cudaMemcpy", on_device(from, bytes / 8), on_device(to, bytes / 8));
  report(id, "cudaMemcpy", 2 * bytes, copy);
}

int main(int count, char **arguments) {
  parts.assign(arguments + 1, arguments + count);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("{\"not_run\": \"CUB and Thrust\", \"reason\": \"no CUDA device\"}");
    return 0;
  }
  // One stream for all: the fills above run on the default one, which a stream made like this waits for.
  CHECK(cudaStreamCreate(&stream));
  const char *scale = std::getenv("BOWSTRING_BENCH");
  bool tiny = scale && !std::strcmp(scale, "tiny");
  uint64_t large = tiny ? 5000 : 1 << 28, batch = tiny ? 1000 : 8192;
  std::vector<uint64_t> between;
  if (!tiny) between = {1 << 15, 1 << 17, 1 << 20, 1 << 22, 1 << 24, 1 << 26};

  for (int power = tiny ? 15 : 31; power >= 15; power -= 2) copies(uint64_t(1) << power);
  std::vector<Mask> all, few = {{1, false, 0}, {50, false, 0}, {99, false, 0}, {50, true, 0}}, half = {{50, false, 0}};
  for (bool clustered : {false, true})
    for (int percent : {1, 10, 50, 90, 99}) all.push_back({percent, clustered, 0});
  all.push_back({50, false, 3});
  filters<int32_t>(large, all);
  filters<int64_t>(large, all);
  filters<int8_t>(large, few);
  filters<int16_t>(large, few);
  filters<int32_t>(batch, few);
  filters<int64_t>(batch, few);
  for (uint64_t rows : between) {
    filters<int32_t>(rows, half);
    filters<int64_t>(rows, half);
    takes<int32_t>(rows);
    takes<int64_t>(rows);
  }
  for (uint64_t rows : {large, batch}) {
    takes<int8_t>(rows);
    takes<int16_t>(rows);
    takes<int32_t>(rows);
    takes<int64_t>(rows);
  }
  // Whole words.
  std::vector<uint64_t> bitmaps = {20032};
  if (!tiny) bitmaps = {batch, large, uint64_t(1) << 31, uint64_t(1) << 33};
  for (uint64_t rows : bitmaps) counts(rows);
  return 0;
}

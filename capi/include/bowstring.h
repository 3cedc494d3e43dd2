/* bowstring: compute kernels for Apache Arrow device arrays. Generated from capi/src by its test `header`; do not edit.
 *
 * Rules that hold for every function:
 * - It returns a status (0 is success); results go through the last parameter, which is untouched on failure. The reason
 *   of the thread's last failure is bowstring_last_error().
 * - Handles are opaque. Who gets one through an out parameter owns it and frees it with the type's _free function, which
 *   takes NULL. Inputs are borrowed for the call only: they may be freed right after it, also while a GPU still reads.
 * - Any function may be called on any thread; several threads may use one handle at once, but for its _free function.
 * - A function waits for a GPU (it synchronises) only where its comment says so.
 * - NULL where a pointer is needed is BOWSTRING_STATUS_INVALID; nothing unwinds into the caller.
 */

#ifndef BOWSTRING_H
#define BOWSTRING_H

#include <stddef.h>
#include <stdint.h>
/* The Arrow C data and C device data interfaces, as the Arrow project defines them. */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE

typedef int32_t ArrowDeviceType;

#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_OPENCL 4
#define ARROW_DEVICE_VULKAN 7
#define ARROW_DEVICE_METAL 8
#define ARROW_DEVICE_VPI 9
#define ARROW_DEVICE_ROCM 10
#define ARROW_DEVICE_ROCM_HOST 11
#define ARROW_DEVICE_EXT_DEV 12
#define ARROW_DEVICE_CUDA_MANAGED 13
#define ARROW_DEVICE_ONEAPI 14
#define ARROW_DEVICE_WEBGPU 15
#define ARROW_DEVICE_HEXAGON 16

struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;
  int64_t reserved[3];
};

#endif /* ARROW_C_DEVICE_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

#ifndef ARROW_C_DEVICE_STREAM_INTERFACE
#define ARROW_C_DEVICE_STREAM_INTERFACE

struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowDeviceArrayStream*, struct ArrowDeviceArray* out);
  const char* (*get_last_error)(struct ArrowDeviceArrayStream*);
  void (*release)(struct ArrowDeviceArrayStream*);
  void* private_data;
};

#endif /* ARROW_C_DEVICE_STREAM_INTERFACE */

/* Experimental, in the Arrow project too. */
#ifndef ARROW_C_ASYNC_STREAM_INTERFACE
#define ARROW_C_ASYNC_STREAM_INTERFACE

struct ArrowAsyncTask {
  int (*extract_data)(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out);
  void* private_data;
};

struct ArrowAsyncProducer {
  ArrowDeviceType device_type;
  void (*request)(struct ArrowAsyncProducer* self, int64_t n);
  void (*cancel)(struct ArrowAsyncProducer* self);
  const char* additional_metadata;
  void* private_data;
};

struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler* self,
                   struct ArrowSchema* stream_schema);
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler* self,
                      struct ArrowAsyncTask* task, const char* metadata);
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler* self, int code,
                   const char* message, const char* metadata);
  void (*release)(struct ArrowAsyncDeviceStreamHandler* self);
  struct ArrowAsyncProducer* producer;
  void* private_data;
};

#endif /* ARROW_C_ASYNC_STREAM_INTERFACE */

/* What these are `dlpack.h` says, of the DLPack project. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;


// How a function ended, by who has to act.
enum BowstringStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It did what it should.
  BOWSTRING_STATUS_OK = 0,
  // The arguments do not fit together.
  BOWSTRING_STATUS_INVALID = 1,
  // This library does not do this on that device; the arguments are fine.
  BOWSTRING_STATUS_UNSUPPORTED = 2,
  // A producer's struct broke the Arrow C data interface. It has been released.
  BOWSTRING_STATUS_OUT_OF_SPEC = 3,
  // Memory ran out, or the pool's limit was reached.
  BOWSTRING_STATUS_OUT_OF_MEMORY = 4,
  // An index points outside of what it indexes.
  BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS = 5,
  // A value does not fit the type it was cast to, and the cast was strict.
  BOWSTRING_STATUS_CAST = 6,
  // A call into a device runtime failed, or the runtime did not take the kernels.
  BOWSTRING_STATUS_DRIVER = 7,
  // There is no such device here.
  BOWSTRING_STATUS_NO_DEVICE = 8,
  // A foreign stream has failed: its code and words are in the last error.
  BOWSTRING_STATUS_PRODUCER = 9,
  // Any other refusal.
  BOWSTRING_STATUS_OTHER = 10,
  // A bug in this library. What the call worked on may be incomplete; the library goes on working.
  BOWSTRING_STATUS_PANIC = 11,
  // A row of an expression overflows or divides by zero: the last error says which, and where.
  BOWSTRING_STATUS_EVALUATION = 12,
  // The caller no longer wants the result: see bowstring_set_interrupt.
  BOWSTRING_STATUS_INTERRUPTED = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringStatus BowstringStatus;
#else
typedef int32_t BowstringStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What is made of one expression.
enum BowstringUnary
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The opposite of a truth.
  BOWSTRING_UNARY_NOT = 0,
  // The value with the other sign.
  BOWSTRING_UNARY_NEGATE = 1,
  // Whether there is no value.
  BOWSTRING_UNARY_IS_NULL = 2,
  // Whether there is a value.
  BOWSTRING_UNARY_IS_NOT_NULL = 3,
  // Whether it is true; null is not.
  BOWSTRING_UNARY_IS_TRUE = 4,
  // Whether it is false or null.
  BOWSTRING_UNARY_IS_NOT_TRUE = 5,
  // Whether it is false; null is not.
  BOWSTRING_UNARY_IS_FALSE = 6,
  // Whether it is true or null.
  BOWSTRING_UNARY_IS_NOT_FALSE = 7,
  // The year of a date or a timestamp without a zone: an Int32, as the parts below.
  BOWSTRING_UNARY_YEAR = 8,
  // The month, from 1 on.
  BOWSTRING_UNARY_MONTH = 9,
  // The day of the month, from 1 on.
  BOWSTRING_UNARY_DAY = 10,
  // The hour of a date, a timestamp without a zone or a time.
  BOWSTRING_UNARY_HOUR = 11,
  // The minute.
  BOWSTRING_UNARY_MINUTE = 12,
  // The second.
  BOWSTRING_UNARY_SECOND = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringUnary BowstringUnary;
#else
typedef int32_t BowstringUnary;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What is made of two expressions.
enum BowstringBinary
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Whether both are equal; null where either is, as in all comparisons but the last two.
  BOWSTRING_BINARY_EQ = 0,
  // Whether they differ.
  BOWSTRING_BINARY_NOT_EQ = 1,
  // Whether the first is less.
  BOWSTRING_BINARY_LT = 2,
  // Whether the first is less or equal.
  BOWSTRING_BINARY_LT_EQ = 3,
  // Whether the first is greater.
  BOWSTRING_BINARY_GT = 4,
  // Whether the first is greater or equal.
  BOWSTRING_BINARY_GT_EQ = 5,
  // Whether they differ, where nulls are equal to each other and to nothing else.
  BOWSTRING_BINARY_DISTINCT = 6,
  // The opposite.
  BOWSTRING_BINARY_NOT_DISTINCT = 7,
  // Kleene's and: false where either is false.
  BOWSTRING_BINARY_AND = 8,
  // Kleene's or: true where either is true.
  BOWSTRING_BINARY_OR = 9,
  // The sum.
  BOWSTRING_BINARY_ADD = 10,
  // The difference.
  BOWSTRING_BINARY_SUBTRACT = 11,
  // The product.
  BOWSTRING_BINARY_MULTIPLY = 12,
  // The quotient, of integers cut towards zero.
  BOWSTRING_BINARY_DIVIDE = 13,
  // The remainder, with the sign of the first.
  BOWSTRING_BINARY_REMAINDER = 14,
  // The first, or the second where the first is null.
  BOWSTRING_BINARY_COALESCE = 15,
  // The first, but null where both are equal.
  BOWSTRING_BINARY_NULL_IF = 16,
  // Whether the first, text or bytes, starts with the second.
  BOWSTRING_BINARY_STARTS_WITH = 17,
  // Whether it ends with it.
  BOWSTRING_BINARY_ENDS_WITH = 18,
  // Whether the second is somewhere in the first.
  BOWSTRING_BINARY_CONTAINS = 19,
  // Whether text is of a pattern: `%` is any text, `_` any character, a backslash takes the next one as it is.
  BOWSTRING_BINARY_LIKE = 20,
  // The same, where case does not count.
  BOWSTRING_BINARY_I_LIKE = 21,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringBinary BowstringBinary;
#else
typedef int32_t BowstringBinary;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How rows become one.
enum BowstringFunction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // How many rows there are: of no expression.
  BOWSTRING_FUNCTION_COUNT_ALL = 0,
  // How many are not null.
  BOWSTRING_FUNCTION_COUNT = 1,
  // The sum of what is not null; null of nothing, as all below.
  BOWSTRING_FUNCTION_SUM = 2,
  // The least.
  BOWSTRING_FUNCTION_MIN = 3,
  // The greatest.
  BOWSTRING_FUNCTION_MAX = 4,
  // The mean.
  BOWSTRING_FUNCTION_MEAN = 5,
  // Whether all are true.
  BOWSTRING_FUNCTION_BOOL_AND = 6,
  // Whether any is true.
  BOWSTRING_FUNCTION_BOOL_OR = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringFunction BowstringFunction;
#else
typedef int32_t BowstringFunction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An array, with the name, nullability and metadata it came with.
struct BowstringArray;

// Arrays of one type that come one after another, such as the masks of a stream of batches.
struct BowstringArrays;

// What a producer sends, until it is waited for.
struct BowstringAsyncBatches;

// Arrays of equal length with names: a record batch.
struct BowstringBatch;

// Batches of one schema that come one after another; nothing is read before it is asked for.
struct BowstringBatches;

// Where arrays live and operations run.
struct BowstringDevice;

// What is computed of each row of a batch. Made of others, which it shares: they may be freed. One that is nested more than 200 deep, or
// has more than 20000 parts or 256 MiB of values, is `BOWSTRING_STATUS_INVALID`.
struct BowstringExpr;

// What the doctor found.
struct BowstringReport;

// A mask prepared once, for any number of arrays and batches, and for any number of threads at once: what they filter with
// it goes to its stream in the order in which their calls come.
struct BowstringSelection;

// An order of work on a device.
struct BowstringStream;

// How to take. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
struct BowstringTakeOptions {
  // `sizeof(struct BowstringTakeOptions)`.
  size_t size;
  // 0: an index that is not a row is `BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS` (the default); 1: it gives a null row.
  int32_t out_of_bounds_is_null;
};

// How to cast. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
struct BowstringCastOptions {
  // `sizeof(struct BowstringCastOptions)`.
  size_t size;
  // 0: a value that does not fit becomes null (the default); 1: it is `BOWSTRING_STATUS_CAST`.
  int32_t strict;
};

// Called as an examination goes on, on the thread that asked for it: what is being done, how much of that has been done, and how
// much there is. The text is the caller's for the call only.
typedef void (*BowstringProgress)(const char *what, size_t done, size_t of, void *data);

// How to compute. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
struct BowstringExprOptions {
  // `sizeof(struct BowstringExprOptions)`.
  size_t size;
  // Of an integer that does not fit its type: 0: `BOWSTRING_STATUS_EVALUATION` (the default); 1: what remains of it in the type's
  // bits; 2: a null. Decimals are an error, but for 2.
  int32_t overflow;
  // 0: a division by zero is `BOWSTRING_STATUS_EVALUATION` (the default); 1: it is a null. Floats always have a result.
  int32_t division_by_zero_is_null;
  // 0: floats are compared by their total order (the default); 1: as in SQL: zeros are equal, and so are NaNs, which are greatest.
  int32_t floats_as_sql;
};

// An aggregate.
struct BowstringAggregate {
  // A `BowstringFunction`.
  int32_t function;
  // What it is of; NULL, and not looked at, for `BOWSTRING_FUNCTION_COUNT_ALL`.
  const struct BowstringExpr *of;
  // The name of the result's column; NULL for the function and expression as they are written.
  const char *name;
};

// Says whether the work that a thread is at shall end: 0 where it goes on. It is called on that thread, in the
// middle of a function of this library, and must not leave it by `longjmp` or an exception. Functions of this
// library that it calls itself ask nothing.
typedef int32_t (*BowstringInterrupted)(void *data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Imports an array of `device`, copying and waiting for nothing. `array` is moved from (its `release` becomes NULL)
// and released once nothing uses it any more, also on failure; only `BOWSTRING_STATUS_INVALID` and
// `BOWSTRING_STATUS_UNSUPPORTED` may leave it as it was: look at `release`. `schema` is only read and stays the
// caller's. Host memory (`ARROW_DEVICE_CPU`) goes with any device. What the structs say is checked; what stands in the
// buffers is believed (bowstring_array_validate has the details): bowstring_array_import_validated looks at that too.
//
// The structs must follow the Arrow C device data interface; releasing on any thread must be fine.
BowstringStatus bowstring_array_import(const struct BowstringDevice *device,
                                       struct ArrowDeviceArray *array,
                                       const struct ArrowSchema *schema,
                                       struct BowstringArray **out);

// Exports an array and its schema; the handle stays valid. Both structs must be uninitialised or released ones: they
// are overwritten. Consumers must wait for `sync_event` unless it is NULL. Either struct may be NULL: not wanted.
// `null_count` is -1 where only a device knows it. Synchronises only where a copy to host memory, which has no event to
// give along, is still on its way.
//
// `array` must be NULL or a live handle, the structs NULL or writable.
BowstringStatus bowstring_array_export(const struct BowstringArray *array,
                                       struct ArrowDeviceArray *out_array,
                                       struct ArrowSchema *out_schema);

// How many rows.
//
// `array` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_length(const struct BowstringArray *array, uint64_t *out);

// Which device the array is on: an `ArrowDeviceType`, and a number, which is -1 for the CPU.
//
// `array` must be NULL or a live handle, both results NULL or writable.
BowstringStatus bowstring_array_device(const struct BowstringArray *array,
                                       int32_t *device_type,
                                       int64_t *device_id);

// Rows `offset .. offset + length` of an array, copying nothing.
//
// `array` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_slice(const struct BowstringArray *array,
                                      uint64_t offset,
                                      uint64_t length,
                                      struct BowstringArray **out);

// Blocks until the array may be read. Where it cannot be because of its data (an index out of bounds, a value that a
// strict cast found not to fit), this says so.
//
// `array` must be NULL or a live handle.
BowstringStatus bowstring_array_wait(const struct BowstringArray *array);

// The array on the device of `stream`: a copy of one in host memory; what is on the device already is not copied. Does not
// synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_to_device(const struct BowstringArray *array,
                                          const struct BowstringStream *stream,
                                          struct BowstringArray **out);

// The array in host memory: a copy of one on the device of `stream`; what is in host memory already is not copied.
// Synchronises only where a foreign string's extent is not known; exporting the copy waits for it.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_to_host(const struct BowstringArray *array,
                                        const struct BowstringStream *stream,
                                        struct BowstringArray **out);

// Frees an array handle; memory that others still use lives on.
//
// `array` must be NULL or a handle from this library that is not used again.
void bowstring_array_free(struct BowstringArray *array);

// Makes a handler, for a producer of struct arrays on `device`, and what takes what it sends. As soon as the producer has
// given the schema, `queue` batches (at least one) are asked for, and one more for each that is taken; a producer that
// sends more is stopped, and that is BOWSTRING_STATUS_OUT_OF_SPEC behind the batches that were asked for. The handler, which
// this library frees, is for one producer, which calls its `release` at the end; where none gets it, the caller must.
// `handler` is untouched on failure. Does not synchronise.
//
// `device` must be NULL or a live handle, `handler` and `out` NULL or writable. The producer must follow the interface;
// the arrays that it sends may be used and released on any thread.
BowstringStatus bowstring_async_batches_new(const struct BowstringDevice *device,
                                            uint64_t queue,
                                            struct ArrowAsyncDeviceStreamHandler **handler,
                                            struct BowstringAsyncBatches **out);

// Waits for the producer's schema, and makes batches of what it sends: asked for the next one, they wait until it has
// come. The handle is left empty, and still to be freed. A producer that fails before its schema, or releases the handler,
// is BOWSTRING_STATUS_PRODUCER or BOWSTRING_STATUS_OUT_OF_SPEC. So a producer on this very thread must have given the
// schema before.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_async_batches_wait(const struct BowstringAsyncBatches *batches,
                                             struct BowstringBatches **out);

// Waits for the producer's schema, and gives what the producer said of the stream besides, its `additional_metadata`:
// a copy in the same encoding, or NULL. It is the handle's, and valid until that is freed. To be asked before
// `bowstring_async_batches_wait`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_async_batches_metadata(const struct BowstringAsyncBatches *batches,
                                                 const char **out);

// Frees a handle. A producer that sends to it is told to stop, by its `cancel`; what it sends all the same is let go of.
//
// `batches` must be NULL or a handle from this library that is not used again.
void bowstring_async_batches_free(struct BowstringAsyncBatches *batches);

// Sends the batches to a consumer's handler, from a thread of this library's own, which reads one whenever the consumer
// wants one, and calls the handler's `release` at the end. What goes wrong its `on_error` is told. The batches are this
// library's no more: the handle is left empty, and still to be freed. On failure the handler is left alone, but for
// BOWSTRING_STATUS_NO_DEVICE, where no thread could be made: it has been told and released.
//
// A consumer that neither takes all nor cancels keeps that thread, asleep, and what it would send, for good.
//
// What was said of each batch (bowstring_batch_metadata) is said of it again; `metadata` is said of the stream: NULL or
// pairs in the encoding of ArrowSchema.metadata, which are copied.
//
// The producer that the handler is given stays valid until `release` has been called, all tasks are extracted, and the
// arrays that these gave are released.
//
// `batches` must be NULL or a live handle, `metadata` NULL or metadata. The handler must be NULL, or follow the interface
// and be there until it is released; calling it on any thread must be fine.
BowstringStatus bowstring_batches_export_async(const struct BowstringBatches *batches,
                                               const char *metadata,
                                               struct ArrowAsyncDeviceStreamHandler *handler);

// Imports a struct array as a batch; otherwise as `bowstring_array_import`.
//
// See `bowstring_array_import`.
BowstringStatus bowstring_batch_import(const struct BowstringDevice *device,
                                       struct ArrowDeviceArray *array,
                                       const struct ArrowSchema *schema,
                                       struct BowstringBatch **out);

// Exports a batch as a struct array; otherwise as `bowstring_array_export`.
//
// `batch` must be NULL or a live handle, the structs NULL or writable.
BowstringStatus bowstring_batch_export(const struct BowstringBatch *batch,
                                       struct ArrowDeviceArray *out_array,
                                       struct ArrowSchema *out_schema);

// How many rows.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_length(const struct BowstringBatch *batch, uint64_t *out);

// A column of a batch as an array, copying nothing.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_column(const struct BowstringBatch *batch,
                                       uint64_t index,
                                       struct BowstringArray **out);

// Blocks until the batch may be read. Where it cannot be because of its data (an index out of bounds, a value that a
// strict cast found not to fit), this says so.
//
// `batch` must be NULL or a live handle.
BowstringStatus bowstring_batch_wait(const struct BowstringBatch *batch);

// The batch on the device of `stream`: a copy of one in host memory; what is on the device already is not copied. Does not
// synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batch_to_device(const struct BowstringBatch *batch,
                                          const struct BowstringStream *stream,
                                          struct BowstringBatch **out);

// The batch in host memory: a copy of one on the device of `stream`; what is in host memory already is not copied.
// Synchronises only where a foreign string's extent is not known; exporting the copy waits for it.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batch_to_host(const struct BowstringBatch *batch,
                                        const struct BowstringStream *stream,
                                        struct BowstringBatch **out);

// Frees a batch handle; memory that others still use lives on.
//
// `batch` must be NULL or a handle from this library that is not used again.
void bowstring_batch_free(struct BowstringBatch *batch);

// What was said of a batch besides its schema, by the producer of an asynchronous stream or by
// `bowstring_batch_with_metadata`: pairs in the encoding of ArrowSchema.metadata, or NULL where nothing was. It is the
// handle's, and valid until that is freed. Operations on batches give it on with their results.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_metadata(const struct BowstringBatch *batch,
                                         const char **out);

// The batch, copying nothing, with `metadata` said of it, which is copied: pairs in the encoding of ArrowSchema.metadata, or
// NULL for none. Who consumes it in an asynchronous stream is told.
//
// `batch` must be NULL or a live handle, `metadata` NULL or metadata, `out` NULL or writable.
BowstringStatus bowstring_batch_with_metadata(const struct BowstringBatch *batch,
                                              const char *metadata,
                                              struct BowstringBatch **out);

// The rows of `values` where `mask`, an array of booleans of equal length, is true; null is not. A mask that is shorter is
// `BOWSTRING_STATUS_INVALID`, where arrow-rs would leave out the rows beyond it. On a GPU this synchronises once: how many
// rows are kept is data.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter(const struct BowstringArray *values,
                                 const struct BowstringArray *mask,
                                 const struct BowstringStream *stream,
                                 struct BowstringArray **out);

// The rows of every column where `mask` is true; as `bowstring_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter_batch(const struct BowstringBatch *batch,
                                       const struct BowstringArray *mask,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// Prepares a mask for use with many arrays on one stream. On a GPU this synchronises once.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_new(const struct BowstringArray *mask,
                                        const struct BowstringStream *stream,
                                        struct BowstringSelection **out);

// How many rows it keeps.
//
// `selection` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_selection_length(const struct BowstringSelection *selection,
                                           uint64_t *out);

// The rows that it keeps of an array as long as its mask, on its stream. Synchronises only for types whose size a GPU has
// to find out, such as strings and lists: once.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_filter(const struct BowstringSelection *selection,
                                           const struct BowstringArray *values,
                                           struct BowstringArray **out);

// The rows that it keeps of every column; as `bowstring_selection_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_filter_batch(const struct BowstringSelection *selection,
                                                 const struct BowstringBatch *batch,
                                                 struct BowstringBatch **out);

// Frees a selection.
//
// `selection` must be NULL or a handle from this library that is not used again.
void bowstring_selection_free(struct BowstringSelection *selection);

// The rows of `values` at `indices`, an array of any integer type. A null index gives a null row; a negative one never
// counts from the end. Indices into an array of type Null are checked as any others are, which arrow-rs does not do.
// `options` may be NULL. Does not synchronise, but for types whose size a GPU has to find out. On a
// GPU a bad index is the failure of whoever first waits for the result (bowstring_array_wait), and a null row meanwhile.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_take(const struct BowstringArray *values,
                               const struct BowstringArray *indices,
                               const struct BowstringTakeOptions *options,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// The rows of every column at `indices`; as `bowstring_take`. Where an index may be null, or become null for being out of
// bounds, the fields of the result are nullable.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_take_batch(const struct BowstringBatch *batch,
                                     const struct BowstringArray *indices,
                                     const struct BowstringTakeOptions *options,
                                     const struct BowstringStream *stream,
                                     struct BowstringBatch **out);

// The values as another type: the one that `to` describes, with the metadata of `to`, which says of what extension type they
// are, if any, and under the name of `values`. `to` is only read. `options` may be NULL. On a GPU a strict cast that fails is
// the failure of whoever first waits for the result (bowstring_array_wait). Synchronises only where a GPU has to find out what
// is data: the bytes behind views, bytes that are to be text, values and lists as text, the items of lists in a cast that may fail.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_cast(const struct BowstringArray *values,
                               const struct ArrowSchema *to,
                               const struct BowstringCastOptions *options,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// Every column as the type of the field of `to` in its place, a schema of as many fields, and under its names; as
// `bowstring_cast`. Nulls under a field of `to` that is not nullable are `BOWSTRING_STATUS_INVALID`. On a GPU a value that
// does not fit a strict cast, or a null that nobody has counted, is the failure of whoever first waits for the column.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_cast_batch(const struct BowstringBatch *batch,
                                     const struct ArrowSchema *to,
                                     const struct BowstringCastOptions *options,
                                     const struct BowstringStream *stream,
                                     struct BowstringBatch **out);

// How many rows of each column are null by its validity bitmap, counted together; `out` has room for `columns` numbers, as
// many as the batch has columns. On a GPU this synchronises once, unless all are known.
//
// Handles must be NULL or live, `out` NULL or writable for `columns` numbers.
BowstringStatus bowstring_null_count_batch(const struct BowstringBatch *batch,
                                           const struct BowstringStream *stream,
                                           uint64_t columns,
                                           uint64_t *out);

// How many rows are null by the validity bitmap. On a GPU this synchronises once, unless it is known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_null_count(const struct BowstringArray *values,
                                     const struct BowstringStream *stream,
                                     uint64_t *out);

// How many rows are null when dictionaries, runs and unions are looked through. On a GPU this synchronises once, unless
// it is known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_logical_null_count(const struct BowstringArray *values,
                                             const struct BowstringStream *stream,
                                             uint64_t *out);

// Whether each row is null, as an array of booleans without nulls. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_null(const struct BowstringArray *values,
                                  const struct BowstringStream *stream,
                                  struct BowstringArray **out);

// Whether each row is valid, as an array of booleans without nulls. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_not_null(const struct BowstringArray *values,
                                      const struct BowstringStream *stream,
                                      struct BowstringArray **out);

// The values, and the only row of `scalar` where they are null; a null there leaves all as it is. `scalar` is in memory that the
// host reads, and of the values' type. Does not synchronise where that is Boolean or has a fixed width of 1, 2, 4, 8, 16 or 32 bytes;
// else once for each level of text, lists or runs, and as a take.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_fill_null(const struct BowstringArray *values,
                                    const struct BowstringArray *scalar,
                                    const struct BowstringStream *stream,
                                    struct BowstringArray **out);

// The rows that are not null. On a GPU this synchronises once, as every filter.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_drop_nulls(const struct BowstringArray *values,
                                     const struct BowstringStream *stream,
                                     struct BowstringArray **out);

// Opens a device by its `ArrowDeviceType` and number. The CPU (`ARROW_DEVICE_CPU`, any number) is always there, and so
// is the emulator (`ARROW_DEVICE_EXT_DEV`), which runs the GPU kernels in host memory, slowly. Opening a device twice
// is fine. Does not synchronise.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_device_open(int32_t device_type,
                                      int64_t device_id,
                                      struct BowstringDevice **out);

// Frees a device handle. Arrays and streams of the device live on.
//
// `device` must be NULL or a handle from this library that is not used again.
void bowstring_device_free(struct BowstringDevice *device);

// Sets whether exported memory of a GPU stays untouched, once its consumer has released it, until the work
// has passed that the consumer had put on its stream: the one that it named, if that is a stream of this
// library or a wrapped one of which a handle is still held, else the legacy default stream. It does by
// default, where `kept` is 1: a release says only that the program is through, and kernels may still be
// reading. With 0 a consumer must release only what nothing reads any more. Does not synchronise.
//
// `device` must be NULL or a live handle.
BowstringStatus bowstring_device_set_export_fence(const struct BowstringDevice *device,
                                                  int32_t kept);

// A new stream of the device. On the CPU a stream is a formality: operations run in the call.
//
// `device` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_stream_new(const struct BowstringDevice *device,
                                     struct BowstringStream **out);

// Uses the caller's own stream: a `CUstream` or `hipStream_t` of the device. Everything this library does for an
// operation is put on it and nowhere else. It must outlive the handle and the work put on it; this library never
// destroys it. On the CPU: `BOWSTRING_STATUS_INVALID`.
//
// `device` must be NULL or a live handle, `native` a live stream of that device, `out` NULL or writable.
BowstringStatus bowstring_stream_wrap(const struct BowstringDevice *device,
                                      void *native,
                                      struct BowstringStream **out);

// Blocks until everything put on the stream has passed.
//
// `stream` must be NULL or a live handle.
BowstringStatus bowstring_stream_synchronise(const struct BowstringStream *stream);

// Frees a stream handle. Work put on the stream still runs.
//
// `stream` must be NULL or a handle from this library that is not used again.
void bowstring_stream_free(struct BowstringStream *stream);

// Looks for devices, and examines the CPU and each GPU that it finds, 8 of a kind at most: loads every kernel, tests, compares
// with the CPU, measures. Takes so many seconds at most, nearly; 100 are enough for one GPU. Synchronises.
//
// All of it is done in this process, for a library does not start others by itself: a driver's library
// that crashes ends it, and so does ROCm at a fault of its GPU. `python -m bowstring` and the doctor among
// the Rust examples examine each GPU in a process of its own.
//
// `progress` must be NULL, or a function that may be called with `data`; `out` NULL or writable.
BowstringStatus bowstring_doctor(double seconds,
                                 BowstringProgress progress,
                                 void *data,
                                 struct BowstringReport **out);

// A report as a page for people. It lives as long as the report.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_page(const struct BowstringReport *report, const char **out);

// A report as JSON, with each kernel's time. It lives as long as the report.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_json(const struct BowstringReport *report, const char **out);

// 1 where every device that is here did what it should, else 0.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_is_well(const struct BowstringReport *report, int32_t *out);

// Frees a report.
//
// `report` must be NULL or a handle from this library that is not used again.
void bowstring_report_free(struct BowstringReport *report);

// The column of a name, which is UTF-8 and ends with a 0.
//
// `name` must be NULL or a C string, `out` NULL or writable.
BowstringStatus bowstring_expr_column(const char *name, struct BowstringExpr **out);

// The column of a number, from 0 on.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_nth(uint64_t index, struct BowstringExpr **out);

// The only row of `value`, an array in memory that the host reads, of its type: Boolean, or a number, date or time of 16 bytes at most.
// An array of type Null is a null that takes the type of what it meets.
//
// `value` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_literal(const struct BowstringArray *value,
                                       struct BowstringExpr **out);

// An integer, which takes the type of what it meets.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_int(int64_t value, struct BowstringExpr **out);

// A floating-point number, which takes the type of what it meets: beside a decimal it is what its shortest digits say.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_double(double value,
                                      struct BowstringExpr **out);

// A truth: 0 is false.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_bool(int32_t value, struct BowstringExpr **out);

// Text, which takes the type of what it meets: any of text or of bytes.
//
// `value` must be NULL or a string that ends with 0, `out` NULL or writable.
BowstringStatus bowstring_expr_text(const char *value, struct BowstringExpr **out);

// What an operation, a `BowstringUnary`, makes of an expression.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_unary(int32_t op,
                                     const struct BowstringExpr *x,
                                     struct BowstringExpr **out);

// What an operation, a `BowstringBinary`, makes of two expressions.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_binary(int32_t op,
                                      const struct BowstringExpr *a,
                                      const struct BowstringExpr *b,
                                      struct BowstringExpr **out);

// `then` where `condition` is true, `otherwise` where it is false or null.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_if_else(const struct BowstringExpr *condition,
                                       const struct BowstringExpr *then,
                                       const struct BowstringExpr *otherwise,
                                       struct BowstringExpr **out);

// Whether it is one of the rows of `values`, an array as `bowstring_expr_literal` takes it, but of any length; null where `x` is null,
// or where it is none of them and one of them is null.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_in_list(const struct BowstringExpr *x,
                                       const struct BowstringArray *values,
                                       struct BowstringExpr **out);

// As the type that `to` describes, which is only read. What does not fit is null, or with `strict` other than 0
// `BOWSTRING_STATUS_CAST`.
//
// Handle and schema must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_cast(const struct BowstringExpr *x,
                                    const struct ArrowSchema *to,
                                    int32_t strict,
                                    struct BowstringExpr **out);

// The same under a name, which the result's column has.
//
// `x` must be NULL or a live handle, `name` NULL or a C string, `out` NULL or writable.
BowstringStatus bowstring_expr_alias(const struct BowstringExpr *x,
                                     const char *name,
                                     struct BowstringExpr **out);

// Another handle of the same expression.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_clone(const struct BowstringExpr *x, struct BowstringExpr **out);

// The expression as people write it. The text is the handle's and lives as long.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_to_string(const struct BowstringExpr *x, const char **out);

// Frees an expression.
//
// `x` must be NULL or a handle from this library that is not used again.
void bowstring_expr_free(struct BowstringExpr *x);

// The rows of a batch where `predicate` is true; null is not. `options` may be NULL. On a GPU this synchronises once, as every
// filter. A row that overflows or divides by zero is `BOWSTRING_STATUS_EVALUATION`.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter_where(const struct BowstringBatch *batch,
                                       const struct BowstringExpr *predicate,
                                       const struct BowstringExprOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// A batch of what `count` expressions come to for each row: a column each, named by `bowstring_expr_alias` or as written. `options`
// may be NULL. Synchronises only where a cast in them does. On a GPU a row that overflows or divides by zero is the failure of
// whoever first waits for a column.
//
// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or writable.
BowstringStatus bowstring_evaluate(const struct BowstringBatch *batch,
                                   const struct BowstringExpr *const *exprs,
                                   uint64_t count,
                                   const struct BowstringExprOptions *options,
                                   const struct BowstringStream *stream,
                                   struct BowstringBatch **out);

// One row, in host memory, of what the rows of a batch come to: a column for each of `count` aggregates, of the rows where `condition`
// is true, or of all where it is NULL. `options` may be NULL. On a GPU this synchronises once.
//
// Handles and options must be NULL or live, `aggregates` NULL or point to `count` of them, whose handles and names are, `out` NULL or
// writable.
BowstringStatus bowstring_aggregate(const struct BowstringBatch *batch,
                                    const struct BowstringAggregate *aggregates,
                                    uint64_t count,
                                    const struct BowstringExpr *condition,
                                    const struct BowstringExprOptions *options,
                                    const struct BowstringStream *stream,
                                    struct BowstringBatch **out);

// Each batch with the rows where `predicate` is true, as by `bowstring_filter_where`. `batches` are taken: their handle is left empty,
// and still to be freed; on failure they stay as they were. What is wrong with the predicate is known now. Nothing is read now: when a
// batch is asked for, one is filtered on `stream`; on a GPU up to two more are begun.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter_where(const struct BowstringBatches *batches,
                                               const struct BowstringExpr *predicate,
                                               const struct BowstringExprOptions *options,
                                               const struct BowstringStream *stream,
                                               struct BowstringBatches **out);

// For each batch one of what `count` expressions come to, as by `bowstring_evaluate`; otherwise as `bowstring_batches_filter_where`.
//
// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or writable.
BowstringStatus bowstring_batches_evaluate(const struct BowstringBatches *batches,
                                           const struct BowstringExpr *const *exprs,
                                           uint64_t count,
                                           const struct BowstringExprOptions *options,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatches **out);

// One row, in host memory, of what the rows of all batches come to, as by `bowstring_aggregate`. `batches` are taken, and read to their
// end, now; a row that fails is one of its batch.
//
// Handles and options must be NULL or live, `aggregates` NULL or point to `count` of them, whose handles and names are, `out` NULL or
// writable.
BowstringStatus bowstring_batches_aggregate(const struct BowstringBatches *batches,
                                            const struct BowstringAggregate *aggregates,
                                            uint64_t count,
                                            const struct BowstringExpr *condition,
                                            const struct BowstringExprOptions *options,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatch **out);

// Why this thread's last failed call failed; an empty string before the first one. Valid until the thread's next
// failing call. Never NULL.
const char *bowstring_last_error(void);

// Has functions that this thread calls from now on ask `interrupted`, not more often than every so many
// milliseconds, whether they shall end: for Ctrl-C, a deadline, or a query that was cancelled. Once it says
// so, work on the CPU ends, on all of its threads, before it begins another part of some ten thousand rows:
// the function's status is BOWSTRING_STATUS_INTERRUPTED, and what it was called with is as it was. Work on
// GPUs does not ask, nor do the callbacks of streams that others read. After NULL nothing is asked any more.
// Each thread has a callback of its own.
//
// `interrupted` must be NULL, or a function that may be called with `data` on this thread until another
// takes its place.
BowstringStatus bowstring_set_interrupt(BowstringInterrupted interrupted,
                                        void *data,
                                        uint32_t milliseconds);

// The library's version, as in "0.1.0". Static.
const char *bowstring_version(void);

// Takes over a device stream of struct arrays as batches of `device`. It is moved from (its `release` becomes NULL) and
// released when the handle, or what was made of it, is freed or has ended; also on failure, but for
// `BOWSTRING_STATUS_INVALID` and `BOWSTRING_STATUS_UNSUPPORTED`, which leave it as it was. Only its schema is asked for
// now. Does not synchronise.
//
// The struct must follow the Arrow C device stream interface; using and releasing it on any thread, one at a time,
// must be fine.
BowstringStatus bowstring_batches_import(const struct BowstringDevice *device,
                                         struct ArrowDeviceArrayStream *stream,
                                         struct BowstringBatches **out);

// Takes over a stream of struct arrays in host memory as batches of the CPU; otherwise as `bowstring_batches_import`.
//
// As for `bowstring_batches_import`.
BowstringStatus bowstring_batches_import_host(struct ArrowArrayStream *stream,
                                              struct BowstringBatches **out);

// The schema of all batches. The struct must be uninitialised or a released one: it is overwritten.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_schema(const struct BowstringBatches *batches,
                                         struct ArrowSchema *out);

// The next batch, or NULL at the end. After a failure there is nothing more: the next call says the end. Runs what the
// stream is made of, on this thread: whether it synchronises is up to those operations. Other threads that use the handle
// meanwhile wait; a producer that does so while it is asked for a batch gets `BOWSTRING_STATUS_INVALID`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_next(const struct BowstringBatches *batches,
                                       struct BowstringBatch **out);

// Makes a device stream of the batches, which are then this library's no more: the handle is left empty, and still to
// be freed. The struct must be uninitialised or a released one: it is overwritten. What goes wrong while it is read,
// its `get_last_error` tells. It is read on the consumer's thread, a batch at a time, when the consumer asks.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_export(const struct BowstringBatches *batches,
                                         struct ArrowDeviceArrayStream *out);

// Makes a plain stream of batches in host memory; otherwise as `bowstring_batches_export`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_export_host(const struct BowstringBatches *batches,
                                              struct ArrowArrayStream *out);

// Frees a handle, and releases the stream that it still holds.
//
// `batches` must be NULL or a handle from this library that is not used again.
void bowstring_batches_free(struct BowstringBatches *batches);

// Takes over a device stream of arrays, such as masks or indices; otherwise as `bowstring_batches_import`.
//
// As for `bowstring_batches_import`.
BowstringStatus bowstring_arrays_import(const struct BowstringDevice *device,
                                        struct ArrowDeviceArrayStream *stream,
                                        struct BowstringArrays **out);

// Takes over a stream of arrays in host memory; otherwise as `bowstring_batches_import_host`.
//
// As for `bowstring_batches_import`.
BowstringStatus bowstring_arrays_import_host(struct ArrowArrayStream *stream,
                                             struct BowstringArrays **out);

// The next array, or NULL at the end; as `bowstring_batches_next`.
//
// `arrays` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_arrays_next(const struct BowstringArrays *arrays,
                                      struct BowstringArray **out);

// Makes a device stream of the arrays; as `bowstring_batches_export`.
//
// `arrays` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_arrays_export(const struct BowstringArrays *arrays,
                                        struct ArrowDeviceArrayStream *out);

// Frees a handle, and releases the stream that it still holds.
//
// `arrays` must be NULL or a handle from this library that is not used again.
void bowstring_arrays_free(struct BowstringArrays *arrays);

// Each batch with the rows where the next of `masks` is true. Both are taken: their handles are left empty, and still
// to be freed; on failure they stay as they were. Nothing is read now. When a batch is asked for, one is filtered on
// `stream`, as by `bowstring_filter_batch`; on a GPU up to two more are begun. Masks that end first are an error.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter(const struct BowstringBatches *batches,
                                         const struct BowstringArrays *masks,
                                         const struct BowstringStream *stream,
                                         struct BowstringBatches **out);

// Each batch with the rows where its column number `mask` is true; otherwise as `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter_by(const struct BowstringBatches *batches,
                                            uint64_t mask,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatches **out);

// Each batch's rows at the next of `indices`, as by `bowstring_take_batch`, under a schema all of whose fields are nullable;
// otherwise as `bowstring_batches_filter`.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_take(const struct BowstringBatches *batches,
                                       const struct BowstringArrays *indices,
                                       const struct BowstringTakeOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Each batch with its columns cast to the types of `to`, a schema of as many fields, and under its names; otherwise as
// `bowstring_batches_filter`. `to` is only read.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_cast(const struct BowstringBatches *batches,
                                       const struct ArrowSchema *to,
                                       const struct BowstringCastOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Each batch copied to the device of `stream`, as by `bowstring_batch_to_device`; otherwise as
// `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_to_device(const struct BowstringBatches *batches,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatches **out);

// Each batch copied to host memory, as by `bowstring_batch_to_host`; otherwise as `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_to_host(const struct BowstringBatches *batches,
                                          const struct BowstringStream *stream,
                                          struct BowstringBatches **out);

// Takes over a tensor without a version, dense and of numbers, that is ready for work on `stream`; its memory is shared.
// Only booleans, which are bytes there, are copied. Its rows are the outermost dimension; further ones become lists of a
// fixed size. Its deleter is called once nothing uses it any more, also on failure, but not where an argument is NULL.
// Does not synchronise.
//
// The tensor must be what DLPack says, used and deleted by nobody else; deleting it on any thread must be fine. `stream`
// must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_import_dlpack(struct DLManagedTensor *tensor,
                                              const struct BowstringStream *stream,
                                              struct BowstringArray **out);

// Takes over a tensor with a version; otherwise as `bowstring_array_import_dlpack`.
//
// As for `bowstring_array_import_dlpack`.
BowstringStatus bowstring_array_import_dlpack_versioned(struct DLManagedTensorVersioned *tensor,
                                                        const struct BowstringStream *stream,
                                                        struct BowstringArray **out);

// Makes a tensor without a version of numbers, or of fixed-size lists of them, without nulls. Its memory is shared, and not
// to be written to; only booleans are copied, to bytes. It is ready for work on `stream`, of the array's device; on the CPU
// it is ready. Whoever gets it calls its deleter, once its own work has passed. Synchronises where a device's null count is
// not known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_export_dlpack(const struct BowstringArray *array,
                                              const struct BowstringStream *stream,
                                              struct DLManagedTensor **out);

// Makes a tensor with a version, whose flags say that it is read-only, or a copy; otherwise as
// `bowstring_array_export_dlpack`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_export_dlpack_versioned(const struct BowstringArray *array,
                                                        const struct BowstringStream *stream,
                                                        struct DLManagedTensorVersioned **out);

// Reads all of an array and says whether it is valid Arrow data in every part: offsets in order and in range, views inside
// their buffers, text in UTF-8, keys and type ids inside what they index, run ends ascending, null counts true. What is not
// is BOWSTRING_STATUS_OUT_OF_SPEC, and bowstring_last_error says where. An array that the host cannot read is downloaded on
// `stream` for it, whole. Synchronises.
//
// Import looks at all that the structs say, and at where offsets and run ends start and end: on a device, when the array is
// used. What else stands in the buffers, and the null count, it believes. Operations check what they follow and pass on what
// they only move: call this function before a stranger's data goes on to a consumer that believes what it gets.
// "error": reported at once or by who waits for the result; "passed on": the result is as wrong; "right": the result is
// valid, because what was wrong is not needed for it.
//
// | what is wrong | `filter` | `take` | `drop_nulls` | `concat` | `cast` that follows it | logical nulls |
// | --- | --- | --- | --- | --- | --- | --- |
// | offsets between the first and the last | error or right | error | error | error | error | passed on |
// | views | passed on | passed on | passed on | error; GPU: error or passed on | error; GPU: error or right | passed on |
// | list views | passed on | passed on | passed on | error | error | passed on |
// | dictionary keys | passed on | passed on | error or passed on | error; GPU: passed on | error | error or passed on |
// | run ends before the last | right; GPU: error or right | right | error or right; GPU: error or passed on or right | error; GPU: error or passed on or right | error; GPU: right | error or passed on; GPU: passed on |
// | type ids of sparse unions | passed on | passed on | error or passed on | error; GPU: passed on | - | error or passed on |
// | type ids and offsets of dense unions | passed on | error | error or passed on | error | - | error or passed on |
// | text that is not UTF-8 | passed on | passed on | passed on | error; GPU: passed on | error or right; GPU: error or passed on or right | passed on |
// | null counts | right | right | passed on or right | right; GPU: passed on or right | passed on or right; GPU: passed on | passed on |
//
// An operation that has nothing to do, such as a filter that keeps all rows, passes on everything. Numbers, times and
// decimals may be any bytes.
//
// Handles must be NULL or live.
BowstringStatus bowstring_array_validate(const struct BowstringArray *array,
                                         const struct BowstringStream *stream);

// The same for every column of a batch; and a column whose field is not nullable has no nulls.
//
// Handles must be NULL or live.
BowstringStatus bowstring_batch_validate(const struct BowstringBatch *batch,
                                         const struct BowstringStream *stream);

// As `bowstring_array_import`, for producers whose contents are not to be believed: what `bowstring_array_validate` refuses
// is not imported, and has been released. Synchronises.
//
// See `bowstring_array_import`; `stream` must be NULL or a live handle.
BowstringStatus bowstring_array_import_validated(const struct BowstringDevice *device,
                                                 struct ArrowDeviceArray *array,
                                                 const struct ArrowSchema *schema,
                                                 const struct BowstringStream *stream,
                                                 struct BowstringArray **out);

// As `bowstring_batch_import`, with contents as by `bowstring_batch_validate`; otherwise as
// `bowstring_array_import_validated`.
//
// See `bowstring_array_import_validated`.
BowstringStatus bowstring_batch_import_validated(const struct BowstringDevice *device,
                                                 struct ArrowDeviceArray *array,
                                                 const struct ArrowSchema *schema,
                                                 const struct BowstringStream *stream,
                                                 struct BowstringBatch **out);

// Each batch as it is, once it was found valid, as by `bowstring_batch_validate`; one that is not ends the stream.
// `batches` is taken: its handle is left empty, and still to be freed; on failure it stays as it was. Nothing is read now.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_validate(const struct BowstringBatches *batches,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatches **out);

// Each array as it is, once it was found valid, as by `bowstring_array_validate`; otherwise as `bowstring_batches_validate`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_arrays_validate(const struct BowstringArrays *arrays,
                                          const struct BowstringStream *stream,
                                          struct BowstringArrays **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BOWSTRING_H */

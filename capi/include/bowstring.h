/* bowstring: compute kernels for Apache Arrow device arrays.
 * Generated from capi/src by its test `header`; do not edit.
 *
 * Rules for every function:
 * - It returns a status (0 is success). Results are written to the last parameter, which is untouched on
 *   failure. bowstring_last_error() has the reason of the thread's last failure.
 * - Handles are opaque. The caller owns a handle that it gets through an out parameter, and frees it with the
 *   type's _free function, which accepts NULL. Inputs are borrowed during the call only: they may be freed
 *   right after it, even while a GPU still reads them.
 * - Any function may be called on any thread. Several threads may use one handle at once, except for its
 *   _free function.
 * - A function waits for a GPU (it synchronises) only if its comment says so.
 * - A NULL pointer that is required is BOWSTRING_STATUS_INVALID; no exception or panic reaches the caller.
 * - Later versions may add fields to the end of a struct with a `size`. A field that the caller's struct lacks is
 *   0, its default; a field that the library lacks must be 0.
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

/* The Arrow project calls this interface experimental, and it may change. */
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

/* Defined by `dlpack.h` of the DLPack project. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;


// Sorts in descending order; a flag of the orders that sorting functions take.
#define BOWSTRING_SORT_DESCENDING 1

// Puts nulls last, and not first; a flag of the orders that sorting functions take.
#define BOWSTRING_SORT_NULLS_LAST 2

// Returns all rows; a limit of sorting functions.
#define BOWSTRING_ALL_ROWS UINT64_MAX

// The result of a function. The failures are sorted by who must act.
enum BowstringStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The call succeeded and has written its results.
  BOWSTRING_STATUS_OK = 0,
  // The arguments are NULL, or do not fit together.
  BOWSTRING_STATUS_INVALID = 1,
  // The arguments are valid, but this library does not support the operation on that device.
  BOWSTRING_STATUS_UNSUPPORTED = 2,
  // A producer's struct violated the Arrow C data interface. The struct has been released.
  BOWSTRING_STATUS_OUT_OF_SPEC = 3,
  // Memory ran out, or the pool's limit was reached.
  BOWSTRING_STATUS_OUT_OF_MEMORY = 4,
  // An index points outside of what it indexes.
  BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS = 5,
  // A value does not fit the type it was cast to, and the cast was strict.
  BOWSTRING_STATUS_CAST = 6,
  // A call into a device runtime failed, or the runtime rejected the kernels.
  BOWSTRING_STATUS_DRIVER = 7,
  // The machine has no such device.
  BOWSTRING_STATUS_NO_DEVICE = 8,
  // A foreign stream failed; bowstring_last_error has its code and message.
  BOWSTRING_STATUS_PRODUCER = 9,
  // An error that no other status describes.
  BOWSTRING_STATUS_OTHER = 10,
  // A bug in this library. Objects that the call worked on may be incomplete; the library remains usable.
  BOWSTRING_STATUS_PANIC = 11,
  // A row of an expression overflows or divides by zero; bowstring_last_error names the expression and the
  // row.
  BOWSTRING_STATUS_EVALUATION = 12,
  // The callback of bowstring_set_interrupt ended the call.
  BOWSTRING_STATUS_INTERRUPTED = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringStatus BowstringStatus;
#else
typedef int32_t BowstringStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An operation on one expression.
enum BowstringUnary
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The negation of a Boolean.
  BOWSTRING_UNARY_NOT = 0,
  // The value with the opposite sign.
  BOWSTRING_UNARY_NEGATE = 1,
  // Whether the value is null.
  BOWSTRING_UNARY_IS_NULL = 2,
  // Whether the value is not null.
  BOWSTRING_UNARY_IS_NOT_NULL = 3,
  // Whether the value is true; false for null.
  BOWSTRING_UNARY_IS_TRUE = 4,
  // Whether the value is false or null.
  BOWSTRING_UNARY_IS_NOT_TRUE = 5,
  // Whether the value is false; false for null.
  BOWSTRING_UNARY_IS_FALSE = 6,
  // Whether the value is true or null.
  BOWSTRING_UNARY_IS_NOT_FALSE = 7,
  // The year of a date or of a timestamp without a time zone. This and the parts below are Int32.
  BOWSTRING_UNARY_YEAR = 8,
  // The month, from 1 to 12.
  BOWSTRING_UNARY_MONTH = 9,
  // The day of the month, from 1 to 31.
  BOWSTRING_UNARY_DAY = 10,
  // The hour, from 0 to 23, of a date, a timestamp without a time zone, or a time.
  BOWSTRING_UNARY_HOUR = 11,
  // The minute of the hour, from 0 to 59.
  BOWSTRING_UNARY_MINUTE = 12,
  // The second of the minute, from 0 to 59.
  BOWSTRING_UNARY_SECOND = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringUnary BowstringUnary;
#else
typedef int32_t BowstringUnary;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An operation on two expressions.
enum BowstringBinary
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Whether both are equal. Like the comparisons below it is null if either side is null; the last two
  // (DISTINCT, NOT_DISTINCT) never are.
  BOWSTRING_BINARY_EQ = 0,
  // Whether both differ; null if either is null.
  BOWSTRING_BINARY_NOT_EQ = 1,
  // Whether the first is less than the second.
  BOWSTRING_BINARY_LT = 2,
  // Whether the first is less than or equal to the second.
  BOWSTRING_BINARY_LT_EQ = 3,
  // Whether the first is greater than the second.
  BOWSTRING_BINARY_GT = 4,
  // Whether the first is greater than or equal to the second.
  BOWSTRING_BINARY_GT_EQ = 5,
  // Whether both differ, where a null equals a null and no other value.
  BOWSTRING_BINARY_DISTINCT = 6,
  // The negation of `BOWSTRING_BINARY_DISTINCT`.
  BOWSTRING_BINARY_NOT_DISTINCT = 7,
  // Kleene's and: false if either side is false, even if the other is null.
  BOWSTRING_BINARY_AND = 8,
  // Kleene's or: true if either side is true, even if the other is null.
  BOWSTRING_BINARY_OR = 9,
  // The sum of both values.
  BOWSTRING_BINARY_ADD = 10,
  // The first value minus the second.
  BOWSTRING_BINARY_SUBTRACT = 11,
  // The product of both values.
  BOWSTRING_BINARY_MULTIPLY = 12,
  // The quotient; that of integers is rounded towards zero.
  BOWSTRING_BINARY_DIVIDE = 13,
  // The remainder of the division; it has the sign of the first value.
  BOWSTRING_BINARY_REMAINDER = 14,
  // The first value, or the second if the first is null.
  BOWSTRING_BINARY_COALESCE = 15,
  // The first value, or null if both are equal.
  BOWSTRING_BINARY_NULL_IF = 16,
  // Whether the first value, text or bytes, starts with the second.
  BOWSTRING_BINARY_STARTS_WITH = 17,
  // Whether the first value, text or bytes, ends with the second.
  BOWSTRING_BINARY_ENDS_WITH = 18,
  // Whether the first value, text or bytes, contains the second.
  BOWSTRING_BINARY_CONTAINS = 19,
  // Whether the first value, text, matches the pattern in the second: `%` matches any text, `_` matches
  // any one character, and a backslash takes the next character literally.
  BOWSTRING_BINARY_LIKE = 20,
  // Like `BOWSTRING_BINARY_LIKE`, ignoring case.
  BOWSTRING_BINARY_I_LIKE = 21,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringBinary BowstringBinary;
#else
typedef int32_t BowstringBinary;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A function that aggregates many rows into one value.
enum BowstringFunction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The number of rows. It takes no expression.
  BOWSTRING_FUNCTION_COUNT_ALL = 0,
  // The number of values that are not null.
  BOWSTRING_FUNCTION_COUNT = 1,
  // The sum of the values that are not null; null if all are. The functions below skip nulls in the same
  // way.
  BOWSTRING_FUNCTION_SUM = 2,
  // The minimum of the values, of any type that can be sorted.
  BOWSTRING_FUNCTION_MIN = 3,
  // The maximum of the values, of any type that can be sorted.
  BOWSTRING_FUNCTION_MAX = 4,
  // The mean of the values.
  BOWSTRING_FUNCTION_MEAN = 5,
  // Whether all values are true.
  BOWSTRING_FUNCTION_BOOL_AND = 6,
  // Whether any value is true.
  BOWSTRING_FUNCTION_BOOL_OR = 7,
  // The bits that are set in all integers.
  BOWSTRING_FUNCTION_BIT_AND = 8,
  // The bits that are set in any integer.
  BOWSTRING_FUNCTION_BIT_OR = 9,
  // The bits that are set in an odd number of integers.
  BOWSTRING_FUNCTION_BIT_XOR = 10,
  // The first of the values.
  BOWSTRING_FUNCTION_FIRST = 11,
  // The last of the values.
  BOWSTRING_FUNCTION_LAST = 12,
  // The value of the first row, which may be null.
  BOWSTRING_FUNCTION_FIRST_VALUE = 13,
  // The value of the last row, which may be null.
  BOWSTRING_FUNCTION_LAST_VALUE = 14,
  // The variance of the numbers: the sum of their squared distances to their mean, divided by their number
  // less `parameter`, which is 0 for a population and 1 for a sample.
  BOWSTRING_FUNCTION_VARIANCE = 15,
  // The square root of the variance.
  BOWSTRING_FUNCTION_STDDEV = 16,
  // The number of different values.
  BOWSTRING_FUNCTION_COUNT_DISTINCT = 17,
  // The median of the numbers.
  BOWSTRING_FUNCTION_MEDIAN = 18,
  // The number below which a part of the numbers lies, which is `parameter`, from 0 to 1.
  BOWSTRING_FUNCTION_QUANTILE = 19,
  // The list of the values, nulls included.
  BOWSTRING_FUNCTION_ARRAY_AGG = 20,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringFunction BowstringFunction;
#else
typedef int32_t BowstringFunction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The rank of rows that are equal.
enum BowstringTies
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The highest of their places.
  BOWSTRING_TIES_HIGHEST = 0,
  // The lowest of their places, as SQL's `RANK()`.
  BOWSTRING_TIES_LOWEST = 1,
  // One more than that of the rows before them, as SQL's `DENSE_RANK()`.
  BOWSTRING_TIES_DENSE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringTies BowstringTies;
#else
typedef int32_t BowstringTies;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The rows that a join returns.
enum BowstringJoinKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The pairs of rows whose keys are equal.
  BOWSTRING_JOIN_KIND_INNER = 0,
  // The pairs, and the left rows without a partner.
  BOWSTRING_JOIN_KIND_LEFT = 1,
  // The pairs, and the right rows without a partner.
  BOWSTRING_JOIN_KIND_RIGHT = 2,
  // The pairs, and the rows of both sides without a partner.
  BOWSTRING_JOIN_KIND_FULL = 3,
  // The left rows that have a partner.
  BOWSTRING_JOIN_KIND_LEFT_SEMI = 4,
  // The right rows that have a partner.
  BOWSTRING_JOIN_KIND_RIGHT_SEMI = 5,
  // The left rows that have none.
  BOWSTRING_JOIN_KIND_LEFT_ANTI = 6,
  // The right rows that have none.
  BOWSTRING_JOIN_KIND_RIGHT_ANTI = 7,
  // All left rows, and a column `mark` that tells whether they have a partner.
  BOWSTRING_JOIN_KIND_LEFT_MARK = 8,
  // All right rows, and a column `mark` that tells whether they have a partner.
  BOWSTRING_JOIN_KIND_RIGHT_MARK = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringJoinKind BowstringJoinKind;
#else
typedef int32_t BowstringJoinKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// One end of a frame.
enum BowstringBound
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The first or the last row of the partition.
  BOWSTRING_BOUND_UNBOUNDED = 0,
  // The row at a distance.
  BOWSTRING_BOUND_ROW = 1,
  // The first or the last of the rows that are equal in the order.
  BOWSTRING_BOUND_PEERS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BowstringBound BowstringBound;
#else
typedef int32_t BowstringBound;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An array, with the name, nullability and metadata of its field.
struct BowstringArray;

// A stream of arrays with one type, such as the masks for a stream of batches.
struct BowstringArrays;

// The consumer's end of an asynchronous stream, before its schema has been waited for.
struct BowstringAsyncBatches;

// A record batch: named arrays of equal length.
struct BowstringBatch;

// A stream of batches with one schema. A batch is read only when it is requested.
struct BowstringBatches;

// A device: the place where arrays are and operations run.
struct BowstringDevice;

// A value computed for each row of a batch. An expression shares the expressions that it was built from, so
// their handles may be freed. One that is nested more than 200 deep, or has more than 20000 parts or 256 MiB
// of values, is `BOWSTRING_STATUS_INVALID`.
struct BowstringExpr;

// Rows that others find by their keys: one side of a join, made once for any number of other sides.
struct BowstringJoinTable;

// A join whose left side is prepared: right rows are joined batch by batch.
struct BowstringPreparedJoin;

// The results of an examination by the doctor.
struct BowstringReport;

// A mask that is prepared once. It filters any number of arrays and batches, and any number of threads may
// use it at once; their work goes to its stream in the order of the calls.
struct BowstringSelection;

// A stream of a device, which runs its work in order.
struct BowstringStream;

// Rows in partitions, each in an order, as SQL's `OVER (PARTITION BY … ORDER BY …)` has them. All results
// have a value for each row, in the rows' own order.
struct BowstringWindows;

// Options for taking rows. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields
// that differ from the default.
struct BowstringTakeOptions {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringTakeOptions)`.
  size_t size;
  // 0 (the default): an index out of bounds fails with `BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS`. 1: it gives
  // a null row.
  int32_t out_of_bounds_is_null;
};

// Options for casts. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that
// differ from the default.
struct BowstringCastOptions {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringCastOptions)`.
  size_t size;
  // 0 (the default): a value that does not fit becomes null. 1: it fails with `BOWSTRING_STATUS_CAST`.
  int32_t strict;
};

// Reports the progress of an examination, on the thread that called bowstring_doctor. `what` names the
// current step and is valid during the call only; `done` of the step's `of` parts are complete.
typedef void (*BowstringProgress)(const char *what, size_t done, size_t of, void *data);

// Options for evaluating expressions. Initialise the struct with zeros, set `size` to its `sizeof`, then set
// the fields that differ from the default.
struct BowstringExprOptions {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringExprOptions)`.
  size_t size;
  // An integer result that does not fit its type: 0 (the default) fails with
  // `BOWSTRING_STATUS_EVALUATION`; 1 keeps the low bits; 2 gives null. A decimal that does not fit fails
  // for 0 and 1, and gives null for 2.
  int32_t overflow;
  // 0 (the default): a division by zero fails with `BOWSTRING_STATUS_EVALUATION`. 1: it gives null. A
  // division of floats always has a result.
  int32_t division_by_zero_is_null;
  // 0 (the default): floats are compared by their total order. 1: they are compared as in SQL, where both
  // zeros are equal, all NaNs are equal, and NaN is greatest.
  int32_t floats_as_sql;
  // For functions that group: sets of keys to group by. Each is a word whose bit `i` is set if key `i` is
  // in the set. NULL (the default) for one set of all keys.
  const uint64_t *key_sets;
  // The number of sets; 0 (the default) with NULL.
  uint64_t key_set_count;
};

// An aggregate: a function, its argument, and the name of its column.
struct BowstringAggregate {
  // The function, a `BowstringFunction`.
  int32_t function;
  // The function's argument. It is ignored for `BOWSTRING_FUNCTION_COUNT_ALL` and may then be NULL.
  const struct BowstringExpr *of;
  // Only rows for which this is true count; NULL means all rows.
  const struct BowstringExpr *filter;
  // A number that some functions need, and the others ignore.
  double parameter;
  // The name of the result's column, in UTF-8. NULL names the column after the function and its
  // expression.
  const char *name;
};

// Options for dropping nulls. Initialise the struct with zeros, set `size` to its `sizeof`, then set the
// fields that differ from the default.
struct BowstringDropOptions {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringDropOptions)`.
  size_t size;
  // 0 (the default): a null in any column drops the row. 1: only nulls in all columns do.
  int32_t only_if_all;
  // The positions of the columns that decide, counted from 0; NULL (the default) for all columns.
  const uint64_t *columns;
  // The number of these positions.
  uint64_t count;
};

// Options for a join. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that
// differ from the default.
struct BowstringJoinOptions {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringJoinOptions)`.
  size_t size;
  // The rows that are returned, a `BowstringJoinKind`; `BOWSTRING_JOIN_KIND_INNER`, 0, is the default.
  int32_t kind;
  // 0 (the default): a null key equals nothing. 1: it equals other null keys.
  int32_t nulls_equal;
  // 1: an anti join is SQL's `NOT IN`: no key of the other side may be null, and nor may a row's own,
  // unless the other side has no rows. For one key, and without a filter. 0 is the default.
  int32_t null_aware;
  // 1: keys that are floats, and those in `filter`, are equal as in SQL: -0.0 equals 0.0, and all NaNs are
  // equal. 0 (the default): if their bits are.
  int32_t floats_as_sql;
  // A condition over the left columns and then the right ones that a pair must meet besides; NULL (the
  // default) for none.
  const struct BowstringExpr *filter;
};

// Says whether the thread's current work must end: 0 lets it continue, any other value ends it. It is called
// on that thread, in the middle of a function of this library, and must not leave by `longjmp` or an
// exception. Functions of this library that the callback calls do not ask it.
typedef int32_t (*BowstringInterrupted)(void *data);

// A window frame: the rows of its partition that an aggregate covers for a row, both ends included.
// Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that differ from the
// default.
struct BowstringFrame {
  // The size of the caller's struct in bytes, `sizeof(struct BowstringFrame)`.
  size_t size;
  // The kind of the first row, a `BowstringBound`; `BOWSTRING_BOUND_UNBOUNDED`, 0, is the default.
  int32_t start;
  // The kind of the last row, a `BowstringBound`; `BOWSTRING_BOUND_UNBOUNDED`, 0, is the default.
  int32_t end;
  // The number of rows from the row itself to the first row of its frame, if `start` is
  // `BOWSTRING_BOUND_ROW`: negative before it.
  int64_t start_by;
  // The number of rows from the row itself to the last row of its frame, if `end` is
  // `BOWSTRING_BOUND_ROW`.
  int64_t end_by;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Imports an array of `device`. Copies nothing and does not synchronise. This takes `array`: its `release`
// becomes NULL, and the library releases the array when nothing uses it any more, and on failure too. Only
// `BOWSTRING_STATUS_INVALID` and `BOWSTRING_STATUS_UNSUPPORTED` may leave `array` unchanged: its `release`
// is then not NULL, and the caller must release it. `schema` is only read and stays the caller's.
//
// Any `device` may import host memory (`ARROW_DEVICE_CPU`). The library checks what the structs state and
// believes the contents of the buffers; bowstring_array_validate has the details.
// bowstring_array_import_validated checks the contents too.
//
// The structs must follow the Arrow C device data interface. Any thread may release the array.
BowstringStatus bowstring_array_import(const struct BowstringDevice *device,
                                       struct ArrowDeviceArray *array,
                                       const struct ArrowSchema *schema,
                                       struct BowstringArray **out);

// Exports an array and its schema. The handle stays valid. Both structs are overwritten, so they must be
// uninitialised or released; the caller releases them. Either may be NULL if it is not wanted. `null_count`
// is -1 if only a device knows it.
//
// The consumer must wait for `sync_event` unless it is NULL. Synchronises only if the array is a copy to
// host memory that has not finished, because host memory has no event to pass on.
//
// `array` must be NULL or a live handle, the structs NULL or writable.
BowstringStatus bowstring_array_export(const struct BowstringArray *array,
                                       struct ArrowDeviceArray *out_array,
                                       struct ArrowSchema *out_schema);

// Returns the number of rows.
//
// `array` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_length(const struct BowstringArray *array, uint64_t *out);

// Returns the device that the array is on: its `ArrowDeviceType`, and its number, which is -1 for the CPU.
//
// `array` must be NULL or a live handle, both results NULL or writable.
BowstringStatus bowstring_array_device(const struct BowstringArray *array,
                                       int32_t *device_type,
                                       int64_t *device_id);

// Returns `length` rows of an array, starting at row `offset`. Copies nothing.
//
// `array` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_slice(const struct BowstringArray *array,
                                      uint64_t offset,
                                      uint64_t length,
                                      struct BowstringArray **out);

// Blocks until the array may be read. Returns the error if the data made the operation fail, such as an
// index out of bounds or a value that did not fit in a strict cast.
//
// `array` must be NULL or a live handle.
BowstringStatus bowstring_array_wait(const struct BowstringArray *array);

// Returns the array on the device of `stream`. Copies an array that is in host memory; one that is on the
// device already is shared. Waits for work that still writes the host memory, and, if it uploads more
// than 256 MiB, until the device has copied the first of them.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_to_device(const struct BowstringArray *array,
                                          const struct BowstringStream *stream,
                                          struct BowstringArray **out);

// Returns the array in host memory. Copies an array that is on the device of `stream`; one that is in host
// memory already is shared. Synchronises once if only the device knows an extent, of an imported array's
// text or views. Waits for all bytes if there are more than 256 MiB. Exporting the copy waits for it.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_to_host(const struct BowstringArray *array,
                                        const struct BowstringStream *stream,
                                        struct BowstringArray **out);

// Frees an array handle. Memory that other handles or consumers use stays valid. NULL is ignored.
//
// `array` must be NULL or a handle from this library that is not used again.
void bowstring_array_free(struct BowstringArray *array);

// Creates a handler for a producer of struct arrays on `device`, and the handle that receives what the
// producer sends. When the producer has given the schema, the library requests `queue` batches (at least
// one), and one more for each batch that is taken. A producer that sends more than was requested is stopped;
// the stream then ends with BOWSTRING_STATUS_OUT_OF_SPEC, after the batches that were requested.
//
// The handler serves one producer, which calls its `release` at the end; the library then frees it. If no
// producer gets the handler, the caller must call `release`. `handler` is untouched on failure. Does not
// synchronise.
//
// `device` must be NULL or a live handle, `handler` and `out` NULL or writable. The producer must follow the
// interface; the arrays that it sends may be used and released on any thread.
BowstringStatus bowstring_async_batches_new(const struct BowstringDevice *device,
                                            uint64_t queue,
                                            struct ArrowAsyncDeviceStreamHandler **handler,
                                            struct BowstringAsyncBatches **out);

// Blocks until the producer has given the schema, and returns the stream of its batches. Asking that stream
// for the next batch blocks until the batch has arrived. A producer on the calling thread must therefore
// have given the schema before.
//
// The handle `batches` is left empty; the caller must still free it. A producer that fails before its schema
// gives BOWSTRING_STATUS_PRODUCER or BOWSTRING_STATUS_OUT_OF_SPEC, and so does one that releases the handler
// before it.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_async_batches_wait(const struct BowstringAsyncBatches *batches,
                                             struct BowstringBatches **out);

// Blocks until the producer has given the schema, and returns the producer's `additional_metadata` for the
// stream: a copy in the same encoding, or NULL if it has none. The handle owns the copy, which is valid
// until the handle is freed. Call this before `bowstring_async_batches_wait`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_async_batches_metadata(const struct BowstringAsyncBatches *batches,
                                                 const char **out);

// Frees a handle. A producer that is still sending to it is told to stop through its `cancel`; anything that
// it sends after that is released. NULL is ignored.
//
// `batches` must be NULL or a handle from this library that is not used again.
void bowstring_async_batches_free(struct BowstringAsyncBatches *batches);

// Sends the batches to a consumer's handler. A thread of this library reads a batch whenever the consumer
// requests one, and calls the handler's `release` at the end. Errors go to the handler's `on_error`. The
// handle `batches` is left empty; the caller must still free it. On failure the handler is untouched, except
// for BOWSTRING_STATUS_NO_DEVICE, which means that no thread could be created: the handler has then been
// told and released.
//
// A consumer that neither takes all batches nor cancels keeps the thread asleep, and the remaining batches
// in memory, forever.
//
// The metadata of each batch (bowstring_batch_metadata) is sent along with it. `metadata` is the metadata of
// the stream: NULL, or pairs in the encoding of ArrowSchema.metadata, which are copied.
//
// The handler's producer stays valid until `release` has been called, all tasks are extracted, and the
// arrays that they gave are released.
//
// `batches` must be NULL or a live handle, `metadata` NULL or metadata. The handler must be NULL, or follow
// the interface and stay valid until it is released; any thread may call it.
BowstringStatus bowstring_batches_export_async(const struct BowstringBatches *batches,
                                               const char *metadata,
                                               struct ArrowAsyncDeviceStreamHandler *handler);

// Imports a struct array as a batch; otherwise like `bowstring_array_import`.
//
// The requirements of `bowstring_array_import` apply.
BowstringStatus bowstring_batch_import(const struct BowstringDevice *device,
                                       struct ArrowDeviceArray *array,
                                       const struct ArrowSchema *schema,
                                       struct BowstringBatch **out);

// Exports a batch as a struct array; otherwise like `bowstring_array_export`.
//
// `batch` must be NULL or a live handle, the structs NULL or writable.
BowstringStatus bowstring_batch_export(const struct BowstringBatch *batch,
                                       struct ArrowDeviceArray *out_array,
                                       struct ArrowSchema *out_schema);

// Returns the number of rows.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_length(const struct BowstringBatch *batch, uint64_t *out);

// Returns column `index`, which counts from 0, as an array. Copies nothing.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_column(const struct BowstringBatch *batch,
                                       uint64_t index,
                                       struct BowstringArray **out);

// Blocks until the batch may be read. Returns the error if the data made the operation fail, such as an
// index out of bounds or a value that did not fit in a strict cast.
//
// `batch` must be NULL or a live handle.
BowstringStatus bowstring_batch_wait(const struct BowstringBatch *batch);

// Returns the batch on the device of `stream`. Copies columns that are in host memory; those that are on the
// device already are shared. Waits for work that still writes the host memory, and, if it uploads more
// than 256 MiB, until the device has copied the first of them.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batch_to_device(const struct BowstringBatch *batch,
                                          const struct BowstringStream *stream,
                                          struct BowstringBatch **out);

// Returns the batch in host memory. Copies columns that are on the device of `stream`; those that are in
// host memory already are shared. Synchronises once if only the device knows an extent, of an imported
// array's text or views. Waits for all bytes if there are more than 256 MiB. Exporting the copy waits for
// it.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batch_to_host(const struct BowstringBatch *batch,
                                        const struct BowstringStream *stream,
                                        struct BowstringBatch **out);

// Frees a batch handle. Memory that other handles or consumers use stays valid. NULL is ignored.
//
// `batch` must be NULL or a handle from this library that is not used again.
void bowstring_batch_free(struct BowstringBatch *batch);

// Returns the batch's own metadata, which its schema does not contain: pairs in the encoding of
// ArrowSchema.metadata, or NULL if there is none. It comes from the producer of an asynchronous stream, or
// from `bowstring_batch_with_metadata`. Operations that select, order or convert the rows of one batch copy
// it to their results. The handle owns it, and it is valid until the handle is freed.
//
// `batch` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batch_metadata(const struct BowstringBatch *batch,
                                         const char **out);

// Returns the batch with other metadata; copies no column. `metadata` has pairs in the encoding of
// ArrowSchema.metadata, which are copied, or is NULL for none. An asynchronous stream passes the metadata to
// its consumer.
//
// `batch` must be NULL or a live handle, `metadata` NULL or metadata, `out` NULL or writable.
BowstringStatus bowstring_batch_with_metadata(const struct BowstringBatch *batch,
                                              const char *metadata,
                                              struct BowstringBatch **out);

// Returns the rows of `values` for which `mask`, an array of booleans of equal length, is true. A null in
// the mask drops the row. A shorter mask is `BOWSTRING_STATUS_INVALID`; arrow-rs drops the rows beyond its
// end instead. On a GPU this synchronises once, because the number of kept rows depends on the data.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter(const struct BowstringArray *values,
                                 const struct BowstringArray *mask,
                                 const struct BowstringStream *stream,
                                 struct BowstringArray **out);

// Filters the rows of every column by `mask`; otherwise like `bowstring_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter_batch(const struct BowstringBatch *batch,
                                       const struct BowstringArray *mask,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// Prepares a mask, an array of booleans, for many arrays on one stream. On a GPU this synchronises once.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_new(const struct BowstringArray *mask,
                                        const struct BowstringStream *stream,
                                        struct BowstringSelection **out);

// Returns the number of rows that the selection keeps.
//
// `selection` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_selection_length(const struct BowstringSelection *selection,
                                           uint64_t *out);

// Returns the rows of `values` that the selection keeps. `values` must be as long as the mask. The work runs
// on the selection's stream. On a GPU this synchronises once for text, lists and the like, for booleans, and
// for all arrays that may have nulls (lists of runs take more). Numbers that have no validity bitmap do not
// synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_filter(const struct BowstringSelection *selection,
                                           const struct BowstringArray *values,
                                           struct BowstringArray **out);

// Filters the rows of every column; otherwise like `bowstring_selection_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_selection_filter_batch(const struct BowstringSelection *selection,
                                                 const struct BowstringBatch *batch,
                                                 struct BowstringBatch **out);

// Frees a selection. NULL is ignored.
//
// `selection` must be NULL or a handle from this library that is not used again.
void bowstring_selection_free(struct BowstringSelection *selection);

// Returns the rows of `values` at `indices`, an array of any integer type. A null index gives a null row. A
// negative index is out of bounds; it does not count from the end. Indices into an array of type Null are
// checked too, which arrow-rs does not do. `options` may be NULL. Synchronises only for types whose size a
// GPU must find out first. On a GPU an index out of bounds is reported by the first call that waits for the
// result (bowstring_array_wait); until then it gives a null row.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_take(const struct BowstringArray *values,
                               const struct BowstringArray *indices,
                               const struct BowstringTakeOptions *options,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// Takes the rows of every column at `indices`; otherwise like `bowstring_take`. If an index may be null, or
// become null because it is out of bounds, the fields of the result are nullable.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_take_batch(const struct BowstringBatch *batch,
                                     const struct BowstringArray *indices,
                                     const struct BowstringTakeOptions *options,
                                     const struct BowstringStream *stream,
                                     struct BowstringBatch **out);

// Casts the values to the type that `to` describes. The result has the name of `values` and the metadata of
// `to`, which names the extension type if it is one. `to` is only read. `options` may be NULL. On a GPU a
// failure of a strict cast is reported by the first call that waits for the result (bowstring_array_wait).
//
// Synchronises only if a GPU needs to know something that depends on the data: for views, for bytes cast to
// text, for values and lists cast to text, and for the items of lists in a cast that may fail.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_cast(const struct BowstringArray *values,
                               const struct ArrowSchema *to,
                               const struct BowstringCastOptions *options,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// Casts every column to the type of the field of `to` at the same position. `to` must have as many fields as
// the batch has columns; the result has its names. Otherwise like `bowstring_cast`. Nulls under a field of
// `to` that is not nullable are `BOWSTRING_STATUS_INVALID`. On a GPU a value that does not fit in a strict
// cast, or a null that has not been counted, is reported by the first call that waits for the column.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_cast_batch(const struct BowstringBatch *batch,
                                     const struct ArrowSchema *to,
                                     const struct BowstringCastOptions *options,
                                     const struct BowstringStream *stream,
                                     struct BowstringBatch **out);

// Concatenates `count` arrays of one type in their order. The result has the name and the metadata of the
// first, and is nullable if any of them is. On a GPU this synchronises once for each level of text, lists or
// runs.
//
// Handles must be NULL or live, `arrays` NULL or point to `count` of them, `out` NULL or writable.
BowstringStatus bowstring_concat(const struct BowstringArray *const *arrays,
                                 uint64_t count,
                                 const struct BowstringStream *stream,
                                 struct BowstringArray **out);

// Concatenates `count` batches in their order. They must have columns of the same names and types. A column
// of the result is nullable if it is in any batch. The columns synchronise together; otherwise like
// `bowstring_concat`.
//
// Handles must be NULL or live, `batches` NULL or point to `count` of them, `out` NULL or writable.
BowstringStatus bowstring_concat_batch(const struct BowstringBatch *const *batches,
                                       uint64_t count,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// Opens a device by its `ArrowDeviceType` and number. The CPU (`ARROW_DEVICE_CPU`, any number) is always
// present. So is the emulator (`ARROW_DEVICE_EXT_DEV`), which runs the GPU kernels in host memory, slowly. A
// device may be opened several times. Does not synchronise.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_device_open(int32_t device_type,
                                      int64_t device_id,
                                      struct BowstringDevice **out);

// Frees a device handle. Arrays and streams of the device stay valid. The last of its handles and streams
// waits for its work. NULL is ignored.
//
// `device` must be NULL or a handle from this library that is not used again.
void bowstring_device_free(struct BowstringDevice *device);

// Sets whether GPU memory that a consumer has released stays untouched until the work that the consumer had
// put on its stream has passed. It does so by default (`kept` is 1), because a release says only that the
// program is done, and kernels may still be reading. With 0 a consumer must release only memory that nothing
// reads any more. Does not synchronise.
//
// The stream is the one that the consumer named, if that is a stream of this library, or a wrapped one of
// which a handle is still held. Otherwise it is the legacy default stream.
//
// `device` must be NULL or a live handle.
BowstringStatus bowstring_device_set_export_fence(const struct BowstringDevice *device,
                                                  int32_t kept);

// Bounds the unused memory that is kept for later; kept memory beyond it is freed now. Does not synchronise.
//
// `device` must be NULL or a live handle.
BowstringStatus bowstring_device_set_memory_kept(const struct BowstringDevice *device,
                                                 uint64_t bytes);

// Loads the kernels of operations, which otherwise are loaded when an operation first needs them: that takes
// the operation 10 to 500 ms for each on CUDA, unless the driver finds in its cache on disk what it compiled
// before. `kernels` is "filter", "take", "cast", "text" (casts from and to text), "expressions", "sort",
// "group" or "join"; NULL means all of them. `loaded` receives the number of images that were loaded; it may
// be NULL. Blocks, and uses as many threads as the CPU's operations. The emulator and the CPU have no
// images.
//
// `device` must be NULL or a live handle, `kernels` NULL or text that ends with a zero, `loaded` NULL or
// writable.
BowstringStatus bowstring_device_prepare(const struct BowstringDevice *device,
                                         const char *kernels,
                                         int64_t *loaded);

// Creates a stream of the device. On the CPU a stream has no effect: operations run inside the call.
//
// `device` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_stream_new(const struct BowstringDevice *device,
                                     struct BowstringStream **out);

// Makes a handle of the caller's own stream, a `CUstream` or `hipStream_t` of the device. The library puts
// all work of an operation on that stream and on no other. The stream must outlive the handle and the work
// put on it; the library never destroys it. On the CPU this is `BOWSTRING_STATUS_INVALID`.
//
// `device` must be NULL or a live handle, `native` a live stream of that device, `out` NULL or writable.
BowstringStatus bowstring_stream_wrap(const struct BowstringDevice *device,
                                      void *native,
                                      struct BowstringStream **out);

// Blocks until all work put on the stream has finished.
//
// `stream` must be NULL or a live handle.
BowstringStatus bowstring_stream_synchronise(const struct BowstringStream *stream);

// Frees a stream handle. Work already put on the stream still runs. The last of the handles and streams of a
// device waits for its work. NULL is ignored.
//
// `stream` must be NULL or a handle from this library that is not used again.
void bowstring_stream_free(struct BowstringStream *stream);

// Finds devices, and examines the CPU and each GPU, at most 8 of a kind: loads every kernel, runs tests,
// compares results with the CPU, and measures. The examination takes about `seconds` at most; 100 are enough
// for one GPU. `progress` may be NULL. Synchronises.
//
// Everything runs in this process, because a library does not start other processes by itself. If a driver's
// library crashes, the process ends; ROCm ends it as well when its GPU faults. `python -m bowstring` and the
// doctor among the Rust examples examine each GPU in a process of its own.
//
// `progress` must be NULL, or a function that may be called with `data`; `out` NULL or writable.
BowstringStatus bowstring_doctor(double seconds,
                                 BowstringProgress progress,
                                 void *data,
                                 struct BowstringReport **out);

// Returns the report as readable text. The report owns the text, which is valid until the report is freed.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_page(const struct BowstringReport *report,
                                      const char **out);

// Returns the report as JSON, including the time of each kernel. The report owns the text, which is valid
// until the report is freed.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_json(const struct BowstringReport *report,
                                      const char **out);

// Writes 1 if every device that was found passed the examination, else 0.
//
// `report` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_report_is_well(const struct BowstringReport *report, int32_t *out);

// Frees a report. NULL is ignored.
//
// `report` must be NULL or a handle from this library that is not used again.
void bowstring_report_free(struct BowstringReport *report);

// Refers to a column by its name, a UTF-8 string that ends with a 0.
//
// `name` must be NULL or a C string, `out` NULL or writable.
BowstringStatus bowstring_expr_column(const char *name, struct BowstringExpr **out);

// Refers to a column by its position, which counts from 0.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_nth(uint64_t index, struct BowstringExpr **out);

// Makes a literal from the only row of `value`, an array in memory that the host can read. It has the type
// of the array: Boolean, or a number, date or time of at most 16 bytes. An array of type Null makes a null
// that takes the type of the operand that it is combined with.
//
// `value` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_literal(const struct BowstringArray *value,
                                       struct BowstringExpr **out);

// Makes an integer literal, which takes the type of the operand that it is combined with.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_int(int64_t value, struct BowstringExpr **out);

// Makes a floating-point literal, which takes the type of the operand that it is combined with. Combined
// with a decimal, it has the value of its shortest decimal representation.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_double(double value,
                                      struct BowstringExpr **out);

// Makes a Boolean literal: 0 is false, any other value is true.
//
// `out` must be NULL or writable.
BowstringStatus bowstring_expr_bool(int32_t value, struct BowstringExpr **out);

// Makes a text literal from a UTF-8 string that ends with a 0. It takes the type of the operand that it is
// combined with, which may be any type of text or bytes.
//
// `value` must be NULL or a string that ends with 0, `out` NULL or writable.
BowstringStatus bowstring_expr_text(const char *value,
                                    struct BowstringExpr **out);

// Applies `op`, a `BowstringUnary`, to an expression. An unknown number is `BOWSTRING_STATUS_INVALID`.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_unary(int32_t op,
                                     const struct BowstringExpr *x,
                                     struct BowstringExpr **out);

// Applies `op`, a `BowstringBinary`, to two expressions. An unknown number is `BOWSTRING_STATUS_INVALID`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_binary(int32_t op,
                                      const struct BowstringExpr *a,
                                      const struct BowstringExpr *b,
                                      struct BowstringExpr **out);

// Makes an expression that is `then` where `condition` is true, and `otherwise` where it is false or null.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_if_else(const struct BowstringExpr *condition,
                                       const struct BowstringExpr *then,
                                       const struct BowstringExpr *otherwise,
                                       struct BowstringExpr **out);

// Makes an expression that says whether `x` equals one of the rows of `values`. `values` is an array as for
// `bowstring_expr_literal`, but of any length. The result is null if `x` is null, or if no row is equal and
// one of them is null.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_in_list(const struct BowstringExpr *x,
                                       const struct BowstringArray *values,
                                       struct BowstringExpr **out);

// Takes at most `length` characters of text from character `start` on, which counts from the end if it is
// negative. `UINT64_MAX` takes all that follow.
//
// Handle must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_substring(const struct BowstringExpr *x,
                                         int64_t start,
                                         uint64_t length,
                                         struct BowstringExpr **out);

// Casts an expression to the type that `to` describes. `to` is only read. A value that does not fit becomes
// null; if `strict` is not 0, it fails with `BOWSTRING_STATUS_CAST`.
//
// Handle and schema must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_expr_cast(const struct BowstringExpr *x,
                                    const struct ArrowSchema *to,
                                    int32_t strict,
                                    struct BowstringExpr **out);

// Gives an expression a name, which becomes the name of its column in a result. `name` is UTF-8 and is
// copied.
//
// `x` must be NULL or a live handle, `name` NULL or a C string, `out` NULL or writable.
BowstringStatus bowstring_expr_alias(const struct BowstringExpr *x,
                                     const char *name,
                                     struct BowstringExpr **out);

// Makes another handle of the same expression. The caller frees both.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_clone(const struct BowstringExpr *x, struct BowstringExpr **out);

// Returns the expression as readable text. The handle owns the text, which is valid until the handle is
// freed.
//
// `x` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_expr_to_string(const struct BowstringExpr *x,
                                         const char **out);

// Frees an expression. NULL is ignored.
//
// `x` must be NULL or a handle from this library that is not used again.
void bowstring_expr_free(struct BowstringExpr *x);

// Returns the rows of a batch for which `predicate` is true. A null drops the row. `options` may be NULL. On
// a GPU this synchronises once, like every filter. A row that overflows or divides by zero is
// `BOWSTRING_STATUS_EVALUATION`.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_filter_where(const struct BowstringBatch *batch,
                                       const struct BowstringExpr *predicate,
                                       const struct BowstringExprOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// Evaluates `count` expressions for each row of a batch. The result has a column for each expression, named
// by `bowstring_expr_alias`, or after the expression's text. `options` may be NULL. Does not synchronise for
// numbers, dates and Booleans. Casts, tests of dictionaries and views, and results that are text (substring;
// if_else, coalesce and nullif of text) may. On a GPU a row that overflows or divides by zero is reported by
// the first call that waits for a column.
//
// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or
// writable.
BowstringStatus bowstring_evaluate(const struct BowstringBatch *batch,
                                   const struct BowstringExpr *const *exprs,
                                   uint64_t count,
                                   const struct BowstringExprOptions *options,
                                   const struct BowstringStream *stream,
                                   struct BowstringBatch **out);

// Aggregates the rows of a batch into one row in host memory, with a column for each of `count` aggregates.
// Only rows for which `condition` is true count; NULL means all rows. `options` may be NULL. On a GPU this
// synchronises once.
//
// Handles and options must be NULL or live, `aggregates` NULL or an array of `count` items
// whose handles and names are NULL or live, `out` NULL or writable.
BowstringStatus bowstring_aggregate(const struct BowstringBatch *batch,
                                    const struct BowstringAggregate *aggregates,
                                    uint64_t count,
                                    const struct BowstringExpr *condition,
                                    const struct BowstringExprOptions *options,
                                    const struct BowstringStream *stream,
                                    struct BowstringBatch **out);

// Filters each batch by `predicate`, as `bowstring_filter_where` does. This takes `batches`: the handle is
// left empty, and the caller must still free it. On failure it is unchanged. Errors in the predicate are
// reported by this call, which reads no batch. When a batch is requested, one is filtered on `stream`; on a
// GPU up to two more are begun.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter_where(const struct BowstringBatches *batches,
                                               const struct BowstringExpr *predicate,
                                               const struct BowstringExprOptions *options,
                                               const struct BowstringStream *stream,
                                               struct BowstringBatches **out);

// Evaluates `count` expressions for each batch, as `bowstring_evaluate` does; otherwise like
// `bowstring_batches_filter_where`.
//
// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or
// writable.
BowstringStatus bowstring_batches_evaluate(const struct BowstringBatches *batches,
                                           const struct BowstringExpr *const *exprs,
                                           uint64_t count,
                                           const struct BowstringExprOptions *options,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatches **out);

// Aggregates the rows of all batches into one row in host memory, as `bowstring_aggregate` does. This takes
// `batches` and reads them to their end before it returns. The row number in an error counts from the start
// of its batch.
//
// Handles and options must be NULL or live, `aggregates` NULL or an array of `count` items
// whose handles and names are NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_aggregate(const struct BowstringBatches *batches,
                                            const struct BowstringAggregate *aggregates,
                                            uint64_t count,
                                            const struct BowstringExpr *condition,
                                            const struct BowstringExprOptions *options,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatch **out);

// Groups the rows of a batch by `key_count` expressions, and aggregates each group: the result has a row
// for each group, in the order of their first rows, with the keys and then the `count` aggregates. Only
// rows for which `condition` is true count; NULL means all rows. `options` may be NULL. If they have sets
// of keys, the result has the groups of the first set, then those of the next: a key that is not in a
// row's set is null there, and a column `grouping_id`, UInt64, follows the keys, with a bit for each key,
// the lowest for the last one, that is set if the key is not in the set. The result is where the batch is.
// On a GPU this synchronises once, and as `bowstring_take` does for the keys; more often for extremes that
// are no numbers, distinct counts and quantiles. A sum that does not fit its type is reported by the first
// call that waits for its column.
//
// Handles and options must be NULL or live, `keys` NULL or point to `key_count` of them, `aggregates` NULL
// or an array of `count` items whose handles and names are NULL or live, `out` NULL or writable.
BowstringStatus bowstring_group_by(const struct BowstringBatch *batch,
                                   const struct BowstringExpr *const *keys,
                                   uint64_t key_count,
                                   const struct BowstringAggregate *aggregates,
                                   uint64_t count,
                                   const struct BowstringExpr *condition,
                                   const struct BowstringExprOptions *options,
                                   const struct BowstringStream *stream,
                                   struct BowstringBatch **out);

// Makes a table of rows by `count` columns of keys. A null key equals nothing, unless `nulls_equal` is not
// 0. Each search by nested keys makes the table anew. On a GPU this synchronises once, and sorts nested
// keys.
//
// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out` NULL or writable.
BowstringStatus bowstring_join_table_new(const struct BowstringArray *const *keys,
                                         uint64_t count,
                                         int32_t nulls_equal,
                                         const struct BowstringStream *stream,
                                         struct BowstringJoinTable **out);

// Frees a table. Results stay valid. NULL is ignored.
//
// `table` must be NULL or a handle from this library that is not used again.
void bowstring_join_table_free(struct BowstringJoinTable *table);

// Finds rows by `count` keys, which have the types of the table's, and returns the pairs of equal ones, as
// UInt32: the rows of the table in `out_left`, those that were found in `out_right`, in whose order the
// pairs are. If `outer` is not 0, a row without a partner has one pair, with null on the left. On a GPU this
// synchronises once, for the number of pairs, before there is memory for them; and as
// `bowstring_join_table_found` does.
//
// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out_left` and `out_right` NULL or
// writable.
BowstringStatus bowstring_join_table_pairs(const struct BowstringJoinTable *table,
                                           const struct BowstringArray *const *keys,
                                           uint64_t count,
                                           int32_t outer,
                                           const struct BowstringStream *stream,
                                           struct BowstringArray **out_left,
                                           struct BowstringArray **out_right);

// Finds rows by `count` keys, and returns which of them have a partner, as booleans without nulls. Does not
// synchronise, unless keys are dictionaries, runs or nested.
//
// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out` NULL or writable.
BowstringStatus bowstring_join_table_found(const struct BowstringJoinTable *table,
                                           const struct BowstringArray *const *keys,
                                           uint64_t count,
                                           const struct BowstringStream *stream,
                                           struct BowstringArray **out);

// Writes to `out`, for each column, the number of rows that are null by its validity bitmap. `out` must have
// room for `columns` numbers, and `columns` must be the number of columns of the batch. On a GPU this
// synchronises once for all columns, or not at all if all counts are known.
//
// Handles must be NULL or live, `out` NULL or writable for `columns` numbers.
BowstringStatus bowstring_null_count_batch(const struct BowstringBatch *batch,
                                           const struct BowstringStream *stream,
                                           uint64_t columns,
                                           uint64_t *out);

// Writes to `out`, for each column, the number of rows that are null by their value; otherwise like
// `bowstring_null_count_batch`.
//
// Handles must be NULL or live, `out` NULL or writable for `columns` numbers.
BowstringStatus bowstring_logical_null_count_batch(const struct BowstringBatch *batch,
                                                   const struct BowstringStream *stream,
                                                   uint64_t columns,
                                                   uint64_t *out);

// Returns the number of rows that are null by the validity bitmap. On a GPU this synchronises once, unless
// the count is known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_null_count(const struct BowstringArray *values,
                                     const struct BowstringStream *stream,
                                     uint64_t *out);

// Returns the number of rows that are null by their value: dictionaries, runs and unions are looked through.
// On a GPU this synchronises once, unless the count is known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_logical_null_count(const struct BowstringArray *values,
                                             const struct BowstringStream *stream,
                                             uint64_t *out);

// Returns an array of booleans without nulls: whether each row is null. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_null(const struct BowstringArray *values,
                                  const struct BowstringStream *stream,
                                  struct BowstringArray **out);

// Returns a batch with a column of booleans without nulls for each column: whether its rows are null. The
// columns keep their names. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_null_batch(const struct BowstringBatch *batch,
                                        const struct BowstringStream *stream,
                                        struct BowstringBatch **out);

// Returns an array of booleans without nulls: whether each row is valid. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_not_null(const struct BowstringArray *values,
                                      const struct BowstringStream *stream,
                                      struct BowstringArray **out);

// Returns a batch with a column of booleans without nulls for each column: whether its rows are valid. The
// columns keep their names. Does not synchronise.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_is_not_null_batch(const struct BowstringBatch *batch,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatch **out);

// Replaces the nulls in `values` by the only row of `scalar`. `scalar` must have the type of `values` and be
// in memory that the host can read. If its row is null, the values stay as they are. Does not synchronise if
// the type is Boolean or has a fixed width of 1, 2, 4, 8, 16 or 32 bytes. Other types synchronise once for
// each level of text, lists or runs, and as `bowstring_take` does.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_fill_null(const struct BowstringArray *values,
                                    const struct BowstringArray *scalar,
                                    const struct BowstringStream *stream,
                                    struct BowstringArray **out);

// Replaces the nulls of each column by the only row of the array at the same position of `scalars`;
// otherwise like `bowstring_fill_null`. `columns` must be the number of columns of the batch. A column whose
// scalar is NULL stays as it is. The columns synchronise together.
//
// Handles must be NULL or live, `scalars` NULL or point to `columns` of them, `out` NULL or writable.
BowstringStatus bowstring_fill_null_batch(const struct BowstringBatch *batch,
                                          const struct BowstringArray *const *scalars,
                                          uint64_t columns,
                                          const struct BowstringStream *stream,
                                          struct BowstringBatch **out);

// Returns the rows that are not null. On a GPU this synchronises once, like every filter.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_drop_nulls(const struct BowstringArray *values,
                                     const struct BowstringStream *stream,
                                     struct BowstringArray **out);

// Returns the rows of a batch that have no nulls, or not only nulls, in all or some of its columns.
// `options` may be NULL. On a GPU this synchronises once, like every filter.
//
// Handles and options must be NULL or live, the columns of the options NULL or as many as they say, `out`
// NULL or writable.
BowstringStatus bowstring_drop_nulls_batch(const struct BowstringBatch *batch,
                                           const struct BowstringDropOptions *options,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatch **out);

// Prepares a join of the rows of `left`, by `count` keys that are as long as the batch, with right rows that
// `bowstring_prepared_join_probe` takes. `options` may be NULL. On a GPU this synchronises once, and sorts
// nested keys.
//
// Handles and options must be NULL or live, `left_keys` NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_prepared_join_new(const struct BowstringBatch *left,
                                            const struct BowstringArray *const *left_keys,
                                            uint64_t count,
                                            const struct BowstringJoinOptions *options,
                                            const struct BowstringStream *stream,
                                            struct BowstringPreparedJoin **out);

// Frees a prepared join. Results stay valid. NULL is ignored.
//
// `join` must be NULL or a handle from this library that is not used again.
void bowstring_prepared_join_free(struct BowstringPreparedJoin *join);

// Joins a batch of right rows, by `count` keys, and returns the rows that are known already, in the order of
// `bowstring_join`; NULL if the kind returns left rows only. Several threads may do so at once. After a
// failure it is as if the batch had not been there. On a GPU this synchronises like `bowstring_join`, less
// once for the keys of the left rows.
//
// Handles must be NULL or live, `right_keys` NULL or as many as `count` says, `out` NULL or writable.
BowstringStatus bowstring_prepared_join_probe(const struct BowstringPreparedJoin *join,
                                              const struct BowstringBatch *right,
                                              const struct BowstringArray *const *right_keys,
                                              uint64_t count,
                                              const struct BowstringStream *stream,
                                              struct BowstringBatch **out);

// Returns the left rows that are known when all right batches have been joined; NULL if the kind returns no
// such rows. `right` is any batch with the columns of the right side: its rows do not matter. On a GPU this
// synchronises once.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_prepared_join_rest(const struct BowstringPreparedJoin *join,
                                             const struct BowstringBatch *right,
                                             const struct BowstringStream *stream,
                                             struct BowstringBatch **out);

// Returns the rows, as UInt32, at which a group of equal rows starts, in `count` sorted columns of one
// length: row 0, and each row that differs from the row before it. Nulls are equal. On a GPU this
// synchronises once.
//
// Handles must be NULL or live, `columns` NULL or as many as `count` says, `out` NULL or writable.
BowstringStatus bowstring_partition(const struct BowstringArray *const *columns,
                                    uint64_t count,
                                    const struct BowstringStream *stream,
                                    struct BowstringArray **out);

// Divides rows into `parts` parts, at most 65,536, by a hash of `count` keys of one length. Rows with equal
// keys are in the same part and keep their order. `out_order` receives the rows, part after part, as UInt32:
// take them, and slice the result. `out_starts` is the caller's memory for `parts + 1` numbers: the place of
// each part's first row, and the number of all rows. The hash is the same in every process and on every
// device. On a GPU this synchronises once, and more often for keys of nested types.
//
// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out_order` NULL or writable,
// `out_starts` NULL or memory for `parts + 1` numbers.
BowstringStatus bowstring_partition_by_hash(const struct BowstringArray *const *keys,
                                            uint64_t count,
                                            uint64_t parts,
                                            const struct BowstringStream *stream,
                                            struct BowstringArray **out_order,
                                            uint64_t *out_starts);

// Returns a batch of the different values of an array, in the order of their first rows, and how often each
// occurs: the columns `values`, which has the array's metadata, and `counts`. Nulls are counted too. On a
// GPU this synchronises like `bowstring_group` and `bowstring_take`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_value_counts(const struct BowstringArray *values,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatch **out);

// Returns the rows of `truthy` where `mask` is true, and those of `falsy` where it is false or null. All
// have as many rows. Synchronises as `bowstring_concat` and `bowstring_take` do.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_zip(const struct BowstringArray *mask,
                              const struct BowstringArray *truthy,
                              const struct BowstringArray *falsy,
                              const struct BowstringStream *stream,
                              struct BowstringArray **out);

// Returns `len` rows of `count` arrays of one type: row `rows[i]` of array `which[i]`. Synchronises as
// `bowstring_concat` and `bowstring_take` do.
//
// Handles must be NULL or live, `arrays` NULL or as many as `count` says, `which` and `rows` NULL or as many
// as `len` says, `out` NULL or writable.
BowstringStatus bowstring_interleave(const struct BowstringArray *const *arrays,
                                     uint64_t count,
                                     const uint64_t *which,
                                     const uint64_t *rows,
                                     uint64_t len,
                                     const struct BowstringStream *stream,
                                     struct BowstringArray **out);

// Returns the numbers of the rows of an array in the order of their values, as UInt32: the first `limit` of
// them. `order` has the flags `BOWSTRING_SORT_DESCENDING` and `BOWSTRING_SORT_NULLS_LAST`, or 0. Rows that
// are equal stay in their order. On a GPU this synchronises once, for text twice for each seven bytes in
// which rows agree, and for lists like a sort of their items.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_sort_to_indices(const struct BowstringArray *values,
                                          uint32_t order,
                                          uint64_t limit,
                                          const struct BowstringStream *stream,
                                          struct BowstringArray **out);

// Returns the numbers of the rows of `count` columns of one length, in the order of the first column in
// which they differ. `orders` has an order for each column. Otherwise like `bowstring_sort_to_indices`.
//
// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_lexsort_to_indices(const struct BowstringArray *const *columns,
                                             const uint32_t *orders,
                                             uint64_t count,
                                             uint64_t limit,
                                             const struct BowstringStream *stream,
                                             struct BowstringArray **out);

// Sorts an array: the first `limit` of its rows in order. Otherwise like `bowstring_sort_to_indices`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_sort(const struct BowstringArray *values,
                               uint32_t order,
                               uint64_t limit,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// Sorts the rows of a batch by `count` columns, which need not be its own. Otherwise like
// `bowstring_lexsort_to_indices`.
//
// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_sort_batch(const struct BowstringBatch *batch,
                                     const struct BowstringArray *const *columns,
                                     const uint32_t *orders,
                                     uint64_t count,
                                     uint64_t limit,
                                     const struct BowstringStream *stream,
                                     struct BowstringBatch **out);

// Returns the rank of each row in the order of `bowstring_sort_to_indices`, as UInt32, from 1 on.
// `ties` is a `BowstringTies`. On a GPU this synchronises once more than `bowstring_sort_to_indices`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_rank(const struct BowstringArray *values,
                               uint32_t order,
                               int32_t ties,
                               const struct BowstringStream *stream,
                               struct BowstringArray **out);

// Numbers the groups of equal rows of `count` columns of one length. `out_ids` receives the group of each
// row, and `out_firsts` the first row of each group, both as UInt32. Groups are numbered in the order of
// their first rows. Nulls are equal. On a GPU this synchronises once, and sorts what is inside of lists.
//
// Handles must be NULL or live, `columns` NULL or as many as `count` says, `out_ids` and `out_firsts` NULL
// or writable.
BowstringStatus bowstring_group(const struct BowstringArray *const *columns,
                                uint64_t count,
                                const struct BowstringStream *stream,
                                struct BowstringArray **out_ids,
                                struct BowstringArray **out_firsts);

// Returns the first of equal rows of an array, in their order. Otherwise like `bowstring_group`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_distinct(const struct BowstringArray *values,
                                   const struct BowstringStream *stream,
                                   struct BowstringArray **out);

// Returns the first of equal rows of a batch, in their order. Otherwise like `bowstring_group`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_distinct_batch(const struct BowstringBatch *batch,
                                         const struct BowstringStream *stream,
                                         struct BowstringBatch **out);

// Joins two batches by `count` keys of each, which are as long as their batches and need not be their
// columns. The result has the left columns and then the right ones, or those of one side. Rows come in the
// order of the right rows, and for each of them in that of the left ones; left rows without a partner
// follow. `options` may be NULL. On a GPU this synchronises once for the keys, once for the number of pairs,
// and then as `bowstring_filter` and `bowstring_take` do; more often for a filter, and for keys that are
// dictionaries, runs or nested.
//
// Handles and options must be NULL or live, the keys NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_join(const struct BowstringBatch *left,
                               const struct BowstringBatch *right,
                               const struct BowstringArray *const *left_keys,
                               const struct BowstringArray *const *right_keys,
                               uint64_t count,
                               const struct BowstringJoinOptions *options,
                               const struct BowstringStream *stream,
                               struct BowstringBatch **out);

// Sorts the rows of all batches by `count` columns, whose numbers count from 0: the first `limit` rows in
// order. `orders` has an order for each, as for `bowstring_sort_to_indices`. If the rows take more than
// `memory` bytes, sorted runs of them wait in host memory, and the result comes in several batches; 0 means
// no bound.
// This takes `batches`: the handle is left empty, and the caller must still free it. On failure it is
// unchanged. This call reads nothing: all batches are read when the first one of the result is requested.
//
// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_batches_sort(const struct BowstringBatches *batches,
                                       const uint64_t *columns,
                                       const uint32_t *orders,
                                       uint64_t count,
                                       uint64_t limit,
                                       uint64_t memory,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Groups the rows of all batches and aggregates each group, as `bowstring_group_by` does for a batch. If the
// groups take more than `memory` bytes, they wait in host memory, and the result comes in several batches,
// in each of which groups are in the order of their first rows; 0 means no bound. Each set of keys has
// batches of its own. Otherwise like
// `bowstring_batches_sort`.
//
// Handles and options must be NULL or live, `keys` NULL or point to `key_count` of them, `aggregates` NULL
// or an array of `count` items whose handles and names are NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_group_by(const struct BowstringBatches *batches,
                                           const struct BowstringExpr *const *keys,
                                           uint64_t key_count,
                                           const struct BowstringAggregate *aggregates,
                                           uint64_t count,
                                           const struct BowstringExpr *condition,
                                           const struct BowstringExprOptions *options,
                                           uint64_t memory,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatches **out);

// Joins the rows of two streams by `count` columns of each, whose numbers count from 0. The left stream is
// read first, and its rows are prepared once; the right one is joined batch by batch. See `bowstring_join`
// for the rows of the result. If the left rows take more than `memory` bytes, both sides wait in host
// memory, in parts by a hash of their keys, and rows come in the order of the parts; 0 means no bound.
// `options` may be NULL. This takes `left` and `right`, which must not be the same. Otherwise like
// `bowstring_batches_sort`.
//
// Handles and options must be NULL or live, the columns NULL or as many as `count` says, `out` NULL or
// writable.
BowstringStatus bowstring_batches_join(const struct BowstringBatches *left,
                                       const struct BowstringBatches *right,
                                       const uint64_t *left_columns,
                                       const uint64_t *right_columns,
                                       uint64_t count,
                                       const struct BowstringJoinOptions *options,
                                       uint64_t memory,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Returns the reason of this thread's last failed call, or an empty string if none has failed. The text is
// valid until the thread's next failing call. Never NULL.
const char *bowstring_last_error(void);

// Sets a callback that can end this thread's later calls: for Ctrl-C, a deadline, or a cancelled query.
// Functions called on this thread ask `interrupted` from time to time, at most once every `milliseconds`.
// When it returns anything but 0, work on the CPU ends on all of its threads before it begins another part
// of about ten thousand rows. The function returns BOWSTRING_STATUS_INTERRUPTED, and its inputs are
// unchanged, but for a stream of batches that was being read: it has ended, as after any error.
//
// Waits for the producer of an asynchronous stream, or for another thread that reads a stream, ask as well.
// Work on GPUs does not, and neither do the callbacks of streams that other libraries read. NULL removes the
// callback. Each thread has its own callback.
//
// `interrupted` must be NULL, or a function that may be called with `data` on this thread until another
// takes its place.
BowstringStatus bowstring_set_interrupt(BowstringInterrupted interrupted,
                                        void *data,
                                        uint32_t milliseconds);

// Returns the library's version, such as "0.1.0". The text is static.
const char *bowstring_version(void);

// Imports a device stream of struct arrays as batches of `device`. This takes `stream`: its `release`
// becomes NULL, and the library releases it when it has ended, or when the handle, or the handle made from
// it, is freed. A failure releases it too, except for `BOWSTRING_STATUS_INVALID` and
// `BOWSTRING_STATUS_UNSUPPORTED`, which leave it unchanged. This call reads only the schema. Does not
// synchronise.
//
// The struct must follow the Arrow C device stream interface. Any thread may use and release it, one at a
// time.
BowstringStatus bowstring_batches_import(const struct BowstringDevice *device,
                                         struct ArrowDeviceArrayStream *stream,
                                         struct BowstringBatches **out);

// Imports a stream of struct arrays in host memory as batches of the CPU; otherwise like
// `bowstring_batches_import`.
//
// The requirements of `bowstring_batches_import` apply.
BowstringStatus bowstring_batches_import_host(struct ArrowArrayStream *stream,
                                              struct BowstringBatches **out);

// Returns the schema of all batches. The struct is overwritten, so it must be uninitialised or released; the
// caller releases it.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_schema(const struct BowstringBatches *batches,
                                         struct ArrowSchema *out);

// Returns the next batch, or NULL at the end. After a failure the stream has ended, and the next call
// returns NULL. The operations that the stream consists of run on the calling thread, and synchronise if
// they do by themselves. Other threads that use the handle meanwhile wait. A producer that uses the handle
// while it is asked for a batch gets `BOWSTRING_STATUS_INVALID`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_next(const struct BowstringBatches *batches,
                                       struct BowstringBatch **out);

// Exports the batches as a device stream. This takes `batches`: the handle is left empty, and the caller
// must still free it. The struct is overwritten, so it must be uninitialised or released. The consumer reads
// one batch at a time, on its own thread. Errors while it reads are reported by the stream's
// `get_last_error`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_export(const struct BowstringBatches *batches,
                                         struct ArrowDeviceArrayStream *out);

// Exports the batches as a stream in host memory, without devices; otherwise like
// `bowstring_batches_export`.
//
// `batches` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_batches_export_host(const struct BowstringBatches *batches,
                                              struct ArrowArrayStream *out);

// Frees a handle, and releases the stream if the handle still holds it. NULL is ignored.
//
// `batches` must be NULL or a handle from this library that is not used again.
void bowstring_batches_free(struct BowstringBatches *batches);

// Imports a device stream of arrays, such as masks or indices; otherwise like `bowstring_batches_import`.
//
// The requirements of `bowstring_batches_import` apply.
BowstringStatus bowstring_arrays_import(const struct BowstringDevice *device,
                                        struct ArrowDeviceArrayStream *stream,
                                        struct BowstringArrays **out);

// Imports a stream of arrays in host memory; otherwise like `bowstring_batches_import_host`.
//
// The requirements of `bowstring_batches_import` apply.
BowstringStatus bowstring_arrays_import_host(struct ArrowArrayStream *stream,
                                             struct BowstringArrays **out);

// Returns the next array, or NULL at the end; otherwise like `bowstring_batches_next`.
//
// `arrays` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_arrays_next(const struct BowstringArrays *arrays,
                                      struct BowstringArray **out);

// Exports the arrays as a device stream; otherwise like `bowstring_batches_export`.
//
// `arrays` must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_arrays_export(const struct BowstringArrays *arrays,
                                        struct ArrowDeviceArrayStream *out);

// Frees a handle, and releases the stream if the handle still holds it. NULL is ignored.
//
// `arrays` must be NULL or a handle from this library that is not used again.
void bowstring_arrays_free(struct BowstringArrays *arrays);

// Filters each batch by the next array of `masks`, as `bowstring_filter_batch` does. This takes `batches`
// and `masks`: the handles are left empty, and the caller must still free them. On failure they are
// unchanged. This call reads nothing. When a batch is requested, one is filtered on `stream`; on a GPU up to
// two more are begun. The stream fails if the masks end before the batches.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter(const struct BowstringBatches *batches,
                                         const struct BowstringArrays *masks,
                                         const struct BowstringStream *stream,
                                         struct BowstringBatches **out);

// Filters each batch by its own column number `mask`, which counts from 0; otherwise like
// `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_filter_by(const struct BowstringBatches *batches,
                                            uint64_t mask,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatches **out);

// Takes rows of each batch at the next array of `indices`, as `bowstring_take_batch` does. All fields of the
// result's schema are nullable. Otherwise like `bowstring_batches_filter`.
//
// Handles and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_take(const struct BowstringBatches *batches,
                                       const struct BowstringArrays *indices,
                                       const struct BowstringTakeOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Casts the columns of each batch to the types of `to`, as `bowstring_cast_batch` does. `to` must have as
// many fields as the batches have columns; the result has its names. `to` is only read. Otherwise like
// `bowstring_batches_filter`.
//
// Handles, schema and options must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_cast(const struct BowstringBatches *batches,
                                       const struct ArrowSchema *to,
                                       const struct BowstringCastOptions *options,
                                       const struct BowstringStream *stream,
                                       struct BowstringBatches **out);

// Copies each batch to the device of `stream`, as `bowstring_batch_to_device` does; otherwise like
// `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_to_device(const struct BowstringBatches *batches,
                                            const struct BowstringStream *stream,
                                            struct BowstringBatches **out);

// Copies each batch to host memory, as `bowstring_batch_to_host` does; otherwise like
// `bowstring_batches_filter`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_to_host(const struct BowstringBatches *batches,
                                          const struct BowstringStream *stream,
                                          struct BowstringBatches **out);

// Imports an unversioned DLPack tensor, which must be dense, contain numbers or booleans, and be ready for
// work on `stream`. Its memory is shared; only booleans, which DLPack stores as bytes, are copied. The
// outermost dimension becomes the rows, and further dimensions become fixed-size lists.
//
// This takes `tensor`: the library calls its deleter when nothing uses the tensor any more, and on failure
// too, except if an argument is NULL. Does not synchronise.
//
// The tensor must follow DLPack. Nothing else may use or delete it, and any thread may delete it. `stream`
// must be NULL or a live handle, `out` NULL or writable.
BowstringStatus bowstring_array_import_dlpack(struct DLManagedTensor *tensor,
                                              const struct BowstringStream *stream,
                                              struct BowstringArray **out);

// Imports a versioned DLPack tensor; otherwise like `bowstring_array_import_dlpack`.
//
// The requirements of `bowstring_array_import_dlpack` apply.
BowstringStatus bowstring_array_import_dlpack_versioned(struct DLManagedTensorVersioned *tensor,
                                                        const struct BowstringStream *stream,
                                                        struct BowstringArray **out);

// Exports an array of numbers or booleans, or of fixed-size lists of them, without nulls as an unversioned
// DLPack tensor. The memory is shared, and the consumer must not write to it; only booleans are copied, to
// bytes. The tensor is ready for work on `stream`, a stream of the array's device; on the CPU it is ready at
// once.
//
// The caller owns the tensor and calls its deleter when its own work has passed. Synchronises if a null
// count on a device is not known.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_export_dlpack(const struct BowstringArray *array,
                                              const struct BowstringStream *stream,
                                              struct DLManagedTensor **out);

// Exports an array as a versioned DLPack tensor, whose flags say whether it is read-only or a copy;
// otherwise like `bowstring_array_export_dlpack`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_array_export_dlpack_versioned(const struct BowstringArray *array,
                                                        const struct BowstringStream *stream,
                                                        struct DLManagedTensorVersioned **out);

// Validates an array in full. Checks that offsets are in order and in range, views are inside their buffers,
// text is UTF-8, keys and type ids are in range, run ends ascend, and null counts are correct. An array that
// is not valid is BOWSTRING_STATUS_OUT_OF_SPEC, and bowstring_last_error names the malformed part. An array
// that the host cannot read is first downloaded in full on `stream`. Synchronises.
//
// Import checks everything that the structs state, and the first and last offsets and run ends; on a device
// it leaves those to the operation that uses the array. It believes all other buffer contents, and the null
// count. Operations check the values that they follow, and pass on the values that they only move. Call this
// function before you hand data from an untrusted producer to a consumer that does not validate it.
//
// The table lists what each operation does with a malformed array. "error": the problem is reported, at once
// or when the result is waited for. "passed on": the result is as wrong as the input. "right": the result is
// valid, because it does not depend on the malformed part.
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
// An operation that has nothing to do, such as a filter that keeps all rows, passes on everything. Numbers,
// times and decimals may be any bytes.
//
// Handles must be NULL or live.
BowstringStatus bowstring_array_validate(const struct BowstringArray *array,
                                         const struct BowstringStream *stream);

// Validates every column of a batch, as `bowstring_array_validate` does. Also checks that columns whose
// field is not nullable have no nulls.
//
// Handles must be NULL or live.
BowstringStatus bowstring_batch_validate(const struct BowstringBatch *batch,
                                         const struct BowstringStream *stream);

// Imports an array from an untrusted producer: like `bowstring_array_import`, followed by
// `bowstring_array_validate`. An array that is not valid is released. Synchronises.
//
// The requirements of `bowstring_array_import` apply; `stream` must be NULL or a live handle.
BowstringStatus bowstring_array_import_validated(const struct BowstringDevice *device,
                                                 struct ArrowDeviceArray *array,
                                                 const struct ArrowSchema *schema,
                                                 const struct BowstringStream *stream,
                                                 struct BowstringArray **out);

// Imports a batch from an untrusted producer: like `bowstring_batch_import`, followed by
// `bowstring_batch_validate`. A batch that is not valid is released. Synchronises.
//
// The requirements of `bowstring_array_import_validated` apply.
BowstringStatus bowstring_batch_import_validated(const struct BowstringDevice *device,
                                                 struct ArrowDeviceArray *array,
                                                 const struct ArrowSchema *schema,
                                                 const struct BowstringStream *stream,
                                                 struct BowstringBatch **out);

// Validates each batch, as `bowstring_batch_validate` does, and passes it on unchanged. A batch that is not
// valid ends the stream with an error. This takes `batches`: the handle is left empty, and the caller must
// still free it. On failure it is unchanged. This call reads no batch.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_batches_validate(const struct BowstringBatches *batches,
                                           const struct BowstringStream *stream,
                                           struct BowstringBatches **out);

// Validates each array, as `bowstring_array_validate` does; otherwise like `bowstring_batches_validate`.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_arrays_validate(const struct BowstringArrays *arrays,
                                          const struct BowstringStream *stream,
                                          struct BowstringArrays **out);

// Partitions `rows` rows by `partition_count` columns, and orders the rows of each partition by
// `order_count` others; `orders` has an order for each of these, as for `bowstring_sort_to_indices`. Without
// columns to partition by, all rows are one partition; without an order, rows stay in their own. All columns
// have `rows` rows. On a GPU this synchronises as `bowstring_group` and `bowstring_lexsort_to_indices` do.
//
// Handles must be NULL or live, the columns and `orders` NULL or as many as the counts say, `out` NULL or
// writable.
BowstringStatus bowstring_windows_new(const struct BowstringArray *const *partition_by,
                                      uint64_t partition_count,
                                      const struct BowstringArray *const *order_by,
                                      const uint32_t *orders,
                                      uint64_t order_count,
                                      uint64_t rows,
                                      const struct BowstringStream *stream,
                                      struct BowstringWindows **out);

// Frees windows. Results stay valid. NULL is ignored.
//
// `windows` must be NULL or a handle from this library that is not used again.
void bowstring_windows_free(struct BowstringWindows *windows);

// Returns the number of each row in its partition, from 1 on, as UInt64.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_row_number(const struct BowstringWindows *windows,
                                             struct BowstringArray **out);

// Returns SQL's `RANK()`, as UInt64: one more than the number of rows that come before the row's first peer.
// On a GPU this synchronises once.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_rank(const struct BowstringWindows *windows,
                                       struct BowstringArray **out);

// Returns SQL's `DENSE_RANK()`, as UInt64: one more than the number of distinct order keys before the row's.
// On a GPU this synchronises twice.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_dense_rank(const struct BowstringWindows *windows,
                                             struct BowstringArray **out);

// Returns the values of the row that is `by` rows before each row in its partition, or null if there is
// none. Negative numbers look ahead, as SQL's `LEAD` does. Synchronises as `bowstring_take` does.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_lag(const struct BowstringWindows *windows,
                                      const struct BowstringArray *values,
                                      int64_t by,
                                      struct BowstringArray **out);

// Returns the values of the row with a number, from 1 on, in each row's partition, or null if there is none.
// Synchronises as `bowstring_take` does.
//
// Handles must be NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_nth_value(const struct BowstringWindows *windows,
                                            const struct BowstringArray *values,
                                            uint64_t number,
                                            struct BowstringArray **out);

// Aggregates the rows of each partition, or with a `frame` those around each row, and returns a batch with
// as many rows as `batch`. Frames have sums, means, counts, least and greatest values, first and last ones,
// and whether any or all Booleans are true; another aggregate with a frame is `BOWSTRING_STATUS_INVALID`.
// `frame` and `options` may be NULL. Synchronises as `bowstring_group_by` does; frames do so only for text
// and for peers.
//
// Handles, `frame` and options must be NULL or live, `aggregates` NULL or an array of `count` items whose
// handles and names are NULL or live, `out` NULL or writable.
BowstringStatus bowstring_windows_aggregate(const struct BowstringWindows *windows,
                                            const struct BowstringBatch *batch,
                                            const struct BowstringAggregate *aggregates,
                                            uint64_t count,
                                            const struct BowstringFrame *frame,
                                            const struct BowstringExprOptions *options,
                                            struct BowstringBatch **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BOWSTRING_H */

// ScatterElements and ScatterND.
#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"

enum { kMostRank = 16 };

// Combines `count` elements after another with their updates.
typedef void Combine(void* elements, const void* updates, int64_t count);

static float AddF32(float a, float b) { return a + b; }
static float MulF32(float a, float b) { return a * b; }
static float MaxF32(float a, float b) { return a >= b || a != a ? a : b; }
static float MinF32(float a, float b) { return a <= b || a != a ? a : b; }
static double AddF64(double a, double b) { return a + b; }
static double MulF64(double a, double b) { return a * b; }
static double MaxF64(double a, double b) { return a >= b || a != a ? a : b; }
static double MinF64(double a, double b) { return a <= b || a != a ? a : b; }
// Integers wrap, so sums and products are those of unsigned numbers.
static int64_t AddI64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t MulI64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t MaxI64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t MinI64(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t AddU64(uint64_t a, uint64_t b) { return a + b; }
static uint64_t MulU64(uint64_t a, uint64_t b) { return a * b; }
static uint64_t MaxU64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t MinU64(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The combinations of a type in memory by functions of a wider or the same type.
#define MYCC_COMBINE(name, type, function)                                    \
  static void name(void* elements, const void* updates, int64_t count) {      \
    for (int64_t i = 0; i < count; ++i) {                                     \
      type a, b;                                                              \
      memcpy(&a, (const uint8_t*)elements + i * (int64_t)sizeof a, sizeof a); \
      memcpy(&b, (const uint8_t*)updates + i * (int64_t)sizeof b, sizeof b);  \
      a = (type)function(a, b);                                               \
      memcpy((uint8_t*)elements + i * (int64_t)sizeof a, &a, sizeof a);       \
    }                                                                         \
  }
#define MYCC_COMBINES(suffix, type, kind)                                                                 \
  MYCC_COMBINE(CombineAdd##suffix, type, Add##kind)                                                       \
  MYCC_COMBINE(CombineMul##suffix, type, Mul##kind)                                                       \
  MYCC_COMBINE(CombineMax##suffix, type, Max##kind)                                                       \
  MYCC_COMBINE(CombineMin##suffix, type, Min##kind)                                                       \
  static Combine* const kCombine##suffix[] = {CombineAdd##suffix, CombineMul##suffix, CombineMax##suffix, \
                                              CombineMin##suffix};
MYCC_COMBINES(F64, double, F64)
MYCC_COMBINES(F32, float, F32)
MYCC_COMBINES(I64, int64_t, I64)
MYCC_COMBINES(I32, int32_t, I64)
MYCC_COMBINES(I16, int16_t, I64)
MYCC_COMBINES(I8, int8_t, I64)
MYCC_COMBINES(U64, uint64_t, U64)
MYCC_COMBINES(U32, uint32_t, U64)
MYCC_COMBINES(U16, uint16_t, U64)
MYCC_COMBINES(U8, uint8_t, U64)

// Null where the updates replace the elements.
static Combine* CombineOf(int64_t dtype, int64_t reduction) {
  if (reduction == kMyccScatterNone) return 0;
  switch (dtype) {
    case kMyccF64: return kCombineF64[reduction - 1];
    case kMyccF32: return kCombineF32[reduction - 1];
    case kMyccI64: return kCombineI64[reduction - 1];
    case kMyccI32: return kCombineI32[reduction - 1];
    case kMyccI16: return kCombineI16[reduction - 1];
    case kMyccI8: return kCombineI8[reduction - 1];
    case kMyccU64: return kCombineU64[reduction - 1];
    case kMyccU32: return kCombineU32[reduction - 1];
    case kMyccU16: return kCombineU16[reduction - 1];
    case kMyccU8: return kCombineU8[reduction - 1];
    default: return 0;
  }
}

// The index at a place, of an axis of an extent; -1 where it is outside.
static int64_t IndexAt(const struct MyccTensor* indices, int64_t place, int64_t extent) {
  int64_t index;
  if (indices->dtype == kMyccI32) {
    int32_t narrow;
    memcpy(&narrow, (const uint8_t*)indices->data + place * 4, 4);
    index = narrow;
  } else {
    memcpy(&index, (const uint8_t*)indices->data + place * 8, 8);
  }
  if (index < 0) index += extent;
  return index < 0 || index >= extent ? -1 : index;
}

static int64_t ElementsFrom(const struct MyccTensor* tensor, int64_t axis) {
  int64_t count = 1;
  for (int64_t i = axis; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

// A loop over the rows of the updates: the indices of all axes but the last, like an odometer.
void MyccScatterElements(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)workspace;
  const struct MyccTensor *data = &tensors[0], *indices = &tensors[1], *updates = &tensors[2];
  const int64_t bytes = data->element_bytes, axis = attributes[kMyccScatterAxis], last = data->ndim - 1;
  const int64_t extent = data->shape[axis], row_length = updates->shape[last];
  uint8_t* output = tensors[3].data;
  Combine* combine = CombineOf(data->dtype, attributes[kMyccScatterReduction]);
  memcpy(output, data->data, (size_t)(ElementsFrom(data, 0) * bytes));
  int64_t strides[kMostRank], at[kMostRank] = {0};
  for (int64_t i = last, stride = 1; i >= 0; stride *= data->shape[i--]) strides[i] = stride;
  const int64_t total = ElementsFrom(updates, 0);
  for (int64_t row = 0; row < total; row += row_length) {
    int64_t base = 0;
    for (int64_t i = 0; i < last; ++i) base += i == axis ? 0 : at[i] * strides[i];
    for (int64_t j = 0; j < row_length; ++j) {
      const int64_t index = IndexAt(indices, row + j, extent);
      if (index < 0) continue;
      uint8_t* to = output + (base + index * strides[axis] + (axis == last ? 0 : j)) * bytes;
      const uint8_t* from = (const uint8_t*)updates->data + (row + j) * bytes;
      combine ? combine(to, from, 1) : (void)memcpy(to, from, (size_t)bytes);
    }
    for (int64_t i = last; i-- > 0;) {
      if (++at[i] < updates->shape[i]) break;
      at[i] = 0;
    }
  }
}

void MyccScatterND(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)workspace;
  const struct MyccTensor *data = &tensors[0], *indices = &tensors[1], *updates = &tensors[2];
  const int64_t depth = indices->shape[indices->ndim - 1];
  const int64_t slice = ElementsFrom(data, depth), slice_bytes = slice * data->element_bytes;
  uint8_t* output = tensors[3].data;
  Combine* combine = CombineOf(data->dtype, attributes[kMyccScatterReduction]);
  memcpy(output, data->data, (size_t)(ElementsFrom(data, 0) * data->element_bytes));
  int64_t tuples = 1;
  for (int64_t i = 0; i + 1 < indices->ndim; ++i) tuples *= indices->shape[i];
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t place = 0, is_inside = 1;
    for (int64_t i = 0; i < depth && is_inside; ++i) {
      const int64_t index = IndexAt(indices, tuple * depth + i, data->shape[i]);
      is_inside = index >= 0;
      place = place * data->shape[i] + index;
    }
    if (!is_inside) continue;
    uint8_t* to = output + place * slice_bytes;
    const uint8_t* from = (const uint8_t*)updates->data + tuple * slice_bytes;
    combine ? combine(to, from, slice) : (void)memcpy(to, from, (size_t)slice_bytes);
  }
}

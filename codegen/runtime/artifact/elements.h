// Elements of tensors, for the library kernels that look at them one by one. Internal to this folder. Thread
// rule: pure functions.
#pragma once

#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"

static inline int64_t MyccElements(const struct MyccTensor* tensor) {
  int64_t count = 1;
  for (int64_t i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

// The elements of all axes before one, and behind it.
static inline int64_t MyccOuter(const struct MyccTensor* tensor, int64_t axis) {
  int64_t count = 1;
  for (int64_t i = 0; i < axis; ++i) count *= tensor->shape[i];
  return count;
}
static inline int64_t MyccInner(const struct MyccTensor* tensor, int64_t axis) {
  int64_t count = 1;
  for (int64_t i = axis + 1; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

static inline int64_t MyccInt64At(const struct MyccTensor* tensor, int64_t place) {
  int64_t value;
  memcpy(&value, (const uint8_t*)tensor->data + place * 8, 8);
  return value;
}
static inline void MyccSetInt64(const struct MyccTensor* tensor, int64_t place, int64_t value) {
  memcpy((uint8_t*)tensor->data + place * 8, &value, 8);
}

// Zeros for the room of a smaller result's tensor, from an element on.
static inline void MyccClearFrom(const struct MyccTensor* tensor, int64_t place) {
  const int64_t rest = MyccElements(tensor) - place;
  if (rest > 0)
    memset((uint8_t*)tensor->data + place * tensor->element_bytes, 0, (size_t)(rest * tensor->element_bytes));
}

// A number that grows with the element; NaN has the largest.
int64_t MyccElementKey(int64_t dtype, const void* at);

// Sorts numbers, equal ones in the order in which they stand; `other` has room for as many.
typedef int MyccIsBefore(const void* context, int64_t a, int64_t b);
void MyccSort(int64_t* numbers, int64_t* other, int64_t count, MyccIsBefore* is_before, const void* context);

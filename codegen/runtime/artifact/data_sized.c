// NonZero and Compress, whose results have sizes that the data decide; and a sort for others.
#include "codegen/runtime/artifact/elements.h"

static int IsFloat(int64_t dtype) {
  return dtype == kMyccF64 || dtype == kMyccF32 || dtype == kMyccF16 || dtype == kMyccBF16 ||
         dtype == kMyccF8E4M3 || dtype == kMyccF8E5M2;
}

// A float's sign alone makes no number other than zero.
static int IsZero(const struct MyccTensor* x, int64_t place) {
  uint64_t bits = 0;
  memcpy(&bits, (const uint8_t*)x->data + place * x->element_bytes, (size_t)x->element_bytes);
  if (IsFloat(x->dtype)) bits &= ~((uint64_t)1 << (8 * x->element_bytes - 1));
  return bits == 0;
}

void MyccNonZero(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const struct MyccTensor* x = &tensors[0];
  const int64_t elements = MyccElements(x);
  int64_t count = 0;
  for (int64_t i = 0; i < elements; ++i) count += !IsZero(x, i);
  for (int64_t i = 0, row = 0; row < count; ++i) {
    if (IsZero(x, i)) continue;
    int64_t rest = i;
    for (int64_t axis = x->ndim; axis-- > 0; rest /= x->shape[axis])
      MyccSetInt64(&tensors[1], axis * count + row, rest % x->shape[axis]);
    ++row;
  }
  MyccClearFrom(&tensors[1], x->ndim * count);
  MyccSetInt64(&tensors[2], 0, count);
}

void MyccCompress(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)workspace;
  const struct MyccTensor* x = &tensors[0];
  const int64_t axis = attributes[0], extent = x->shape[axis], conditions = MyccElements(&tensors[1]);
  const uint8_t* is_kept = tensors[1].data;
  const int64_t outer = MyccOuter(x, axis), bytes = MyccInner(x, axis) * x->element_bytes;
  int64_t count = 0;
  for (int64_t i = 0; i < conditions; ++i) {
    count += is_kept[i] != 0 && i < extent;
    if (is_kept[i] != 0 && i >= extent)
      MyccSetProblem("the condition of a Compress selects an element beyond the axis");
  }
  uint8_t* to = tensors[2].data;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < conditions && i < extent; ++i) {
      if (is_kept[i] == 0) continue;
      memcpy(to, (const uint8_t*)x->data + (o * extent + i) * bytes, (size_t)bytes);
      to += bytes;
    }
  }
  MyccClearFrom(&tensors[2], outer * count * MyccInner(x, axis));
  MyccSetInt64(&tensors[3], 0, count);
}

// Merges runs of 1, 2, 4, ... numbers.
void MyccSort(int64_t* numbers, int64_t* other, int64_t count, MyccIsBefore* is_before, const void* context) {
  for (int64_t run = 1; run < count; run *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * run) {
      const int64_t middle = begin + run < count ? begin + run : count;
      const int64_t end = middle + run < count ? middle + run : count;
      int64_t a = begin, b = middle;
      for (int64_t to = begin; to < end; ++to) {
        const int takes_b = b < end && (a == middle || is_before(context, numbers[b], numbers[a]));
        other[to] = takes_b ? numbers[b++] : numbers[a++];
      }
    }
    memcpy(numbers, other, (size_t)count * sizeof *numbers);
  }
}

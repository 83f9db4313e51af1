// TopK: a heap of the k best elements of a row, whose top is the worst of them.
#include "codegen/runtime/artifact/elements.h"

struct Candidate {
  int64_t key, index;
};

// A number that grows with a float, from its bits without the sign; NaN is the largest.
static int64_t FloatKey(int64_t magnitude, int is_negative, int64_t infinity) {
  if (magnitude > infinity) return INT64_MAX;
  return is_negative ? -magnitude : magnitude;
}

static int64_t Float16Key(const void* at, int64_t infinity) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return FloatKey(bits & 0x7fff, bits >> 15, infinity);
}

static int64_t Float8Key(const void* at, int64_t largest) {
  const uint8_t bits = *(const uint8_t*)at;
  return FloatKey(bits & 0x7f, bits >> 7, largest);
}

#define MYCC_INTEGER_KEY(type)        \
  {                                   \
    type value;                       \
    memcpy(&value, at, sizeof value); \
    return value;                     \
  }

int64_t MyccElementKey(int64_t dtype, const void* at) {
  switch (dtype) {
    case kMyccF64: {
      uint64_t bits;
      memcpy(&bits, at, sizeof bits);
      return FloatKey((int64_t)(bits & INT64_MAX), bits >> 63 != 0, 0x7ff0000000000000);
    }
    case kMyccF32: {
      uint32_t bits;
      memcpy(&bits, at, sizeof bits);
      return FloatKey(bits & 0x7fffffff, bits >> 31 != 0, 0x7f800000);
    }
    case kMyccF16: return Float16Key(at, 0x7c00);
    case kMyccBF16: return Float16Key(at, 0x7f80);
    case kMyccF8E4M3: return Float8Key(at, 0x7e);
    case kMyccF8E5M2: return Float8Key(at, 0x7c);
    case kMyccI64: MYCC_INTEGER_KEY(int64_t);
    case kMyccI32: MYCC_INTEGER_KEY(int32_t);
    case kMyccI16: MYCC_INTEGER_KEY(int16_t);
    case kMyccU32: MYCC_INTEGER_KEY(uint32_t);
    case kMyccU16: MYCC_INTEGER_KEY(uint16_t);
    case kMyccU64: {
      uint64_t value;
      memcpy(&value, at, sizeof value);
      return (int64_t)(value ^ 0x8000000000000000);
    }
    case kMyccI8: return *(const int8_t*)at;
    default: return *(const uint8_t*)at;
  }
}

static int IsWorse(const struct Candidate* a, const struct Candidate* b) {
  return a->key != b->key ? a->key < b->key : a->index > b->index;
}

// Moves the element at `i` down to its place: no candidate is worse than the one above it.
static void SiftDown(struct Candidate* heap, int64_t count, int64_t i) {
  const struct Candidate moved = heap[i];
  for (int64_t child = 2 * i + 1; child < count; child = 2 * i + 1) {
    if (child + 1 < count && IsWorse(&heap[child + 1], &heap[child])) ++child;
    if (!IsWorse(&heap[child], &moved)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moved;
}

// Leaves the k best of n elements, `stride` bytes apart, in `heap`, the best first.
static void SelectRow(const uint8_t* row, int64_t dtype, int64_t n, int64_t stride, int64_t k, int is_largest,
                      struct Candidate* heap) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t key = MyccElementKey(dtype, row + i * stride);
    const struct Candidate candidate = {is_largest ? key : ~key, i};
    if (i < k) heap[i] = candidate;
    if (i == k - 1) {
      for (int64_t parent = k / 2; parent-- > 0;) SiftDown(heap, k, parent);
    }
    if (i >= k && IsWorse(&heap[0], &candidate)) {
      heap[0] = candidate;
      SiftDown(heap, k, 0);
    }
  }
  for (int64_t left = k; left-- > 1;) {
    const struct Candidate worst = heap[0];
    heap[0] = heap[left];
    heap[left] = worst;
    SiftDown(heap, left, 0);
  }
}

int64_t MyccTopKWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  return tensors[1].shape[attributes[kMyccTopKAxis]] * (int64_t)sizeof(struct Candidate);
}

void MyccTopK(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  const struct MyccTensor* x = &tensors[0];
  const int64_t axis = attributes[kMyccTopKAxis];
  const int64_t n = x->shape[axis], k = tensors[1].shape[axis], bytes = x->element_bytes;
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x->shape[i];
  for (int64_t i = axis + 1; i < x->ndim; ++i) inner *= x->shape[i];
  struct Candidate* heap = (struct Candidate*)workspace;
  uint8_t* values = tensors[1].data;
  uint8_t* indices = tensors[2].data;
  if (k <= 0 || k > n) return;
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t o = row / inner, i = row % inner;
    const uint8_t* from = (const uint8_t*)x->data + (o * n * inner + i) * bytes;
    SelectRow(from, x->dtype, n, inner * bytes, k, attributes[kMyccTopKLargest] != 0, heap);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t to = (o * k + j) * inner + i;
      memcpy(values + to * bytes, from + heap[j].index * inner * bytes, (size_t)bytes);
      memcpy(indices + to * 8, &heap[j].index, 8);
    }
  }
}

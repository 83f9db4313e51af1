// Unique: the distinct slices of a tensor along an axis.
#include "codegen/runtime/artifact/elements.h"

struct Slices {
  const struct MyccTensor* x;
  int64_t extent, outer, inner;
};

// Less than, equal to or more than 0, as slice a is before, equal to or behind slice b.
static int Compare(const struct Slices* slices, int64_t a, int64_t b) {
  const struct MyccTensor* x = slices->x;
  for (int64_t o = 0; o < slices->outer; ++o) {
    for (int64_t i = 0; i < slices->inner; ++i) {
      const uint8_t* data = x->data;
      const int64_t row = o * slices->extent, bytes = x->element_bytes;
      const int64_t one = MyccElementKey(x->dtype, data + ((row + a) * slices->inner + i) * bytes);
      const int64_t other = MyccElementKey(x->dtype, data + ((row + b) * slices->inner + i) * bytes);
      if (one != other) return one < other ? -1 : 1;
    }
  }
  return 0;
}

static int IsBefore(const void* slices, int64_t a, int64_t b) { return Compare(slices, a, b) < 0; }

int64_t MyccUniqueWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  return 4 * tensors[0].shape[attributes[kMyccUniqueAxis]] * (int64_t)sizeof(int64_t);
}

void MyccUnique(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  const struct MyccTensor* x = &tensors[0];
  const int64_t axis = attributes[kMyccUniqueAxis], extent = x->shape[axis];
  const struct Slices slices = {x, extent, MyccOuter(x, axis), MyccInner(x, axis)};
  int64_t *order = (int64_t*)workspace, *other = order + extent, *group_of = other + extent,
          *number_of = group_of + extent;
  for (int64_t i = 0; i < extent; ++i) order[i] = i;
  MyccSort(order, other, extent, IsBefore, &slices);
  int64_t groups = 0;
  for (int64_t i = 0; i < extent; ++i) {
    if (i == 0 || Compare(&slices, order[i - 1], order[i]) != 0) number_of[groups++] = -1;
    group_of[order[i]] = groups - 1;
  }
  // Groups are numbered in their order, or in the order of their first slices.
  for (int64_t i = 0; i < groups && attributes[kMyccUniqueSorted] != 0; ++i) number_of[i] = i;
  int64_t* first_of = order;  // of each number; its slices are known from here on
  int64_t* count_of = other;
  for (int64_t i = 0; i < groups; ++i) first_of[i] = count_of[i] = 0;
  int64_t next = 0;
  for (int64_t i = 0; i < extent; ++i) {
    int64_t* number = &number_of[group_of[i]];
    if (*number < 0) *number = next++;
    if (count_of[*number]++ == 0) first_of[*number] = i;
    MyccSetInt64(&tensors[3], i, *number);
  }
  const int64_t bytes = slices.inner * x->element_bytes;
  uint8_t* to = tensors[1].data;
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (int64_t i = 0; i < groups; ++i, to += bytes)
      memcpy(to, (const uint8_t*)x->data + (o * extent + first_of[i]) * bytes, (size_t)bytes);
  }
  for (int64_t i = 0; i < groups; ++i) {
    MyccSetInt64(&tensors[2], i, first_of[i]);
    MyccSetInt64(&tensors[4], i, count_of[i]);
  }
  MyccClearFrom(&tensors[1], slices.outer * groups * slices.inner);
  MyccClearFrom(&tensors[2], groups);
  MyccClearFrom(&tensors[4], groups);
  for (int64_t i = 5; i < 8; ++i) MyccSetInt64(&tensors[i], 0, groups);
}

// Texts in tensors, for the library kernels that work on them. An element is a 64-bit handle: the address of
// a text in UTF-8 that a NUL ends, or NULL, which stands for the empty text. Internal to this folder.
//
// Thread rule: the texts that kernels make are each thread's own.
#pragma once

#include "codegen/runtime/artifact/elements.h"

static inline const char* MyccTextAt(const struct MyccTensor* tensor, int64_t place) {
  const char* text;
  memcpy(&text, (const uint8_t*)tensor->data + place * 8, 8);
  return text == 0 ? "" : text;
}

static inline void MyccSetText(const struct MyccTensor* tensor, int64_t place, const char* text) {
  memcpy((uint8_t*)tensor->data + place * 8, &text, 8);
}

// The element of a tensor that stands at a place of the shape that it is broadcast to.
static inline int64_t MyccBroadcastPlace(const struct MyccTensor* from, const struct MyccTensor* to,
                                         int64_t place) {
  const int64_t skipped = to->ndim - from->ndim;
  int64_t at = 0, stride = 1;
  for (int64_t i = from->ndim - 1; i >= 0; --i) {
    const int64_t extent = to->shape[skipped + i];
    if (from->shape[i] != 1) at += place % extent * stride;
    place /= extent;
    stride *= from->shape[i];
  }
  return at;
}

// Memory for a text that this thread's call makes; NULL, and the call fails, when there is none.
char* MyccNewText(int64_t bytes);

// The character at a place of a text, and the number of its bytes. A byte that is not UTF-8 counts as a
// character with the number of the byte plus kMyccNotUtf8, and is written as it was.
enum { kMyccNotUtf8 = 0x200000 };
int MyccReadCharacter(const char* text, uint32_t* character);
char* MyccWriteCharacter(char* to, uint32_t character);

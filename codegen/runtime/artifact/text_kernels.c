// The kernels of texts that need no more than their bytes: constants, joining, comparing, looking up.
#include "codegen/runtime/artifact/texts.h"

// A constant is one piece of memory of the library, in which the texts stand after another.
void MyccTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const int64_t count = MyccElements(&tensors[1]);
  const char* text = tensors[0].data;
  for (int64_t i = 0; i < count; ++i) {
    MyccSetText(&tensors[1], i, text);
    text += strlen(text) + 1;
  }
}

void MyccConcatTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const struct MyccTensor* joined = &tensors[2];
  const int64_t count = MyccElements(joined);
  for (int64_t i = 0; i < count; ++i) {
    const char* a = MyccTextAt(&tensors[0], MyccBroadcastPlace(&tensors[0], joined, i));
    const char* b = MyccTextAt(&tensors[1], MyccBroadcastPlace(&tensors[1], joined, i));
    const size_t a_bytes = strlen(a), b_bytes = strlen(b);
    char* text = MyccNewText((int64_t)(a_bytes + b_bytes + 1));
    MyccSetText(joined, i, text);
    if (text == 0) continue;
    memcpy(text, a, a_bytes);
    memcpy(text + a_bytes, b, b_bytes + 1);
  }
}

void MyccEqualTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const struct MyccTensor* equal = &tensors[2];
  const int64_t count = MyccElements(equal);
  for (int64_t i = 0; i < count; ++i) {
    const char* a = MyccTextAt(&tensors[0], MyccBroadcastPlace(&tensors[0], equal, i));
    const char* b = MyccTextAt(&tensors[1], MyccBroadcastPlace(&tensors[1], equal, i));
    ((uint8_t*)equal->data)[i] = strcmp(a, b) == 0;
  }
}

void MyccFindTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const int64_t count = MyccElements(&tensors[0]), keys = MyccElements(&tensors[1]);
  for (int64_t i = 0; i < count; ++i) {
    const char* text = MyccTextAt(&tensors[0], i);
    int64_t key = keys;
    while (key-- > 0 && strcmp(text, MyccTextAt(&tensors[1], key)) != 0) {
    }
    MyccSetInt64(&tensors[2], i, key);
  }
}

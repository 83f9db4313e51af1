// StringSplit: the parts of texts between delimiters, or between white space.
#include "codegen/runtime/artifact/texts.h"

static int IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

static const char* SkipSpace(const char* text) {
  uint32_t c;
  for (int bytes; bytes = MyccReadCharacter(text, &c), IsSpace(c); text += bytes) {
  }
  return text;
}

// The next space, or the end.
static const char* FindSpace(const char* text) {
  uint32_t c;
  for (int bytes; bytes = MyccReadCharacter(text, &c), c != 0 && !IsSpace(c); text += bytes) {
  }
  return text;
}

// The next delimiter, or NULL.
static const char* Find(const char* text, const char* delimiter, size_t bytes) {
  for (; *text != '\0'; ++text) {
    size_t equal = 0;
    while (equal < bytes && text[equal] == delimiter[equal]) ++equal;  // a NUL is in no delimiter
    if (equal == bytes) return text;
  }
  return 0;
}

// A part of a text: from its first byte to behind its last one; `next` is where the rest begins.
struct Part {
  const char *begin, *end, *next;
};

// The part that begins at a place; the whole rest where no more splits are allowed. Without a delimiter it is
// between white space, and there may be none: then `begin` is NULL.
static struct Part PartAt(const char* text, const char* delimiter, int may_split) {
  if (delimiter[0] == '\0') {
    text = SkipSpace(text);
    const char* end = may_split ? FindSpace(text) : text + strlen(text);
    return (struct Part){*text == '\0' ? 0 : text, end, end};
  }
  const size_t bytes = strlen(delimiter);
  const char* end = may_split ? Find(text, delimiter, bytes) : 0;
  if (end == 0) return (struct Part){text, text + strlen(text), 0};
  return (struct Part){text, end, end + bytes};
}

// The number of parts; those that there is room for are copied.
static int64_t Split(const char* text, const char* delimiter, int64_t most, const struct MyccTensor* to,
                     int64_t place) {
  int64_t count = 0;
  while (text != 0) {
    const struct Part part = PartAt(text, delimiter, most < 0 || count < most);
    if (part.begin == 0) break;
    if (to != 0) {
      const size_t bytes = (size_t)(part.end - part.begin);
      char* copy = MyccNewText((int64_t)bytes + 1);
      MyccSetText(to, place + count, copy);
      if (copy != 0) {
        memcpy(copy, part.begin, bytes);
        copy[bytes] = '\0';
      }
    }
    ++count;
    text = part.next;
  }
  return count;
}

void MyccSplitTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)workspace;
  const struct MyccTensor *x = &tensors[0], *parts = &tensors[2];
  const char* delimiter = MyccTextAt(&tensors[1], 0);
  const int64_t most = attributes[0], texts = MyccElements(x), room = parts->shape[parts->ndim - 1];
  int64_t width = 0;
  for (int64_t i = 0; i < texts; ++i) {
    const int64_t count = Split(MyccTextAt(x, i), delimiter, most, 0, 0);
    MyccSetInt64(&tensors[3], i, count);
    width = count > width ? count : width;
  }
  MyccClearFrom(parts, 0);
  if (width > room) {
    MyccSetProblem(
        "a text has more parts than the shape that the model declares for the output of StringSplit");
    width = 0;
  }
  for (int64_t i = 0; i < texts && width > 0; ++i) {
    const int64_t count = Split(MyccTextAt(x, i), delimiter, most, parts, i * width);
    for (int64_t k = count; k < width; ++k) MyccSetText(parts, i * width + k, "");
  }
  MyccSetInt64(&tensors[4], 0, width);
}

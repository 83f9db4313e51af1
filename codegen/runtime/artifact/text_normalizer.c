// StringNormalizer: removes the stop words, and changes the case of what is left.
#include "codegen/runtime/artifact/letter_cases.h"
#include "codegen/runtime/artifact/texts.h"

static uint32_t OtherCase(const struct MyccLetterRun* runs, int64_t count, uint32_t letter) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (runs[middle].last < letter) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == count || letter < runs[low].first) return letter;
  const int is_one = (letter - runs[low].first) % (uint32_t)runs[low].stride == 0;
  return is_one ? letter + (uint32_t)runs[low].delta : letter;
}

static uint32_t Lower(uint32_t letter) {
  if (letter < 0x80) return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
  return OtherCase(kMyccToLower, sizeof kMyccToLower / sizeof *kMyccToLower, letter);
}

static uint32_t Upper(uint32_t letter) {
  if (letter < 0x80) return letter >= 'a' && letter <= 'z' ? letter - 32 : letter;
  return OtherCase(kMyccToUpper, sizeof kMyccToUpper / sizeof *kMyccToUpper, letter);
}

static int EqualWithoutCase(const char* a, const char* b) {
  for (;;) {
    uint32_t one, other;
    a += MyccReadCharacter(a, &one);
    b += MyccReadCharacter(b, &other);
    if (Lower(one) != Lower(other)) return 0;
    if (one == 0) return 1;
  }
}

static int IsStopWord(const struct MyccTensor* words, const char* text, int is_case_sensitive) {
  const int64_t count = MyccElements(words);
  for (int64_t i = 0; i < count; ++i) {
    const char* word = MyccTextAt(words, i);
    if (is_case_sensitive ? strcmp(text, word) == 0 : EqualWithoutCase(text, word)) return 1;
  }
  return 0;
}

// No letter takes more than half as many bytes again in its other case.
static const char* Changed(const char* text, int64_t change) {
  if (change == kMyccKeepCase) return text;
  char* changed = MyccNewText((int64_t)strlen(text) * 3 / 2 + 1);
  if (changed == 0) return text;
  char* to = changed;
  for (uint32_t letter = 1; letter != 0;) {
    text += MyccReadCharacter(text, &letter);
    to = MyccWriteCharacter(to, change == kMyccToLowerCase ? Lower(letter) : Upper(letter));
  }
  return changed;
}

void MyccNormalizeTexts(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)workspace;
  const int64_t has_words = attributes[kMyccNormalizeStops], count = MyccElements(&tensors[0]);
  const struct MyccTensor* result = &tensors[1 + has_words];
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const char* text = MyccTextAt(&tensors[0], i);
    if (has_words && IsStopWord(&tensors[1], text, attributes[kMyccNormalizeSensitive] != 0)) continue;
    MyccSetText(result, kept++, Changed(text, attributes[kMyccNormalizeCase]));
  }
  if (kept == 0) MyccSetText(result, kept++, "");
  for (int64_t i = kept; i < MyccElements(result); ++i) MyccSetText(result, i, "");
  MyccSetInt64(&tensors[2 + has_words], 0, kept);
}

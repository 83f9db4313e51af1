// Casts between numbers and texts. Nothing here depends on the locale: no number that libc reads or writes
// has a decimal point.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/runtime/artifact/texts.h"

enum { kMostDigits = 17, kMostBytes = 64, kMostProblemBytes = 96 };

static double FloatAt(const struct MyccTensor* tensor, int64_t place) {
  if (tensor->dtype == kMyccF32) {
    float value;
    memcpy(&value, (const uint8_t*)tensor->data + place * 4, 4);
    return value;
  }
  double value;
  memcpy(&value, (const uint8_t*)tensor->data + place * 8, 8);
  return value;
}

// A signed decimal number.
static int PowerAt(const char* text) {
  const int is_negative = *text == '-';
  int power = 0;
  for (++text; *text != '\0'; ++text) power = 10 * power + (*text - '0');
  return is_negative ? -power : power;
}

// The fewest digits that stand for no other number of the type: digits * 10^exponent, as an integer.
static int ShortestDigits(double value, int64_t dtype, char* digits) {
  int exponent = 0;
  for (int count = 1; count <= kMostDigits; ++count) {
    char text[kMostBytes];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    int length = 0;
    const char* at = text;
    for (; *at != 'e'; ++at) {
      if (*at >= '0' && *at <= '9') digits[length++] = *at;
    }
    digits[length] = '\0';
    exponent = PowerAt(at + 1) - (length - 1);
    snprintf(text, sizeof text, "%se%d", digits, exponent);
    if (dtype == kMyccF32 ? strtof(text, 0) == (float)value : strtod(text, 0) == value) break;
  }
  return exponent;
}

// As Python writes a float: 0.25, 3.0, 1e-05, 1.5e+16.
static void PrintFloat(char* text, double value, int64_t dtype) {
  if (value != value) {
    memcpy(text, "nan", 4);
    return;
  }
  uint64_t bits;
  memcpy(&bits, &value, 8);
  if (bits >> 63 != 0) {
    *text++ = '-';
    value = -value;
  }
  if (value > 0 && value == value / 2) {
    memcpy(text, "inf", 4);
    return;
  }
  char digits[kMostDigits + 8];
  const int exponent = ShortestDigits(value, dtype, digits);
  const int count = (int)strlen(digits), leading = exponent + count - 1;  // the first digit's power of ten
  if (value != 0 && (leading < -4 || leading >= 16)) {
    snprintf(text, kMostBytes - 1, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1,
             leading < 0 ? '-' : '+', leading < 0 ? -leading : leading);
    return;
  }
  for (int power = leading > 0 ? leading : 0; power >= (exponent < -1 ? exponent : -1); --power) {
    if (power == -1) *text++ = '.';
    const int digit = leading - power;
    *text++ = digit >= 0 && digit < count ? digits[digit] : '0';
  }
  *text = '\0';
}

static void PrintElement(char* text, const struct MyccTensor* x, int64_t place) {
  if (x->dtype == kMyccF32 || x->dtype == kMyccF64) {
    PrintFloat(text, FloatAt(x, place), x->dtype);
    return;
  }
  const uint8_t* at = (const uint8_t*)x->data + place * x->element_bytes;
  if (x->dtype == kMyccBool) {
    memcpy(text, *at != 0 ? "True" : "False", *at != 0 ? 5 : 6);
  } else if (x->dtype == kMyccU64) {
    snprintf(text, kMostBytes, "%llu", (unsigned long long)MyccInt64At(x, place));
  } else {
    snprintf(text, kMostBytes, "%lld", (long long)MyccElementKey(x->dtype, at));
  }
}

void MyccPrintNumbers(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const int64_t count = MyccElements(&tensors[0]);
  for (int64_t i = 0; i < count; ++i) {
    char printed[kMostBytes];
    PrintElement(printed, &tensors[0], i);
    const size_t bytes = strlen(printed) + 1;
    char* text = MyccNewText((int64_t)bytes);
    if (text != 0) memcpy(text, printed, bytes);
    MyccSetText(&tensors[1], i, text);
  }
}

static int IsDigit(char c) { return c >= '0' && c <= '9'; }

static int EqualWord(const char* text, const char* word) {
  for (; *word != '\0'; ++text, ++word) {
    if ((*text | 0x20) != *word) return 0;
  }
  return *text == '\0';
}

// A number without its point: the digits, and what the point takes from the exponent. NULL where the text has
// another form.
static const char* CopyDigits(const char* text, char* to, int64_t* exponent) {
  int64_t digits = 0, has_point = 0;
  for (; IsDigit(*text) || (*text == '.' && !has_point); ++text) {
    if (*text == '.') {
      has_point = 1;
      continue;
    }
    *to++ = *text;
    ++digits;
    *exponent -= has_point;
  }
  *to = '\0';
  return digits > 0 ? text : 0;
}

static int ReadFloat(const char* text, int64_t dtype, double* value) {
  const int is_negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  if (EqualWord(text, "inf") || EqualWord(text, "infinity")) {
    *value = is_negative ? -__builtin_inf() : __builtin_inf();
    return 1;
  }
  if (EqualWord(text, "nan")) {
    *value = __builtin_nan("");
    return 1;
  }
  char* digits = MyccNewText((int64_t)strlen(text) + kMostBytes);
  if (digits == 0) return 0;
  int64_t exponent = 0;
  text = CopyDigits(text, digits, &exponent);
  if (text == 0) return 0;
  if (*text == 'e' || *text == 'E') {
    ++text;
    const int sign = *text == '-' ? -1 : 1;
    if (*text == '-' || *text == '+') ++text;
    if (!IsDigit(*text)) return 0;
    int64_t power = 0;
    for (; IsDigit(*text); ++text) power = power < 1000000000 ? 10 * power + (*text - '0') : power;
    exponent += sign * power;
  }
  if (*text != '\0') return 0;
  snprintf(digits + strlen(digits), kMostBytes, "e%lld", (long long)exponent);
  *value = dtype == kMyccF32 ? (double)strtof(digits, 0) : strtod(digits, 0);
  if (is_negative) *value = -*value;
  return 1;
}

// An integer within the range of the type, as its bits.
static int ReadInteger(const char* text, int64_t dtype, int64_t bytes, uint64_t* value) {
  const int is_unsigned = dtype == kMyccU8 || dtype == kMyccU16 || dtype == kMyccU32 || dtype == kMyccU64;
  const int is_negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  const uint64_t all = ~(uint64_t)0 >> (64 - 8 * bytes), largest = is_unsigned ? all : all >> 1;
  const uint64_t most = !is_negative ? largest : is_unsigned ? 0 : largest + 1;
  uint64_t read = 0;
  if (!IsDigit(*text)) return 0;
  for (; IsDigit(*text); ++text) {
    const uint64_t digit = (uint64_t)(*text - '0');
    if (read > (most - digit) / 10 || digit > most) return 0;
    read = 10 * read + digit;
  }
  *value = is_negative ? -read : read;
  return *text == '\0';
}

// Reads one element, and writes it; 0 where the text is no number of the type.
static int ReadElement(const char* text, const struct MyccTensor* to, int64_t place) {
  uint8_t* at = (uint8_t*)to->data + place * to->element_bytes;
  if (to->dtype == kMyccF32 || to->dtype == kMyccF64) {
    double value = 0;
    const int is_number = ReadFloat(text, to->dtype, &value);
    const float narrow = (float)value;
    memcpy(at, to->dtype == kMyccF32 ? (const void*)&narrow : (const void*)&value, (size_t)to->element_bytes);
    return is_number;
  }
  uint64_t bits = 0;
  const int is_number = ReadInteger(text, to->dtype, to->element_bytes, &bits);
  memcpy(at, &bits, (size_t)to->element_bytes);
  return is_number;
}

// White space around a number is left out.
static const char* Trimmed(const char* text) {
  while (*text == ' ' || (*text >= '\t' && *text <= '\r')) ++text;
  size_t bytes = strlen(text);
  const size_t whole = bytes;
  while (bytes > 0 && (text[bytes - 1] == ' ' || (text[bytes - 1] >= '\t' && text[bytes - 1] <= '\r')))
    --bytes;
  if (bytes == whole) return text;
  char* copy = MyccNewText((int64_t)bytes + 1);
  if (copy == 0) return "";
  memcpy(copy, text, bytes);
  copy[bytes] = '\0';
  return copy;
}

static void SetProblemAt(int64_t place) {
  char* problem = MyccNewText(kMostProblemBytes);
  if (problem == 0) return;
  snprintf(problem, kMostProblemBytes, "a text of a Cast is no number of its type: element %lld of its input",
           (long long)place);
  MyccSetProblem(problem);
}

void MyccReadNumbers(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  (void)workspace;
  const int64_t count = MyccElements(&tensors[0]);
  for (int64_t i = 0; i < count; ++i) {
    if (ReadElement(Trimmed(MyccTextAt(&tensors[0], i)), &tensors[1], i)) continue;
    SetProblemAt(i);
    return;
  }
}

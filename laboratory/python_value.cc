#include "laboratory/python_value.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mycc {
namespace {

// x86's long double holds every int64_t and every double exactly.
long double Exact(const PythonValue& value) {
  if (const auto integer = value.AsInt()) return static_cast<long double>(*integer);
  return static_cast<long double>(std::get<double>(value.value));
}

// The shortest decimal that reads back as the number.
std::string FloatText(double d) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, d);
    if (std::strtod(text.c_str(), nullptr) == d) return text;
  }
  return absl::StrFormat("%.17g", d);
}

// A float that is a whole number of 64 bits, as that.
std::optional<int64_t> WholeOf(double d) {
  constexpr double kLimit = 9.2e18;
  if (!(std::abs(d) < kLimit) || d != std::floor(d)) return std::nullopt;
  return static_cast<int64_t>(d);
}

}  // namespace

std::optional<int64_t> PythonValue::AsInt() const {
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> PythonValue::AsFloat() const {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto integer = AsInt()) return static_cast<double>(*integer);
  return std::nullopt;
}

const std::string* PythonValue::AsText() const {
  const auto* text = std::get_if<Text>(&value);
  return text == nullptr ? nullptr : text->get();
}

const std::vector<PythonValue>* PythonValue::AsList() const {
  const auto* list = std::get_if<List>(&value);
  return list == nullptr ? nullptr : list->get();
}

bool IsTrue(const PythonValue& value) {
  if (const auto integer = value.AsInt()) return *integer != 0;
  if (const auto number = value.AsFloat()) return *number != 0;
  if (const std::string* text = value.AsText()) return !text->empty();
  const std::vector<PythonValue>* list = value.AsList();
  return list != nullptr && !list->empty();
}

bool AreEqual(const PythonValue& a, const PythonValue& b) {
  const std::vector<PythonValue>*left = a.AsList(), *right = b.AsList();
  if (left != nullptr && right != nullptr) {
    if (left->size() != right->size()) return false;
    for (size_t i = 0; i < left->size(); ++i) {
      if (!AreEqual((*left)[i], (*right)[i])) return false;
    }
    return true;
  }
  if (a.value.index() == 0 || b.value.index() == 0) return a.value.index() == b.value.index();
  return CompareValues(a, b) == 0;
}

std::optional<int> CompareValues(const PythonValue& a, const PythonValue& b) {
  if (a.IsNumber() && b.IsNumber()) {
    const auto left = a.AsInt(), right = b.AsInt();
    if (left && right) return *left < *right ? -1 : *left > *right;
    const long double x = Exact(a), y = Exact(b);
    if (std::isnan(x) || std::isnan(y)) return std::nullopt;
    return x < y ? -1 : x > y;
  }
  const std::string *left = a.AsText(), *right = b.AsText();
  if (left == nullptr || right == nullptr) return std::nullopt;
  const int order = left->compare(*right);
  return order < 0 ? -1 : order > 0;
}

std::string ValueText(const PythonValue& value) {
  if (const auto* truth = std::get_if<bool>(&value.value)) return *truth ? "true" : "false";
  if (const auto integer = value.AsInt()) return absl::StrCat(*integer);
  if (const auto number = value.AsFloat()) return FloatText(*number);
  if (const std::string* text = value.AsText()) return *text;
  const std::vector<PythonValue>* list = value.AsList();
  if (list == nullptr) return "none";
  std::string text = "[";
  for (const PythonValue& element : *list)
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", ValueText(element));
  return text + "]";
}

std::string EqualityKey(const PythonValue& value) {
  if (const auto integer = value.AsInt()) return absl::StrCat(*integer);
  if (const auto number = value.AsFloat()) {
    const auto whole = WholeOf(*number);
    return whole ? absl::StrCat(*whole) : FloatText(*number);
  }
  if (const std::string* text = value.AsText()) return absl::StrCat("'", text->size(), "'", *text);
  const std::vector<PythonValue>* list = value.AsList();
  if (list == nullptr) return "none";
  std::string text = "[";
  for (const PythonValue& element : *list) absl::StrAppend(&text, EqualityKey(element), ",");
  return text + "]";
}

const char* KindName(const PythonValue& value) {
  constexpr const char* kNames[] = {"None", "a truth value", "an integer", "a float", "a text", "a list"};
  return kNames[value.value.index()];
}

void AppendExact(const PythonValue& value, std::string* bytes) {
  bytes->push_back(static_cast<char>(value.value.index()));
  char word[8] = {};
  if (const auto integer = value.AsInt()) {
    std::memcpy(word, &*integer, sizeof(word));
    bytes->append(word, sizeof(word));
  } else if (const auto* number = std::get_if<double>(&value.value)) {
    std::memcpy(word, number, sizeof(word));
    bytes->append(word, sizeof(word));
  } else if (value.value.index() > 3) {
    const std::string text = EqualityKey(value);
    const uint64_t length = text.size();
    std::memcpy(word, &length, sizeof(word));
    bytes->append(word, sizeof(word));
    bytes->append(text);
  }
}

}  // namespace mycc

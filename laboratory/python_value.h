// A value of the expressions that describe tuning spaces: Python's None, bool, int, float, str and list.
// Tuples and sets are lists. Integers have 64 bits. Thread rule: a value; texts and lists are shared and
// immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mycc {

struct PythonValue {
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const std::vector<PythonValue>>;
  std::variant<std::monostate, bool, int64_t, double, Text, List> value;

  static PythonValue OfBool(bool b) { return {b}; }
  static PythonValue OfInt(int64_t i) { return {i}; }
  static PythonValue OfFloat(double d) { return {d}; }
  static PythonValue OfText(std::string text) {
    return {std::make_shared<const std::string>(std::move(text))};
  }
  static PythonValue OfList(std::vector<PythonValue> list) {
    return {std::make_shared<const std::vector<PythonValue>>(std::move(list))};
  }

  // An int, or a bool as 0 or 1.
  std::optional<int64_t> AsInt() const;
  std::optional<double> AsFloat() const;  // any number
  const std::string* AsText() const;
  const std::vector<PythonValue>* AsList() const;
  bool IsNumber() const { return value.index() >= 1 && value.index() <= 3; }
};

// Python's bool(): zero, None and what is empty are false.
bool IsTrue(const PythonValue& value);
// Python's ==: a bool, an int and a float of one size are equal.
bool AreEqual(const PythonValue& a, const PythonValue& b);
// Negative, 0 or positive as a is less, equal or greater. Nullopt: they have no order, such as a text and a
// number, or a NaN.
std::optional<int> CompareValues(const PythonValue& a, const PythonValue& b);

// For people and files: 16, 0.5, true, float4, [1, 2].
std::string ValueText(const PythonValue& value);
// The same text for equal values alone: a key of tables.
std::string EqualityKey(const PythonValue& value);
// "an integer", for messages.
const char* KindName(const PythonValue& value);
// Appends bytes that are the same for values of one kind and one content alone.
void AppendExact(const PythonValue& value, std::string* bytes);

}  // namespace mycc

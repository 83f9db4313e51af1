#include "laboratory/python_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace mycc {
namespace {

using Op = PythonOperator;
using Function = PythonFunction;

constexpr int64_t kLongestRange = 1'000'000;

absl::Status Refuse(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status Overflow(const char* what) {
  return Refuse(absl::StrCat("`", what, "` overflows; expected an integer of at most 64 bits"));
}

absl::StatusOr<PythonValue> Whole(bool overflows, int64_t value, Op op) {
  if (overflows) return Overflow(OperatorText(op));
  return PythonValue::OfInt(value);
}

absl::StatusOr<PythonValue> IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return Refuse("0 to a negative power; expected another base");
    return PythonValue::OfFloat(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t power = 1;
  for (int64_t square = base; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, square, &power)) return Overflow("**");
    if (exponent > 1 && __builtin_mul_overflow(square, square, &square)) return Overflow("**");
  }
  return PythonValue::OfInt(power);
}

absl::StatusOr<PythonValue> FloatPower(double base, double exponent) {
  if (base == 0 && exponent < 0) return Refuse("0 to a negative power; expected another base");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent))
    return Refuse("a fractional power of a negative number; expected a real number");
  const double power = std::pow(base, exponent);
  if (std::isinf(power) && std::isfinite(base) && std::isfinite(exponent)) return Overflow("**");
  return PythonValue::OfFloat(power);
}

absl::StatusOr<PythonValue> Shift(Op op, int64_t a, int64_t by) {
  if (by < 0) return Refuse(absl::StrCat("a shift by ", by, "; expected at least 0"));
  if (op == Op::kShiftRight) return PythonValue::OfInt(a >> std::min<int64_t>(by, 63));
  if (a == 0) return PythonValue::OfInt(0);
  int64_t shifted = 0;
  const bool overflows = by > 62 || __builtin_mul_overflow(a, int64_t{1} << by, &shifted);
  return Whole(overflows, shifted, op);
}

absl::StatusOr<PythonValue> ApplyInts(Op op, int64_t a, int64_t b) {
  const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
  if (divides && b == 0)
    return Refuse(absl::StrCat("`", OperatorText(op), "` by zero; expected another divisor"));
  int64_t result = 0;
  switch (op) {
    case Op::kAdd: return Whole(__builtin_add_overflow(a, b, &result), result, op);
    case Op::kSubtract: return Whole(__builtin_sub_overflow(a, b, &result), result, op);
    case Op::kMultiply: return Whole(__builtin_mul_overflow(a, b, &result), result, op);
    case Op::kDivide:
      return PythonValue::OfFloat(
          static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Op::kFloorDivide:
      if (b == -1) return Whole(__builtin_sub_overflow(int64_t{0}, a, &result), result, op);
      return PythonValue::OfInt(FloorQuotient(a, b));
    case Op::kModulo: return PythonValue::OfInt(b == -1 ? 0 : FloorRemainder(a, b));
    case Op::kPower: return IntPower(a, b);
    case Op::kShiftLeft:
    case Op::kShiftRight: return Shift(op, a, b);
    case Op::kBitAnd: return PythonValue::OfInt(a & b);
    case Op::kBitOr: return PythonValue::OfInt(a | b);
    default: return PythonValue::OfInt(a ^ b);
  }
}

absl::StatusOr<PythonValue> ApplyFloats(Op op, double a, double b) {
  const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
  if (divides && b == 0)
    return Refuse(absl::StrCat("`", OperatorText(op), "` by zero; expected another divisor"));
  switch (op) {
    case Op::kAdd: return PythonValue::OfFloat(a + b);
    case Op::kSubtract: return PythonValue::OfFloat(a - b);
    case Op::kMultiply: return PythonValue::OfFloat(a * b);
    case Op::kDivide: return PythonValue::OfFloat(a / b);
    case Op::kFloorDivide: return PythonValue::OfFloat(FloatFloorQuotient(a, b));
    case Op::kModulo: return PythonValue::OfFloat(FloatRemainder(a, b));
    case Op::kPower: return FloatPower(a, b);
    default: return Refuse(absl::StrCat("`", OperatorText(op), "` of floats; expected integers"));
  }
}

absl::StatusOr<PythonValue> RefuseOperands(Op op, const PythonValue& left, const PythonValue& right,
                                           const char* expected) {
  return Refuse(absl::StrCat("`", OperatorText(op), "` of ", KindName(left), " and ", KindName(right),
                             "; expected ", expected));
}

// A text or a list several times over; none for less than one time.
absl::StatusOr<PythonValue> Repeat(const PythonValue& value, int64_t times, const PythonValue& count) {
  const std::string* text = value.AsText();
  const std::vector<PythonValue>* list = value.AsList();
  if (text == nullptr && list == nullptr) return RefuseOperands(Op::kMultiply, value, count, "numbers");
  const auto size = static_cast<int64_t>(text != nullptr ? text->size() : list->size());
  times = size == 0 ? 0 : std::max<int64_t>(times, 0);
  if (size > 0 && times > kLongestRange / size)
    return Refuse(absl::StrCat("`*` makes more than ", kLongestRange, " elements; expected fewer"));
  std::string texts;
  std::vector<PythonValue> elements;
  for (int64_t i = 0; i < times; ++i) {
    if (text != nullptr) texts += *text;
    if (list != nullptr) elements.insert(elements.end(), list->begin(), list->end());
  }
  return text != nullptr ? PythonValue::OfText(std::move(texts)) : PythonValue::OfList(std::move(elements));
}

bool Contains(const std::vector<PythonValue>& list, const PythonValue& value) {
  return std::ranges::any_of(list, [&](const PythonValue& element) { return AreEqual(element, value); });
}

absl::StatusOr<PythonValue> ApplyIn(Op op, const PythonValue& left, const PythonValue& right) {
  bool is_in = false;
  if (right.AsList() != nullptr) {
    is_in = Contains(*right.AsList(), left);
  } else if (left.AsText() != nullptr && right.AsText() != nullptr) {
    is_in = absl::StrContains(*right.AsText(), *left.AsText());
  } else {
    return RefuseOperands(op, left, right, "a list on the right");
  }
  return PythonValue::OfBool(is_in == (op == Op::kIn));
}

absl::StatusOr<PythonValue> RoundTo64(double rounded, const char* name) {
  constexpr double kLimit = 9.2e18;
  if (!(std::abs(rounded) < kLimit)) return Overflow(name);
  return PythonValue::OfInt(static_cast<int64_t>(rounded));
}

absl::StatusOr<PythonValue> OfNumber(Function function, const PythonValue& argument) {
  const auto number = argument.AsFloat();
  if (!number) return Refuse(absl::StrCat("a function of ", KindName(argument), "; expected a number"));
  const auto integer = argument.AsInt();
  switch (function) {
    case Function::kAbs:
      if (!integer) return PythonValue::OfFloat(std::abs(*number));
      if (*integer == std::numeric_limits<int64_t>::min()) return Overflow("abs");
      return PythonValue::OfInt(std::abs(*integer));
    case Function::kInt:
      return integer ? PythonValue::OfInt(*integer) : RoundTo64(std::trunc(*number), "int");
    case Function::kCeil:
      return integer ? PythonValue::OfInt(*integer) : RoundTo64(std::ceil(*number), "math.ceil");
    case Function::kFloor:
      return integer ? PythonValue::OfInt(*integer) : RoundTo64(std::floor(*number), "math.floor");
    case Function::kFloat: return PythonValue::OfFloat(*number);
    case Function::kLog:
    case Function::kLog10:
      if (!(*number > 0)) return Refuse("a logarithm of a number that is not positive; expected one that is");
      return PythonValue::OfFloat(function == Function::kLog ? std::log(*number) : std::log10(*number));
    case Function::kSqrt:
      if (*number < 0) return Refuse("math.sqrt of a negative number; expected at least 0");
      return PythonValue::OfFloat(std::sqrt(*number));
    default:
      if (!(*number > 0)) return Refuse("math.log2 of a number that is not positive; expected one that is");
      return PythonValue::OfFloat(std::log2(*number));
  }
}

absl::StatusOr<PythonValue> Extreme(Function function, const std::vector<PythonValue>& values) {
  if (values.empty()) return Refuse("min or max of nothing; expected at least one value");
  const Op better = function == Function::kMin ? Op::kLess : Op::kGreater;
  PythonValue extreme = values[0];
  for (const PythonValue& value : values) {
    MYCC_ASSIGN_OR_RETURN(const PythonValue is_better, ComparePython(better, value, extreme));
    if (IsTrue(is_better)) extreme = value;
  }
  return extreme;
}

absl::StatusOr<PythonValue> Sum(const std::vector<PythonValue>& values) {
  PythonValue sum = PythonValue::OfInt(0);
  for (const PythonValue& value : values) {
    MYCC_ASSIGN_OR_RETURN(sum, ApplyPython(Op::kAdd, sum, value));
  }
  return sum;
}

absl::StatusOr<PythonValue> Range(const std::vector<PythonValue>& arguments) {
  std::vector<int64_t> numbers;
  for (const PythonValue& argument : arguments) {
    const auto integer = argument.AsInt();
    if (!integer) return Refuse(absl::StrCat("range of ", KindName(argument), "; expected integers"));
    numbers.push_back(*integer);
  }
  if (numbers.size() == 1) numbers.insert(numbers.begin(), 0);
  if (numbers.size() == 2) numbers.push_back(1);
  const __int128 start = numbers[0], stop = numbers[1], step = numbers[2];
  if (step == 0) return Refuse("a range with step 0; expected another step");
  const __int128 count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count > kLongestRange)
    return Refuse(absl::StrCat("a longer range than ", kLongestRange, "; expected a shorter one"));
  std::vector<PythonValue> values;
  for (__int128 i = 0; i < count; ++i)
    values.push_back(PythonValue::OfInt(static_cast<int64_t>(start + i * step)));
  return PythonValue::OfList(std::move(values));
}

absl::StatusOr<PythonValue> Product(const std::vector<PythonValue>& values) {
  PythonValue product = PythonValue::OfInt(1);
  for (const PythonValue& value : values) {
    MYCC_ASSIGN_OR_RETURN(product, ApplyPython(Op::kMultiply, product, value));
  }
  return product;
}

absl::StatusOr<PythonValue> Gcd(const std::vector<PythonValue>& values) {
  uint64_t divisor = 0;
  for (const PythonValue& value : values) {
    const auto integer = value.AsInt();
    if (!integer) return Refuse(absl::StrCat("math.gcd of ", KindName(value), "; expected integers"));
    const auto bits = static_cast<uint64_t>(*integer);
    divisor = std::gcd(divisor, *integer < 0 ? ~bits + 1 : bits);
  }
  if (divisor > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return Overflow("math.gcd");
  return PythonValue::OfInt(static_cast<int64_t>(divisor));
}

// To the nearest, halves to the even one: an integer, or a float where decimal places are given.
absl::StatusOr<PythonValue> Round(const std::vector<PythonValue>& arguments) {
  constexpr int64_t kMostPlaces = 15;
  const auto integer = arguments[0].AsInt();
  const auto number = arguments[0].AsFloat();
  if (!number) return Refuse(absl::StrCat("round of ", KindName(arguments[0]), "; expected a number"));
  const auto places = arguments.size() > 1 ? arguments[1].AsInt() : 0;
  if (!places || *places < 0 || *places > kMostPlaces)
    return Refuse(absl::StrCat("round with other decimal places; expected an integer of 0 to ", kMostPlaces));
  if (integer) return PythonValue::OfInt(*integer);
  if (arguments.size() == 1) return RoundTo64(std::nearbyint(*number), "round");
  if (!std::isfinite(*number)) return arguments[0];
  // As in Python, the float's exact value is rounded to a decimal text.
  const std::string text = absl::StrFormat("%.*f", static_cast<int>(*places), *number);
  return PythonValue::OfFloat(std::strtod(text.c_str(), nullptr));
}

absl::StatusOr<PythonValue> LogToBase(const PythonValue& value, const PythonValue& base) {
  MYCC_ASSIGN_OR_RETURN(const PythonValue above, OfNumber(Function::kLog, value));
  MYCC_ASSIGN_OR_RETURN(const PythonValue below, OfNumber(Function::kLog, base));
  return ApplyPython(Op::kDivide, above, below);
}

absl::StatusOr<PythonValue> FloatsPower(const PythonValue& base, const PythonValue& exponent) {
  MYCC_ASSIGN_OR_RETURN(const PythonValue below, OfNumber(Function::kFloat, base));
  MYCC_ASSIGN_OR_RETURN(const PythonValue above, OfNumber(Function::kFloat, exponent));
  return ApplyPython(Op::kPower, below, above);
}

absl::StatusOr<PythonValue> Sorted(std::vector<PythonValue> values) {
  for (const PythonValue& value : values) {
    if (!CompareValues(values[0], value))
      return Refuse("sorted values without an order; expected numbers or texts");
  }
  std::ranges::stable_sort(
      values, [](const PythonValue& a, const PythonValue& b) { return *CompareValues(a, b) < 0; });
  return PythonValue::OfList(std::move(values));
}

PythonValue Unique(const std::vector<PythonValue>& list) {
  absl::flat_hash_set<std::string> seen;
  std::vector<PythonValue> unique;
  for (const PythonValue& value : list) {
    if (seen.insert(EqualityKey(value)).second) unique.push_back(value);
  }
  return PythonValue::OfList(std::move(unique));
}

absl::StatusOr<PythonValue> OfElements(Function function, const std::vector<PythonValue>& list) {
  switch (function) {
    case Function::kAll: return PythonValue::OfBool(std::ranges::all_of(list, IsTrue));
    case Function::kAny: return PythonValue::OfBool(std::ranges::any_of(list, IsTrue));
    case Function::kLen: return PythonValue::OfInt(static_cast<int64_t>(list.size()));
    case Function::kMax:
    case Function::kMin: return Extreme(function, list);
    case Function::kSum: return Sum(list);
    case Function::kProd: return Product(list);
    case Function::kSorted: return Sorted(list);
    case Function::kSet: return Unique(list);
    default: return PythonValue::OfList(list);
  }
}

}  // namespace

int64_t FloorQuotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t FloorRemainder(int64_t a, int64_t b) {
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double FloatRemainder(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder != 0) return (remainder < 0) != (b < 0) ? remainder + b : remainder;
  return std::copysign(0.0, b);
}

double FloatFloorQuotient(double a, double b) {
  const double quotient = (a - FloatRemainder(a, b)) / b;
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

const char* OperatorText(PythonOperator op) {
  constexpr const char* kTexts[] = {"+",  "-",  "*",  "/",  "//",     "%",  "**",    "<<", ">>",
                                    "&",  "|",  "^",  "-",  "+",      "~",  "<",     "<=", ">",
                                    ">=", "==", "!=", "in", "not in", "is", "is not"};
  return kTexts[static_cast<int>(op)];
}

absl::StatusOr<PythonValue> ApplyPython(PythonOperator op, const PythonValue& left,
                                        const PythonValue& right) {
  const auto a = left.AsInt(), b = right.AsInt();
  const bool are_bools =
      std::holds_alternative<bool>(left.value) && std::holds_alternative<bool>(right.value);
  if (are_bools && op >= Op::kBitAnd && op <= Op::kBitXor) {
    MYCC_ASSIGN_OR_RETURN(const PythonValue bits, ApplyInts(op, *a, *b));
    return PythonValue::OfBool(IsTrue(bits));
  }
  if (a && b) return ApplyInts(op, *a, *b);
  if (left.IsNumber() && right.IsNumber()) return ApplyFloats(op, *left.AsFloat(), *right.AsFloat());
  if (op == Op::kAdd && left.AsList() != nullptr && right.AsList() != nullptr) {
    std::vector<PythonValue> list = *left.AsList();
    list.insert(list.end(), right.AsList()->begin(), right.AsList()->end());
    return PythonValue::OfList(std::move(list));
  }
  if (op == Op::kAdd && left.AsText() != nullptr && right.AsText() != nullptr)
    return PythonValue::OfText(*left.AsText() + *right.AsText());
  if (op == Op::kMultiply && a) return Repeat(right, *a, left);
  if (op == Op::kMultiply && b) return Repeat(left, *b, right);
  return RefuseOperands(op, left, right, op == Op::kAdd ? "numbers, texts or lists" : "numbers");
}

absl::StatusOr<PythonValue> ApplyPython(PythonOperator op, const PythonValue& operand) {
  const auto integer = operand.AsInt();
  const auto number = operand.AsFloat();
  if (!number)
    return Refuse(absl::StrCat("`", OperatorText(op), "` of ", KindName(operand), "; expected a number"));
  if (op == Op::kInvert) {
    if (!integer) return Refuse("`~` of a float; expected an integer");
    return PythonValue::OfInt(~*integer);
  }
  if (op == Op::kPlus) return integer ? PythonValue::OfInt(*integer) : operand;
  if (integer) return ApplyInts(Op::kSubtract, 0, *integer);
  return PythonValue::OfFloat(-*number);
}

absl::StatusOr<PythonValue> ComparePython(PythonOperator op, const PythonValue& left,
                                          const PythonValue& right) {
  if (op == Op::kIn || op == Op::kNotIn) return ApplyIn(op, left, right);
  if (op == Op::kIs || op == Op::kIsNot) {
    const bool is_same = left.value.index() == right.value.index() && AreEqual(left, right);
    return PythonValue::OfBool(is_same == (op == Op::kIs));
  }
  if (op == Op::kEqual || op == Op::kNotEqual)
    return PythonValue::OfBool(AreEqual(left, right) == (op == Op::kEqual));
  const auto order = CompareValues(left, right);
  if (!order) {
    if (left.IsNumber() && right.IsNumber()) return PythonValue::OfBool(false);  // a NaN
    return RefuseOperands(op, left, right, "two numbers or two texts");
  }
  switch (op) {
    case Op::kLess: return PythonValue::OfBool(*order < 0);
    case Op::kLessEqual: return PythonValue::OfBool(*order <= 0);
    case Op::kGreater: return PythonValue::OfBool(*order > 0);
    default: return PythonValue::OfBool(*order >= 0);
  }
}

absl::StatusOr<PythonValue> PythonElement(const PythonValue& container, const PythonValue& index) {
  const std::vector<PythonValue>* list = container.AsList();
  const std::string* text = container.AsText();
  const auto number = index.AsInt();
  if ((list == nullptr && text == nullptr) || !number) {
    return Refuse(absl::StrCat("an element of ", KindName(container), " by ", KindName(index),
                               "; expected one of a list or a text, by an integer"));
  }
  const auto size = static_cast<int64_t>(list != nullptr ? list->size() : text->size());
  const int64_t place = *number < 0 ? *number + size : *number;
  if (place < 0 || place >= size)
    return Refuse(absl::StrCat("element ", *number, " of ", size, "; expected one that is there"));
  if (list != nullptr) return (*list)[static_cast<size_t>(place)];
  return PythonValue::OfText(text->substr(static_cast<size_t>(place), 1));
}

absl::StatusOr<PythonValue> CallPython(PythonFunction function, const std::vector<PythonValue>& arguments) {
  const PythonValue& first = arguments[0];
  switch (function) {
    case Function::kRange: return Range(arguments);
    case Function::kPow: return ApplyPython(Op::kPower, first, arguments[1]);
    case Function::kMathPow: return FloatsPower(first, arguments[1]);
    case Function::kRound: return Round(arguments);
    case Function::kGcd: return Gcd(arguments);
    case Function::kLog:
      return arguments.size() > 1 ? LogToBase(first, arguments[1]) : OfNumber(function, first);
    case Function::kBool: return PythonValue::OfBool(IsTrue(first));
    case Function::kLen:
      if (first.AsText() != nullptr) return PythonValue::OfInt(static_cast<int64_t>(first.AsText()->size()));
      break;
    case Function::kMax:
    case Function::kMin:
      if (arguments.size() > 1) return Extreme(function, arguments);
      break;
    case Function::kAbs:
    case Function::kCeil:
    case Function::kFloat:
    case Function::kFloor:
    case Function::kInt:
    case Function::kLog10:
    case Function::kLog2:
    case Function::kSqrt: return OfNumber(function, first);
    default: break;
  }
  if (first.AsList() == nullptr)
    return Refuse(absl::StrCat("a function of ", KindName(first), "; expected a list"));
  return OfElements(function, *first.AsList());
}

}  // namespace mycc

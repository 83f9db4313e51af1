// Python expressions, as files of tuning spaces write them: the values of a parameter, such as
// `[16 * i for i in range(1, 5)]`, and the constraints of a space, such as `32 <= x * y <= 1024`.
//
// Parsed once to a tree, evaluated for many configurations, with Python's meaning: `/` is true division, `//`
// and `%` round down, comparisons chain, `and` and `or` return an operand, zero and what is empty is false.
// Unlike Python's, integers have 64 bits; one that needs more is an error. Names are parameters, written `x`
// or `p["x"]`. `is` compares kind and value. Thread rule: immutable once parsed; an environment belongs to
// one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/python_value.h"

namespace mycc {

enum class PythonOperator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kShiftLeft,
  kShiftRight,
  kBitAnd,
  kBitOr,
  kBitXor,
  kNegate,
  kPlus,
  kInvert,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kIn,
  kNotIn,
  kIs,
  kIsNot,
};

enum class PythonFunction : uint8_t {
  kAbs,
  kAll,
  kAny,
  kBool,
  kCeil,
  kFloat,
  kFloor,
  kGcd,
  kInt,
  kLen,
  kList,
  kLog,
  kLog10,
  kLog2,
  kMathPow,
  kMax,
  kMin,
  kPow,
  kProd,
  kRange,
  kRound,
  kSet,
  kSorted,
  kSqrt,
  kSum,
  kTuple,
};

struct ExpressionNode {
  enum class Kind : uint8_t {
    kConstant,
    kName,
    kList,
    kAnd,
    kOr,
    kNot,
    kCompare,
    kBinary,
    kUnary,
    kIf,
    kCall,
    kSubscript,
    kComprehension,
  };
  // `for NAME in iterable if condition ...` of a comprehension, whose only child is its element.
  struct Clause {
    std::string name;
    int slot = 0;
    int iterable = 0;
    std::vector<int> conditions;
  };

  Kind kind = Kind::kConstant;
  PythonOperator op = PythonOperator::kAdd;
  PythonFunction function = PythonFunction::kAbs;
  int column = 1;  // in the text, from 1
  int slot = 0;    // a name's place in the environment
  std::string name;
  PythonValue constant;
  std::vector<int> children;                // kIf: condition, value, other value
  std::vector<PythonOperator> comparisons;  // between the children of kCompare
  std::vector<Clause> clauses;
  std::vector<int> used;  // the parameters that it depends on, ascending
  bool is_scalar =
      false;  // it works on numbers alone, as long as its parameters are numbers (expression_scalars.h)
};

// The values of the parameters, in the order of their names, and room for the names of comprehensions.
using ExpressionEnvironment = std::vector<PythonValue>;

class Expression {
 public:
  // InvalidArgument "column 5: ..., expected ..." on text that is no expression or names no parameter.
  static absl::StatusOr<Expression> Parse(const std::string& text,
                                          const std::vector<std::string>& parameters);

  // InvalidArgument "column 5: ..." where Python would raise an exception, or a number needs more than 64
  // bits. REQUIRES: at least num_slots() values in the environment.
  absl::StatusOr<PythonValue> Evaluate(ExpressionEnvironment* environment) const {
    return Evaluate(root_, environment);
  }
  // The same for a part of the tree.
  absl::StatusOr<PythonValue> Evaluate(int node, ExpressionEnvironment* environment) const;

  const std::string& text() const { return text_; }
  const std::vector<ExpressionNode>& nodes() const { return nodes_; }  // children stand before their parents
  int root() const { return root_; }
  int num_slots() const { return num_slots_; }
  // The parameters that it depends on, ascending.
  const std::vector<int>& used() const { return nodes_[root_].used; }

 private:
  std::string text_;
  std::vector<ExpressionNode> nodes_;
  int root_ = 0;
  int num_slots_ = 0;
};

}  // namespace mycc

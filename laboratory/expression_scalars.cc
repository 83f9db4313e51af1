#include "laboratory/expression_scalars.h"

#include <algorithm>
#include <cmath>

#include "laboratory/python_arithmetic.h"

namespace mycc {
namespace {

using Kind = ExpressionNode::Kind;
using Op = PythonOperator;

enum class ScalarKind : uint8_t { kBool, kInt, kFloat };

struct PythonScalar {
  ScalarKind kind = ScalarKind::kInt;
  int64_t integer = 0;  // a bool's and an int's
  double real = 0;      // a float's

  bool is_float() const { return kind == ScalarKind::kFloat; }
  bool is_true() const { return is_float() ? real != 0 : integer != 0; }
  double AsFloat() const { return is_float() ? real : static_cast<double>(integer); }
  void SetBool(bool b) {
    kind = ScalarKind::kBool;
    integer = b ? 1 : 0;
  }
  void SetInt(int64_t i) {
    kind = ScalarKind::kInt;
    integer = i;
  }
  void SetFloat(double d) {
    kind = ScalarKind::kFloat;
    real = d;
  }
};

bool LoadScalar(const PythonValue& value, PythonScalar* out) {
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    out->SetInt(*integer);
  } else if (const auto* number = std::get_if<double>(&value.value)) {
    out->SetFloat(*number);
  } else if (const auto* truth = std::get_if<bool>(&value.value)) {
    out->SetBool(*truth);
  } else {
    return false;
  }
  return true;
}

bool IsScalarOperator(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kFloorDivide:
    case Op::kModulo:
    case Op::kNegate: return true;
    default: return false;
  }
}

// False on an overflow and a division by zero.
bool ApplyToInts(Op op, int64_t a, int64_t b, PythonScalar* out) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return false;
      break;
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return false;
      break;
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return false;
      break;
    case Op::kDivide:
      if (b == 0) return false;
      out->SetFloat(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
      return true;
    case Op::kFloorDivide:
      if (b == 0 || b == -1) return false;
      result = FloorQuotient(a, b);
      break;
    default:
      if (b == 0 || b == -1) return false;
      result = FloorRemainder(a, b);
      break;
  }
  out->SetInt(result);
  return true;
}

bool ApplyToFloats(Op op, double a, double b, PythonScalar* out) {
  if ((op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo) && b == 0) return false;
  switch (op) {
    case Op::kAdd: out->SetFloat(a + b); break;
    case Op::kSubtract: out->SetFloat(a - b); break;
    case Op::kMultiply: out->SetFloat(a * b); break;
    case Op::kDivide: out->SetFloat(a / b); break;
    case Op::kFloorDivide: out->SetFloat(FloatFloorQuotient(a, b)); break;
    default: out->SetFloat(FloatRemainder(a, b)); break;
  }
  return true;
}

// Numbers of different kinds compare exactly: a long double holds both.
template <typename T>
bool CompareNumbers(Op op, T a, T b) {
  switch (op) {
    case Op::kLess: return a < b;
    case Op::kLessEqual: return a <= b;
    case Op::kGreater: return a > b;
    case Op::kGreaterEqual: return a >= b;
    case Op::kEqual: return a == b;
    default: return a != b;
  }
}

bool CompareScalars(Op op, const PythonScalar& a, const PythonScalar& b) {
  if (!a.is_float() && !b.is_float()) return CompareNumbers(op, a.integer, b.integer);
  const auto exact = [](const PythonScalar& s) {
    return s.is_float() ? static_cast<long double>(s.real) : static_cast<long double>(s.integer);
  };
  return CompareNumbers(op, exact(a), exact(b));
}

class ScalarEvaluator {
 public:
  ScalarEvaluator(const std::vector<ExpressionNode>& nodes, const ExpressionEnvironment& environment)
      : nodes_(nodes), environment_(environment) {}

  bool Evaluate(int id, PythonScalar* out) const {
    const ExpressionNode& node = nodes_[id];
    switch (node.kind) {
      case Kind::kConstant: return LoadScalar(node.constant, out);
      case Kind::kName: return LoadScalar(environment_[node.slot], out);
      case Kind::kAnd:
      case Kind::kOr:
        for (const int child : node.children) {
          if (!Evaluate(child, out)) return false;
          if (out->is_true() == (node.kind == Kind::kOr)) return true;
        }
        return true;
      case Kind::kNot:
        if (!Evaluate(node.children[0], out)) return false;
        out->SetBool(!out->is_true());
        return true;
      case Kind::kIf:
        return Evaluate(node.children[0], out) && Evaluate(node.children[out->is_true() ? 1 : 2], out);
      case Kind::kCompare: return Compare(node, out);
      case Kind::kBinary: return Binary(node, out);
      case Kind::kUnary:
        if (!Evaluate(node.children[0], out)) return false;
        return out->is_float() ? ApplyToFloats(Op::kMultiply, -1, out->real, out)
                               : ApplyToInts(Op::kSubtract, 0, out->integer, out);
      case Kind::kCall: return Extreme(node, out);
      default: return false;
    }
  }

 private:
  bool Compare(const ExpressionNode& node, PythonScalar* out) const {
    PythonScalar left, right;
    if (!Evaluate(node.children[0], &left)) return false;
    for (size_t i = 0; i < node.comparisons.size(); ++i) {
      bool holds = false;
      if (node.comparisons[i] >= Op::kIn) {
        if (!IsIn(left, nodes_[node.children[i + 1]], &holds)) return false;
        holds = holds == (node.comparisons[i] == Op::kIn);
      } else {
        if (!Evaluate(node.children[i + 1], &right)) return false;
        holds = CompareScalars(node.comparisons[i], left, right);
        left = right;
      }
      out->SetBool(holds);
      if (!holds) return true;
    }
    return true;
  }

  // Every element is evaluated, as Python does.
  bool IsIn(const PythonScalar& value, const ExpressionNode& list, bool* is_in) const {
    PythonScalar element;
    for (const int child : list.children) {
      if (!Evaluate(child, &element)) return false;
      *is_in |= CompareScalars(Op::kEqual, value, element);
    }
    return true;
  }

  bool Binary(const ExpressionNode& node, PythonScalar* out) const {
    PythonScalar left, right;
    if (!Evaluate(node.children[0], &left) || !Evaluate(node.children[1], &right)) return false;
    if (left.is_float() || right.is_float())
      return ApplyToFloats(node.op, left.AsFloat(), right.AsFloat(), out);
    return ApplyToInts(node.op, left.integer, right.integer, out);
  }

  bool Extreme(const ExpressionNode& node, PythonScalar* out) const {
    const Op better = node.function == PythonFunction::kMin ? Op::kLess : Op::kGreater;
    if (!Evaluate(node.children[0], out)) return false;
    PythonScalar next;
    for (size_t i = 1; i < node.children.size(); ++i) {
      if (!Evaluate(node.children[i], &next)) return false;
      if (CompareScalars(better, next, *out)) *out = next;
    }
    return true;
  }

  const std::vector<ExpressionNode>& nodes_;
  const ExpressionEnvironment& environment_;
};

bool CanBeScalar(const std::vector<ExpressionNode>& nodes, const ExpressionNode& node) {
  const auto is_scalar = [&](int child) { return nodes[child].is_scalar; };
  const bool are_scalars = std::ranges::all_of(node.children, is_scalar);
  switch (node.kind) {
    case Kind::kConstant: return node.constant.IsNumber();
    case Kind::kName: return true;
    case Kind::kList:
    case Kind::kSubscript:
    case Kind::kComprehension: return false;
    case Kind::kBinary:
    case Kind::kUnary: return are_scalars && IsScalarOperator(node.op);
    case Kind::kCall:
      return are_scalars && node.children.size() > 1 &&
             (node.function == PythonFunction::kMin || node.function == PythonFunction::kMax);
    case Kind::kCompare:
      if (!is_scalar(node.children[0])) return false;
      for (size_t i = 0; i < node.comparisons.size(); ++i) {
        const ExpressionNode& right = nodes[node.children[i + 1]];
        if (node.comparisons[i] < Op::kIn && !right.is_scalar) return false;
        if (node.comparisons[i] < Op::kIn) continue;
        if (node.comparisons[i] > Op::kNotIn) return false;
        // A list that is written out, at the end of the chain.
        if (right.kind != Kind::kList || i + 1 < node.comparisons.size() ||
            !std::ranges::all_of(right.children, is_scalar)) {
          return false;
        }
      }
      return true;
    default: return are_scalars;
  }
}

}  // namespace

void MarkScalars(std::vector<ExpressionNode>* nodes) {
  for (ExpressionNode& node : *nodes) node.is_scalar = CanBeScalar(*nodes, node);
}

bool EvaluateScalar(const std::vector<ExpressionNode>& nodes, int node,
                    const ExpressionEnvironment& environment, PythonValue* value) {
  PythonScalar scalar;
  if (!ScalarEvaluator(nodes, environment).Evaluate(node, &scalar)) return false;
  switch (scalar.kind) {
    case ScalarKind::kBool: value->value = scalar.integer != 0; break;
    case ScalarKind::kInt: value->value = scalar.integer; break;
    case ScalarKind::kFloat: value->value = scalar.real; break;
  }
  return true;
}

}  // namespace mycc

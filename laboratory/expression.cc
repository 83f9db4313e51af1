// Evaluates expressions with Python's meaning.
#include "laboratory/expression.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "laboratory/expression_scalars.h"
#include "laboratory/python_arithmetic.h"

namespace mycc {
namespace {

using Kind = ExpressionNode::Kind;

// The elements of lists that one evaluation may produce.
constexpr int64_t kMostElements = 1'000'000;

class ExpressionEvaluator {
 public:
  ExpressionEvaluator(const std::vector<ExpressionNode>& nodes, ExpressionEnvironment* environment)
      : nodes_(nodes), environment_(*environment) {}

  // False after an error, which error() has then.
  bool Evaluate(int id, PythonValue* out) {
    const ExpressionNode& node = nodes_[id];
    switch (node.kind) {
      case Kind::kConstant: *out = node.constant; return true;
      case Kind::kName: *out = environment_[node.slot]; return true;
      case Kind::kList: return List(node, out);
      case Kind::kAnd:
      case Kind::kOr: return Logical(node, out);
      case Kind::kNot: return Not(node, out);
      case Kind::kCompare: return Compare(node, out);
      case Kind::kBinary: return Binary(node, out);
      case Kind::kUnary: return Unary(node, out);
      case Kind::kIf: return If(node, out);
      case Kind::kCall: return Call(node, out);
      case Kind::kSubscript: return Subscript(node, out);
      case Kind::kComprehension: return Comprehension(node, out);
    }
    return false;
  }

  const absl::Status& error() const { return error_; }

 private:
  bool Fail(const ExpressionNode& node, const std::string& what) {
    error_ = absl::InvalidArgumentError(absl::StrCat("column ", node.column, ": ", what));
    return false;
  }
  bool Take(const ExpressionNode& node, absl::StatusOr<PythonValue> result, PythonValue* out) {
    if (!result.ok()) return Fail(node, std::string(result.status().message()));
    *out = *std::move(result);
    return true;
  }
  bool Spend(const ExpressionNode& node, int64_t elements) {
    elements_ += elements;
    return elements_ <= kMostElements ||
           Fail(node, absl::StrCat("lists of more than ", kMostElements, " elements; expected fewer"));
  }

  bool Children(const ExpressionNode& node, std::vector<PythonValue>* values) {
    values->resize(node.children.size());
    for (size_t i = 0; i < values->size(); ++i) {
      if (!Evaluate(node.children[i], &(*values)[i])) return false;
    }
    return true;
  }

  bool List(const ExpressionNode& node, PythonValue* out) {
    std::vector<PythonValue> values;
    if (!Spend(node, static_cast<int64_t>(node.children.size())) || !Children(node, &values)) return false;
    *out = PythonValue::OfList(std::move(values));
    return true;
  }

  // `and` and `or` return the operand that decides.
  bool Logical(const ExpressionNode& node, PythonValue* out) {
    const bool deciding = node.kind == Kind::kOr;
    for (const int child : node.children) {
      if (!Evaluate(child, out)) return false;
      if (IsTrue(*out) == deciding) return true;
    }
    return true;
  }

  bool Not(const ExpressionNode& node, PythonValue* out) {
    if (!Evaluate(node.children[0], out)) return false;
    *out = PythonValue::OfBool(!IsTrue(*out));
    return true;
  }

  bool Compare(const ExpressionNode& node, PythonValue* out) {
    PythonValue left, right;
    if (!Evaluate(node.children[0], &left)) return false;
    for (size_t i = 0; i < node.comparisons.size(); ++i) {
      if (!Evaluate(node.children[i + 1], &right)) return false;
      const bool searches =
          node.comparisons[i] == PythonOperator::kIn || node.comparisons[i] == PythonOperator::kNotIn;
      if (searches && !SpendOf(node, right)) return false;
      if (!Take(node, ComparePython(node.comparisons[i], left, right), out)) return false;
      if (!IsTrue(*out)) return true;
      left = std::move(right);
    }
    return true;
  }

  bool Binary(const ExpressionNode& node, PythonValue* out) {
    PythonValue left, right;
    if (!Evaluate(node.children[0], &left) || !Evaluate(node.children[1], &right)) return false;
    return Take(node, ApplyPython(node.op, left, right), out) && SpendOf(node, *out);
  }

  bool Unary(const ExpressionNode& node, PythonValue* out) {
    PythonValue operand;
    return Evaluate(node.children[0], &operand) && Take(node, ApplyPython(node.op, operand), out);
  }

  bool If(const ExpressionNode& node, PythonValue* out) {
    if (!Evaluate(node.children[0], out)) return false;
    return Evaluate(node.children[IsTrue(*out) ? 1 : 2], out);
  }

  bool Call(const ExpressionNode& node, PythonValue* out) {
    std::vector<PythonValue> arguments;
    return Children(node, &arguments) && Take(node, CallPython(node.function, arguments), out) &&
           SpendOf(node, *out);
  }

  bool Subscript(const ExpressionNode& node, PythonValue* out) {
    PythonValue container, index;
    return Evaluate(node.children[0], &container) && Evaluate(node.children[1], &index) &&
           Take(node, PythonElement(container, index), out);
  }

  bool SpendOf(const ExpressionNode& node, const PythonValue& value) {
    return value.AsList() == nullptr || Spend(node, static_cast<int64_t>(value.AsList()->size()));
  }

  bool Comprehension(const ExpressionNode& node, PythonValue* out) {
    std::vector<PythonValue> values;
    if (!Clause(node, 0, &values)) return false;
    *out = PythonValue::OfList(std::move(values));
    return true;
  }

  bool Clause(const ExpressionNode& node, size_t number, std::vector<PythonValue>* values) {
    if (number == node.clauses.size()) {
      values->emplace_back();
      return Evaluate(node.children[0], &values->back());
    }
    const ExpressionNode::Clause& clause = node.clauses[number];
    PythonValue iterable;
    if (!Evaluate(clause.iterable, &iterable)) return false;
    if (iterable.AsList() == nullptr)
      return Fail(node, absl::StrCat("`for` over ", KindName(iterable), "; expected a list"));
    for (const PythonValue& element : *iterable.AsList()) {
      if (!Spend(node, 1)) return false;
      environment_[clause.slot] = element;
      bool passes = true;
      for (size_t i = 0; i < clause.conditions.size() && passes; ++i) {
        PythonValue condition;
        if (!Evaluate(clause.conditions[i], &condition)) return false;
        passes = IsTrue(condition);
      }
      if (passes && !Clause(node, number + 1, values)) return false;
    }
    return true;
  }

  const std::vector<ExpressionNode>& nodes_;
  ExpressionEnvironment& environment_;
  absl::Status error_;
  int64_t elements_ = 0;
};

}  // namespace

absl::StatusOr<PythonValue> Expression::Evaluate(int node, ExpressionEnvironment* environment) const {
  MYCC_CHECK(static_cast<int>(environment->size()) >= num_slots_) << environment->size() << " values";
  PythonValue value;
  if (nodes_[node].is_scalar && EvaluateScalar(nodes_, node, *environment, &value)) return value;
  ExpressionEvaluator evaluator(nodes_, environment);
  if (!evaluator.Evaluate(node, &value)) return evaluator.error();
  return value;
}

}  // namespace mycc

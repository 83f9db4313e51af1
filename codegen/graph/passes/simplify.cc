// Arithmetic that says the same in fewer or cheaper operations, as exporters write it out: x * 1, x - 0, x /
// 4, pow(x, 2), 1 / sqrt(x), a double negation, a select between equal arms. Each form keeps every value, NaN
// and infinities included; the sign of a zero may change where 0 is added.
#include <cmath>
#include <unordered_set>

#include "codegen/graph/passes/passes.h"

namespace mycc {
namespace {

bool IsNumber(const Expr& e, double number) {
  if (e->op != Op::kConst) return false;
  return IsFloat(e->dtype) ? e->value.f == number : e->value.i == static_cast<int64_t>(number);
}

bool IsPowerOfTwo(double number) {
  int exponent = 0;
  return std::isnormal(number) && std::abs(std::frexp(number, &exponent)) == 0.5;
}

Expr SimplerProduct(const Expr& e) {
  if (IsNumber(e->args[0], 1)) return e->args[1];
  return IsNumber(e->args[1], 1) ? e->args[0] : nullptr;
}

// A quotient by a number is a product, unless the number or its reciprocal is subnormal: exactly for a power
// of two, and within the language's bounds for f32.
Expr SimplerQuotient(const Expr& e) {
  const Expr &a = e->args[0], &b = e->args[1];
  if (IsNumber(b, 1)) return a;
  if (IsNumber(a, 1) && b->op == Op::kSqrt) return MakeUnary(Op::kRsqrt, b->args[0]);
  if (b->op != Op::kConst || (e->dtype != DType::kF32 && !IsPowerOfTwo(b->value.f))) return nullptr;
  const double number = b->value.f, least = SmallestNormal(e->dtype);
  const bool is_normal = std::isnormal(number) && std::abs(number) >= least && std::abs(1 / number) >= least;
  return is_normal ? a * FloatConst(1 / number, e->dtype) : nullptr;
}

Expr SimplerPower(const Expr& e) {
  const Expr &x = e->args[0], &y = e->args[1];
  if (IsNumber(y, 1)) return x;
  if (IsNumber(y, 2)) return x * x;
  if (IsNumber(y, 3)) return x * x * x;
  return IsNumber(y, -1) ? MakeBinary(Op::kDiv, FloatConst(1, e->dtype), x) : nullptr;
}

// The divisors of quotients that are rounded to integers. These stay: next to an integer or a tie, the error
// of a product would give another integer, as in floor(49 / 49).
class ExactDivisors {
 public:
  explicit ExactDivisors(const Graph& graph) {
    // Readers stand behind what they read, so their demands are known first.
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (const Reshape* reshape = std::get_if<Reshape>(&node.made_by)) {
        if (rounded_.count(node.outputs[0].get())) rounded_.insert(reshape->source.get());
      }
      if (const Stage* stage = std::get_if<Stage>(&node.made_by)) {
        if (rounded_.count(stage->output.get())) Note(stage->value);
        Visit(stage->value, [&](const ExprNode& e) {
          if (GivesIntegers(e)) Note(e.args[0]);
        });
      }
    }
  }

  bool Has(const Expr& divisor) const { return divisors_.count(divisor.get()) > 0; }

 private:
  static bool GivesIntegers(const ExprNode& e) {
    if (e.op == Op::kRound || e.op == Op::kFloor || e.op == Op::kCeil) return true;
    return e.op == Op::kCast && !IsFloat(e.dtype) && e.dtype != DType::kBool && IsFloat(e.args[0]->dtype);
  }

  // Notes quotients that become integers by arithmetic which is exact where theirs is.
  void Note(const Expr& e) {
    if (e->op == Op::kDiv) divisors_.insert(e->args[1].get());
    if (e->op == Op::kLoad) rounded_.insert(e->buffer.get());
    const bool passes = e->op == Op::kDiv || e->op == Op::kAdd || e->op == Op::kSub || e->op == Op::kMin ||
                        e->op == Op::kMax || e->op == Op::kCast || e->op == Op::kNeg || e->op == Op::kSelect;
    if (!passes) return;
    for (const Expr& arg : e->args) Note(arg);
  }

  BufferSet rounded_;
  std::unordered_set<const ExprNode*> divisors_;
};

Expr Simpler(const Expr& e, const ExactDivisors& exact) {
  switch (e->op) {
    case Op::kMul: return SimplerProduct(e);
    case Op::kDiv:
      return exact.Has(e->args[1]) && !IsPowerOfTwo(e->args[1]->value.f) ? nullptr : SimplerQuotient(e);
    case Op::kPow: return SimplerPower(e);
    case Op::kAdd:
      if (IsNumber(e->args[0], 0)) return e->args[1];
      return IsNumber(e->args[1], 0) ? e->args[0] : nullptr;
    case Op::kSub: return IsNumber(e->args[1], 0) ? e->args[0] : nullptr;
    case Op::kNeg: return e->args[0]->op == Op::kNeg ? e->args[0]->args[0] : nullptr;
    case Op::kNot: return e->args[0]->op == Op::kNot ? e->args[0]->args[0] : nullptr;
    case Op::kSelect: return StructurallyEqual(e->args[1], e->args[2]) ? e->args[1] : nullptr;
    default: return nullptr;
  }
}

}  // namespace

Graph Simplify(Graph graph, const Target&) {
  const ExactDivisors exact(graph);
  for (Node& node : graph.nodes) {
    Stage* stage = std::get_if<Stage>(&node.made_by);
    if (stage == nullptr) continue;
    stage->value = Rewrite(stage->value, [&](const Expr& e) { return Simpler(e, exact); });
  }
  return graph;
}

}  // namespace mycc

#include "codegen/ir/reduction.h"

#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/expr/print.h"

namespace mycc {
namespace {

absl::Status BrokenRule(const TupleFunction& tuple, size_t part, const std::string& what) {
  return absl::InternalError(absl::StrCat("part ", part, " of the tuple reduction ", tuple.name, " ", what));
}

// The number of the parameter among the parts, as a and as b; -1 for none.
std::pair<int, int> ParameterNumber(const TupleFunction& tuple, const Buffer& buffer) {
  std::pair<int, int> number = {-1, -1};
  for (size_t i = 0; i < tuple.parts.size(); ++i) {
    if (tuple.parts[i].a == buffer) number.first = static_cast<int>(i);
    if (tuple.parts[i].b == buffer) number.second = static_cast<int>(i);
  }
  return number;
}

}  // namespace

ReduceOp Reduction::op() const {
  MYCC_CHECK(tuple_ == nullptr) << tuple_->name << " reduces tuples";
  return op_;
}

Expr Reduction::Identity(int part, DType dtype) const {
  return tuple_ == nullptr ? ReduceIdentity(op_, dtype) : tuple_->parts[part].identity;
}

Expr Reduction::Combined(int part, const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  if (tuple_ == nullptr) return ReduceCombine(op_, a[0], b[0]);
  return Rewrite(tuple_->parts[part].combined, [&](const Expr& e) -> Expr {
    if (e->op != Op::kLoad) return nullptr;
    const auto [of_a, of_b] = ParameterNumber(*tuple_, e->buffer);
    return of_a >= 0 ? a[of_a] : b[of_b];
  });
}

Reduction Reduction::InOrder(int part) const {
  auto ordered = std::make_shared<TupleFunction>(*tuple_);
  const TupleFunction::Part& key = tuple_->parts[part];
  for (TupleFunction::Part& p : ordered->parts) {
    p.combined = Rewrite(p.combined, [&](const Expr& e) -> Expr {
      const bool asks = e->op == Op::kLt && IsLoadOf(e->args[0], key.b) && IsLoadOf(e->args[1], key.a);
      if (asks) return BoolConst(false);
      const bool joins = e->op == Op::kAnd || e->op == Op::kOr;
      return joins ? MakeBinary(e->op, e->args[0], e->args[1]) : nullptr;
    });
  }
  return Reduction(std::move(ordered));
}

std::string Reduction::name() const { return tuple_ ? tuple_->name : std::string(ReduceOpName(op_)); }

TupleParams::TupleParams(const std::vector<std::pair<std::string, DType>>& parts) {
  for (const auto& [name, dtype] : parts) {
    buffers_a.push_back(MakeBuffer(absl::StrCat("a.", name), dtype, {}));
    buffers_b.push_back(MakeBuffer(absl::StrCat("b.", name), dtype, {}));
    a.push_back(Load(buffers_a.back(), {}));
    b.push_back(Load(buffers_b.back(), {}));
  }
}

Reduction TupleParams::Function(std::string name, const std::vector<Expr>& identities,
                                const std::vector<Expr>& combined) const {
  auto tuple = std::make_shared<TupleFunction>();
  tuple->name = std::move(name);
  for (size_t i = 0; i < a.size(); ++i)
    tuple->parts.push_back({buffers_a[i], buffers_b[i], identities[i], combined[i]});
  return Reduction(std::move(tuple));
}

Reduction ArgExtremum(ReduceOp op, DType value) {
  const bool largest = op == ReduceOp::kArgMax;
  const TupleParams p({{"at", DType::kI32}, {"best", value}});
  const Expr &at = p.a[0], &best = p.a[1], &other_at = p.b[0], &other = p.b[1];
  const auto is_nan = [](const Expr& e) { return MakeBinary(Op::kNe, e, e); };
  Expr better = largest ? MakeBinary(Op::kLt, best, other) : MakeBinary(Op::kLt, other, best);
  Expr as_good = MakeBinary(Op::kEq, other, best);
  if (IsFloat(value)) {
    better =
        MakeBinary(Op::kOr, better, MakeBinary(Op::kAnd, is_nan(other), MakeBinary(Op::kEq, best, best)));
    as_good = MakeBinary(Op::kOr, as_good, MakeBinary(Op::kAnd, is_nan(other), is_nan(best)));
  }
  const Expr before =
      MakeBinary(Op::kOr, better, MakeBinary(Op::kAnd, as_good, MakeBinary(Op::kLt, other_at, at)));
  // A row without any value better than the identity, such as one of -inf alone, has its best at 0.
  return p.Function(
      std::string(ReduceOpName(op)),
      {IntConst(0, DType::kI32), ReduceIdentity(largest ? ReduceOp::kMax : ReduceOp::kMin, value)},
      {MakeSelect(before, other_at, at), MakeSelect(better, other, best)});
}

void ForEachOperation(const TupleFunction& function, const std::function<void(const ExprNode&)>& visit) {
  std::unordered_set<const ExprNode*> seen;
  const auto walk = [&](const Expr& expr, const auto& self) -> void {
    if (expr->args.empty() || !seen.insert(expr.get()).second) return;
    visit(*expr);
    for (const Expr& arg : expr->args) self(arg, self);
  };
  for (const TupleFunction::Part& part : function.parts) walk(part.combined, walk);
}

absl::Status CheckReduction(const Reduction& reduction) {
  if (reduction.tuple() == nullptr) return absl::OkStatus();
  const TupleFunction& tuple = *reduction.tuple();
  for (size_t i = 0; i < tuple.parts.size(); ++i) {
    const TupleFunction::Part& part = tuple.parts[i];
    const DType dtype = part.a->dtype;
    if (part.b->dtype != dtype || part.a->rank() != 0 || part.b->rank() != 0)
      return BrokenRule(tuple, i, "has parameters of different types, or with dimensions");
    if (part.identity->op != Op::kConst || part.identity->dtype != dtype)
      return BrokenRule(tuple, i, "starts from no constant of its type");
    if (part.combined->dtype != dtype)
      return BrokenRule(tuple, i, absl::StrCat("is combined to ", DTypeName(part.combined->dtype)));
    absl::Status status;
    Visit(part.combined, [&](const ExprNode& e) {
      if (e.op == Op::kVar) status.Update(BrokenRule(tuple, i, "uses a variable"));
      if (e.op != Op::kLoad) return;
      const auto [of_a, of_b] = ParameterNumber(tuple, e.buffer);
      if (of_a < 0 && of_b < 0)
        status.Update(BrokenRule(tuple, i, absl::StrCat("reads ", e.buffer->name, ", no parameter")));
      if (of_a >= 0 && of_a < static_cast<int>(i)) {
        status.Update(BrokenRule(
            tuple, i, absl::StrCat("reads ", e.buffer->name, ", an earlier part, which is stored before")));
      }
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string PrintReduction(const Reduction& reduction) {
  if (reduction.tuple() == nullptr) return "";
  const TupleFunction& tuple = *reduction.tuple();
  std::string heads, lines;
  for (const TupleFunction::Part& part : tuple.parts) {
    const std::string name = part.a->name.substr(2);
    absl::StrAppend(&heads, heads.empty() ? "" : ", ", name, ": ", DTypeName(part.a->dtype), " = ",
                    PrintExpr(part.identity));
    absl::StrAppend(&lines, "  ", name, " = ", PrintExpr(part.combined), "\n");
  }
  return absl::StrCat("reduction ", tuple.name, "(", heads, ") of a and b\n", lines);
}

}  // namespace mycc

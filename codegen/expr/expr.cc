// Constructors of expressions, which fold constants and trivial operations; and walks over expressions.
#include "codegen/expr/expr.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "codegen/expr/integers.h"

namespace mycc {
namespace {

struct OpInfo {
  std::string_view name;
  int arity;  // -1: any
};

constexpr OpInfo kOps[] = {
    {"const", 0},    {"var", 0},  {"load", -1}, {"neg", 1},   {"not", 1},   {"abs", 1},
    {"exp", 1},      {"exp2", 1}, {"log", 1},   {"sqrt", 1},  {"rsqrt", 1}, {"tanh", 1},
    {"erf", 1},      {"sin", 1},  {"cos", 1},   {"floor", 1}, {"ceil", 1},  {"round", 1},
    {"tf32", 1},     {"cast", 1}, {"add", 2},   {"sub", 2},   {"mul", 2},   {"div", 2},
    {"floordiv", 2}, {"mod", 2},  {"min", 2},   {"max", 2},   {"pow", 2},   {"lt", 2},
    {"le", 2},       {"eq", 2},   {"ne", 2},    {"and", 2},   {"or", 2},    {"select", 3},
};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kSelect) + 1);

const OpInfo& Info(Op op) { return kOps[static_cast<int>(op)]; }

Expr Make(Op op, DType dtype, std::vector<Expr> args) {
  return std::make_shared<ExprNode>(ExprNode{op, dtype, std::move(args)});
}

// The operation over operands that `map` returns; the same pointer when they are the old ones.
template <typename Map>
Expr WithMappedArgs(const Expr& expr, const Map& map) {
  if (expr->args.empty()) return expr;
  std::vector<Expr> args;
  args.reserve(expr->args.size());
  bool changed = false;
  for (const Expr& arg : expr->args) {
    args.push_back(map(arg));
    changed |= args.back() != arg;
  }
  return changed ? WithArgs(expr, std::move(args)) : expr;
}

// Folds i64 operations on constants and the identities of + - * // %; nullptr when there is nothing to fold.
Expr FoldIndex(Op op, const Expr& a, const Expr& b) {
  int64_t x = 0, y = 0;
  const bool cx = IsConstInt(a, &x), cy = IsConstInt(b, &y);
  if (cx && cy) {
    switch (op) {
      case Op::kAdd: return IntConst(WrapAdd(x, y));
      case Op::kSub: return IntConst(WrapSub(x, y));
      case Op::kMul: return IntConst(WrapMul(x, y));
      case Op::kFloorDiv: return y == -1 ? nullptr : IntConst(FloorDivInt(x, y));
      case Op::kMod: return IntConst(FloorModInt(x, y));
      case Op::kMin: return IntConst(std::min(x, y));
      case Op::kMax: return IntConst(std::max(x, y));
      case Op::kLt: return BoolConst(x < y);
      case Op::kLe: return BoolConst(x <= y);
      case Op::kEq: return BoolConst(x == y);
      case Op::kNe: return BoolConst(x != y);
      default: return nullptr;
    }
  }
  if ((op == Op::kAdd || op == Op::kSub) && cy && y == 0) return a;
  if (op == Op::kAdd && cx && x == 0) return b;
  if (op == Op::kMul && ((cx && x == 0) || (cy && y == 0))) return IntConst(0);
  if ((op == Op::kMul || op == Op::kFloorDiv) && cy && y == 1) return a;
  if (op == Op::kMul && cx && x == 1) return b;
  if (op == Op::kMod && cy && y == 1) return IntConst(0);
  return nullptr;
}

// `and` and `or` with a constant operand.
Expr FoldLogic(Op op, const Expr& a, const Expr& b) {
  int64_t x = 0;
  if (IsConstInt(a, &x)) return (op == Op::kAnd) == (x != 0) ? b : a;
  if (IsConstInt(b, &x)) return (op == Op::kAnd) == (x != 0) ? a : b;
  return nullptr;
}

}  // namespace

std::string_view OpName(Op op) { return Info(op).name; }
bool IsUnary(Op op) { return Info(op).arity == 1; }
bool IsBinary(Op op) { return Info(op).arity == 2; }
bool IsComparison(Op op) { return op == Op::kLt || op == Op::kLe || op == Op::kEq || op == Op::kNe; }

bool IsExact(Op op) {
  return op == Op::kNeg || op == Op::kAbs || op == Op::kFloor || op == Op::kCeil || op == Op::kRound ||
         op == Op::kMin || op == Op::kMax;
}

bool IsTranscendental(Op op) {
  return op == Op::kExp || op == Op::kExp2 || op == Op::kLog || op == Op::kTanh || op == Op::kErf ||
         op == Op::kSin || op == Op::kCos || op == Op::kPow;
}

bool IsCommutative(Op op) {
  return op == Op::kAdd || op == Op::kMul || op == Op::kMin || op == Op::kMax || op == Op::kEq ||
         op == Op::kNe || op == Op::kAnd || op == Op::kOr;
}

Var MakeVar(std::string name, int64_t extent) {
  return std::make_shared<VarNode>(VarNode{std::move(name), extent});
}

Expr VarRef(Var var) {
  return std::make_shared<ExprNode>(ExprNode{.op = Op::kVar, .dtype = DType::kI64, .var = std::move(var)});
}

int64_t PointsOf(const std::vector<Var>& axes) {
  int64_t points = 1;
  for (const Var& axis : axes) points *= axis->extent;
  return points;
}

int64_t PointsOf(const std::vector<Var>& axes, const std::vector<int>& chosen) {
  int64_t points = 1;
  for (const int axis : chosen) points *= axes[axis]->extent;
  return points;
}

Expr IntConst(int64_t value, DType dtype) {
  MYCC_CHECK(!IsFloat(dtype)) << "IntConst of type " << DTypeName(dtype);
  return std::make_shared<ExprNode>(ExprNode{Op::kConst, dtype, {}, {.i = WrapInt(dtype, value)}});
}

Expr FloatConst(double value, DType dtype) {
  MYCC_CHECK(IsFloat(dtype)) << "FloatConst of type " << DTypeName(dtype);
  return std::make_shared<ExprNode>(ExprNode{Op::kConst, dtype, {}, {.f = RoundFloat(dtype, value)}});
}

Expr BoolConst(bool value) { return IntConst(value, DType::kBool); }

Expr ZeroOf(DType dtype) { return IsFloat(dtype) ? FloatConst(0, dtype) : IntConst(0, dtype); }

Expr Load(Buffer buffer, std::vector<Expr> indices) {
  MYCC_CHECK(static_cast<int>(indices.size()) == buffer->rank())
      << buffer->name << " has rank " << buffer->rank() << ", indexed by " << indices.size();
  const DType dtype = buffer->dtype;
  return std::make_shared<ExprNode>(
      ExprNode{.op = Op::kLoad, .dtype = dtype, .args = std::move(indices), .buffer = std::move(buffer)});
}

Expr MakeUnary(Op op, Expr a) {
  MYCC_CHECK(IsUnary(op) && op != Op::kCast) << OpName(op);
  int64_t x = 0;
  if (op == Op::kNot && IsConstInt(a, &x)) return BoolConst(x == 0);
  if (op == Op::kNeg && a->dtype == DType::kI64 && IsConstInt(a, &x)) return IntConst(-x);
  const DType dtype = a->dtype;
  return Make(op, dtype, {std::move(a)});
}

Expr MakeCast(DType dtype, Expr a) {
  if (a->dtype == dtype) return a;
  return Make(Op::kCast, dtype, {std::move(a)});
}

Expr MakeBinary(Op op, Expr a, Expr b) {
  MYCC_CHECK(IsBinary(op)) << OpName(op);
  MYCC_CHECK(a->dtype == b->dtype) << OpName(op) << " of " << DTypeName(a->dtype) << " and "
                                   << DTypeName(b->dtype);
  if (a->dtype == DType::kI64) {
    if (Expr folded = FoldIndex(op, a, b)) return folded;
  }
  if (op == Op::kAnd || op == Op::kOr) {
    MYCC_CHECK(a->dtype == DType::kBool) << OpName(op) << " of " << DTypeName(a->dtype);
    if (Expr folded = FoldLogic(op, a, b)) return folded;
  }
  const DType dtype = IsComparison(op) ? DType::kBool : a->dtype;
  return Make(op, dtype, {std::move(a), std::move(b)});
}

Expr MakeSelect(Expr condition, Expr then, Expr otherwise) {
  MYCC_CHECK(condition->dtype == DType::kBool) << "select on " << DTypeName(condition->dtype);
  MYCC_CHECK(then->dtype == otherwise->dtype)
      << "select of " << DTypeName(then->dtype) << " and " << DTypeName(otherwise->dtype);
  int64_t x = 0;
  if (IsConstInt(condition, &x)) return x ? then : otherwise;
  const DType dtype = then->dtype;
  return Make(Op::kSelect, dtype, {std::move(condition), std::move(then), std::move(otherwise)});
}

Expr WithArgs(const Expr& expr, std::vector<Expr> args) {
  switch (expr->op) {
    case Op::kConst:
    case Op::kVar: return expr;
    case Op::kLoad: return Load(expr->buffer, std::move(args));
    case Op::kCast: return MakeCast(expr->dtype, std::move(args[0]));
    case Op::kSelect: return MakeSelect(std::move(args[0]), std::move(args[1]), std::move(args[2]));
    default:
      return IsUnary(expr->op) ? MakeUnary(expr->op, std::move(args[0]))
                               : MakeBinary(expr->op, std::move(args[0]), std::move(args[1]));
  }
}

Expr operator+(const Expr& a, const Expr& b) { return MakeBinary(Op::kAdd, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return MakeBinary(Op::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return MakeBinary(Op::kMul, a, b); }
Expr operator+(const Expr& a, int64_t b) { return a + IntConst(b, a->dtype); }
Expr operator-(const Expr& a, int64_t b) { return a - IntConst(b, a->dtype); }
Expr operator*(const Expr& a, int64_t b) { return a * IntConst(b, a->dtype); }
Expr FloorDiv(const Expr& a, int64_t b) { return MakeBinary(Op::kFloorDiv, a, IntConst(b, a->dtype)); }
Expr Mod(const Expr& a, int64_t b) { return MakeBinary(Op::kMod, a, IntConst(b, a->dtype)); }

bool IsConstInt(const Expr& expr, int64_t* value) {
  if (expr->op != Op::kConst || IsFloat(expr->dtype)) return false;
  if (value != nullptr) *value = expr->value.i;
  return true;
}

bool IsConstInt(const Expr& expr, int64_t value) {
  int64_t found = 0;
  return IsConstInt(expr, &found) && found == value;
}

bool IsZero(const Expr& expr) {
  if (expr->op != Op::kConst) return false;
  return IsFloat(expr->dtype) ? expr->value.f == 0 : expr->value.i == 0;
}

bool StructurallyEqual(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a->op != b->op || a->dtype != b->dtype || a->var != b->var || a->buffer != b->buffer) return false;
  if (a->op == Op::kConst) {
    return IsFloat(a->dtype) ? std::memcmp(&a->value.f, &b->value.f, sizeof(double)) == 0
                             : a->value.i == b->value.i;
  }
  return StructurallyEqual(a->args, b->args);
}

bool StructurallyEqual(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return StructurallyEqual(x, y); });
}

void Visit(const Expr& expr, const std::function<void(const ExprNode&)>& visit) {
  visit(*expr);
  for (const Expr& arg : expr->args) Visit(arg, visit);
}

Expr Rewrite(const Expr& expr, const std::function<Expr(const Expr&)>& rewrite) {
  Expr current = WithMappedArgs(expr, [&](const Expr& arg) { return Rewrite(arg, rewrite); });
  Expr replacement = rewrite(current);
  return replacement ? replacement : current;
}

Expr Substitute(const Expr& expr, const VarMap& map) {
  if (expr->op != Op::kVar)
    return WithMappedArgs(expr, [&](const Expr& arg) { return Substitute(arg, map); });
  const auto it = map.find(expr->var.get());
  return it == map.end() ? expr : it->second;
}

std::vector<Expr> Substitute(const std::vector<Expr>& exprs, const VarMap& map) {
  std::vector<Expr> substituted;
  substituted.reserve(exprs.size());
  for (const Expr& expr : exprs) substituted.push_back(Substitute(expr, map));
  return substituted;
}

bool UsesVar(const Expr& expr, const VarNode* var) {
  return (expr->op == Op::kVar && expr->var.get() == var) || UsesVar(expr->args, var);
}

bool UsesVar(const std::vector<Expr>& exprs, const VarNode* var) {
  return std::ranges::any_of(exprs, [&](const Expr& expr) { return UsesVar(expr, var); });
}

bool IsSameRead(const ExprNode& a, const ExprNode& b) {
  return a.buffer == b.buffer && StructurallyEqual(a.args, b.args);
}

bool IsLoadOf(const Expr& expr, const Buffer& buffer) {
  return expr->op == Op::kLoad && expr->buffer == buffer;
}

bool Loads(const Expr& expr, const Buffer& buffer) {
  return AnyExpr(expr, [&](const ExprNode& e) { return e.op == Op::kLoad && e.buffer == buffer; });
}

bool HasLoad(const Expr& expr) {
  return AnyExpr(expr, [](const ExprNode& e) { return e.op == Op::kLoad; });
}

bool UsesAnyOf(const Expr& expr, const VarSet& vars) {
  return AnyExpr(expr, [&](const ExprNode& e) { return e.op == Op::kVar && vars.contains(e.var.get()); });
}

bool UsesAnyOf(const std::vector<Expr>& exprs, const VarSet& vars) {
  return std::ranges::any_of(exprs, [&](const Expr& expr) { return UsesAnyOf(expr, vars); });
}

bool UsesOnly(const Expr& expr, const VarSet& vars) {
  return !AnyExpr(expr, [&](const ExprNode& e) {
    return e.op == Op::kLoad || (e.op == Op::kVar && !vars.contains(e.var.get()));
  });
}

std::string_view ReduceOpName(ReduceOp op) {
  static constexpr std::string_view kNames[] = {"none", "sum", "prod", "max", "min", "argmax", "argmin"};
  return kNames[static_cast<int>(op)];
}

Expr ReduceIdentity(ReduceOp op, DType dtype) {
  const auto constant = [&](double f, int64_t i) {
    return IsFloat(dtype) ? FloatConst(f, dtype) : IntConst(i, dtype);
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::kSum: return ZeroOf(dtype);
    case ReduceOp::kProd: return constant(1, 1);
    case ReduceOp::kMax: return constant(-kInf, RangeOfInt(dtype).lowest);
    case ReduceOp::kMin: return constant(kInf, RangeOfInt(dtype).highest);
    default: break;
  }
  MYCC_CHECK(false) << "no identity of " << ReduceOpName(op);
  return nullptr;
}

Op CombinerOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return Op::kAdd;
    case ReduceOp::kProd: return Op::kMul;
    case ReduceOp::kMax: return Op::kMax;
    case ReduceOp::kMin: return Op::kMin;
    default: break;
  }
  MYCC_CHECK(false) << "no combiner of " << ReduceOpName(op);
  return Op::kAdd;
}

Expr ReduceCombine(ReduceOp op, const Expr& accumulator, const Expr& value) {
  return MakeBinary(CombinerOf(op), accumulator, value);
}

}  // namespace mycc

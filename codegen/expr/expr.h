// Scalar expressions: the bodies of stages in the tensor language, and indices, values and conditions in the
// IR.
//
// Nodes are immutable and shared by pointer. Equal pointers mean equal expressions; StructurallyEqual
// compares contents. Index arithmetic is i64 and quasi-affine: +, -, multiplication by a constant, floor
// division and modulo by positive constants (see affine.h). Thread rule: immutable, so free to share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/expr/buffer.h"
#include "codegen/expr/dtype.h"

namespace mycc {

enum class Op : uint8_t {
  kConst,
  kVar,
  kLoad,  // buffer[args...]
  // Unary.
  kNeg,
  kNot,
  kAbs,
  kExp,
  kExp2,  // 2^x; not in the language, primitives make it
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kErf,
  kSin,
  kCos,
  kFloor,
  kCeil,
  kRound /* half to even */,
  kTF32,
  kCast,
  // Binary. kDiv is float division; integers divide with kFloorDiv and kMod (floored; by zero: 0).
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kMin,
  kMax,
  kPow,
  kLt,
  kLe,
  kEq,
  kNe,  // greater-than is written with the operands swapped
  kAnd,
  kOr,
  kSelect,  // args: condition, then, else; the arm not taken is not evaluated
};
std::string_view OpName(Op op);  // "add"; functions of the language carry the language's name: "exp", "min"
bool IsUnary(Op op);
bool IsBinary(Op op);
bool IsComparison(Op op);
bool IsCommutative(Op op);
bool IsExact(Op op);           // of floats: the result needs no rounding to the operands' type
bool IsTranscendental(Op op);  // exp, log, tanh, erf, sin, cos, pow: many instructions each

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

// A loop variable or an axis. Its values are 0 <= v < extent. Identity is the pointer.
struct VarNode {
  std::string name;
  int64_t extent;
};
using Var = std::shared_ptr<const VarNode>;

struct ExprNode {
  Op op;
  DType dtype;
  std::vector<Expr> args;  // operands; indices of a load
  Scalar value;            // kConst
  Var var;                 // kVar (dtype kI64); null for others
  Buffer buffer;           // kLoad
};

// Constructors. Types must agree (MYCC_CHECK): every conversion is an explicit cast. They fold integer
// constants and identities (x + 0, x * 1), never floats.
Var MakeVar(std::string name, int64_t extent);
Expr VarRef(Var var);
// The product of the extents of the axes, or of those of them that are `chosen`.
int64_t PointsOf(const std::vector<Var>& axes);
int64_t PointsOf(const std::vector<Var>& axes, const std::vector<int>& chosen);
Expr IntConst(int64_t value, DType dtype = DType::kI64);  // an integer or bool type
Expr FloatConst(double value, DType dtype);
Expr BoolConst(bool value);
Expr ZeroOf(DType dtype);
Expr Load(Buffer buffer, std::vector<Expr> indices);
Expr MakeUnary(Op op, Expr a);
Expr MakeCast(DType dtype, Expr a);
Expr MakeBinary(Op op, Expr a, Expr b);
Expr MakeSelect(Expr condition, Expr then, Expr otherwise);
// The same operation over other operands.
Expr WithArgs(const Expr& expr, std::vector<Expr> args);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, int64_t b);
Expr operator-(const Expr& a, int64_t b);
Expr operator*(const Expr& a, int64_t b);
Expr FloorDiv(const Expr& a, int64_t b);
Expr Mod(const Expr& a, int64_t b);

bool IsConstInt(const Expr& expr, int64_t* value = nullptr);
bool IsConstInt(const Expr& expr, int64_t value);
bool IsZero(const Expr& expr);  // the constant 0 of any type

bool StructurallyEqual(const Expr& a, const Expr& b);
bool StructurallyEqual(const std::vector<Expr>& a, const std::vector<Expr>& b);  // each to each
// Whether two loads read the same element.
bool IsSameRead(const ExprNode& a, const ExprNode& b);

// Calls `visit` on the expression and everything under it, parents first.
void Visit(const Expr& expr, const std::function<void(const ExprNode&)>& visit);
// The same for loads alone.
template <typename VisitFn>
void ForEachLoad(const Expr& expr, const VisitFn& visit) {
  if (expr->op == Op::kLoad) visit(*expr);
  for (const Expr& arg : expr->args) ForEachLoad(arg, visit);
}
// Whether the expression, or one under it, is as the predicate says.
template <typename Predicate>
bool AnyExpr(const Expr& expr, const Predicate& holds) {
  return holds(*expr) ||
         std::ranges::any_of(expr->args, [&](const Expr& arg) { return AnyExpr(arg, holds); });
}
// Rebuilds bottom-up: `rewrite` sees a node whose operands were rewritten, and returns its replacement or
// nullptr to keep it. The same pointer comes back when nothing changed.
Expr Rewrite(const Expr& expr, const std::function<Expr(const Expr&)>& rewrite);

using VarMap = std::unordered_map<const VarNode*, Expr>;
Expr Substitute(const Expr& expr, const VarMap& map);
std::vector<Expr> Substitute(const std::vector<Expr>& exprs, const VarMap& map);
bool UsesVar(const Expr& expr, const VarNode* var);
bool UsesVar(const std::vector<Expr>& exprs, const VarNode* var);  // whether one of them does
bool IsLoadOf(const Expr& expr, const Buffer& buffer);
bool Loads(const Expr& expr, const Buffer& buffer);  // it, or an expression under it
bool HasLoad(const Expr& expr);
using VarSet = std::unordered_set<const VarNode*>;
bool UsesAnyOf(const Expr& expr, const VarSet& vars);
bool UsesAnyOf(const std::vector<Expr>& exprs, const VarSet& vars);  // whether one of them does
// Whether all variables of the expression are among these, and it loads nothing.
bool UsesOnly(const Expr& expr, const VarSet& vars);

// Reductions of a stage or a block.
enum class ReduceOp : uint8_t { kNone, kSum, kProd, kMax, kMin, kArgMax, kArgMin };
std::string_view ReduceOpName(ReduceOp op);  // "sum"
// The value a reduction starts from, in the accumulator's type: 0, 1, -inf or the lowest integer, +inf or the
// highest. Not for arg*.
Expr ReduceIdentity(ReduceOp op, DType dtype);
// The operation that combines two values. Not for arg*.
Op CombinerOf(ReduceOp op);
// accumulator (op) value. Not for arg*.
Expr ReduceCombine(ReduceOp op, const Expr& accumulator, const Expr& value);

}  // namespace mycc

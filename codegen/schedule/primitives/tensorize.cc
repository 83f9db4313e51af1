// tensorize(l, fma.f32): marks the contraction inside loop l to be computed by a hardware instruction
// (instructions.h).
//
//   for l: for m: for n:                      for l: mma.fma.f32 (m, n, k = l)
//     B: acc[m, n] += a[m, l] * b[l, n]   ->
//
// For instructions that add several products in each lane (dot.bf16, amx.bf16) the innermost loop must run
// over such a group, whose elements are adjacent in both operands: pack the operand that has the lanes.
//
// The loops stay until lowering, when tails have their final sizes. This primitive checks the nest and marks
// it.
#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/schedule/instructions.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// A factor: a load, a cast of a load (for instructions that widen), or tf32() of a load (for mma.tf32).
const ExprNode* FactorOf(const Expr& expr, const Instruction& row) {
  if (row.tf32 && expr->op != Op::kTF32) return nullptr;
  const bool widened = row.operand != row.accumulator && expr->op == Op::kCast;
  const Expr& load = widened || row.tf32 ? expr->args[0] : expr;
  return load->op == Op::kLoad ? load.get() : nullptr;
}

// The stride of an operand along a loop or an iteration variable of the block, in elements; nullopt when it
// is not constant.
std::optional<int64_t> StrideAlong(const Block& block, const ExprNode& load, const VarNode* var) {
  const VarMap bindings = BindingsOf(block);
  std::unordered_set<const VarNode*> moved = {var};  // with the variable
  for (const IterVar& iter : block.iters) {
    if (UsesVar(iter.binding, var)) moved.insert(iter.var.get());
  }
  int64_t stride = 0;
  for (size_t d = 0; d < load.args.size(); ++d) {
    if (!UsesAnyOf(load.args[d], moved)) continue;
    const auto linear = SplitLinear(Simplify(Substitute(load.args[d], bindings)), var);
    if (!linear) return std::nullopt;
    stride += linear->coefficient * load.buffer->stride(static_cast<int>(d));
  }
  return stride;
}

// The scopes that tensor cores take operands from: shared memory, and registers for a tile of 16 bits that
// has the accumulator's rows. Lowering divides it among the threads as the instruction wants it.
absl::Status CheckScopes(const Block& block, const Instruction& row,
                         const std::vector<const ExprNode*>& factors) {
  const Expr& column = block.indices.back();
  for (const ExprNode* factor : factors) {
    const Scope scope = factor->buffer->scope;
    if (scope == Scope::kShared) continue;
    const bool has_rows = column->op == Op::kVar && StrideAlong(block, *factor, column->var.get()) == 0;
    const bool in_registers = scope == Scope::kLocal || scope == Scope::kAccumulator;
    if (in_registers && has_rows && DTypeBytes(factor->dtype) == 2) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        row.name,
        " takes its operands from shared memory, or that with the rows, of 16 bits, from registers; ",
        factor->buffer->name, " is in scope ", ScopeName(scope), ": stage it first"));
  }
  return absl::OkStatus();
}

// acc += load * load, with the accumulator in registers.
absl::Status CheckContraction(const Block& block, const Instruction& row) {
  const Expr& value = block.value;
  const bool product = value->op == Op::kMul && FactorOf(value->args[0], row) != nullptr &&
                       FactorOf(value->args[1], row) != nullptr;
  if (block.reduce != ReduceOp::kSum || !product) {
    return absl::FailedPreconditionError(absl::StrCat(block.name, " is not a sum of products of two loads",
                                                      row.tf32 ? " that tf32() rounds" : ""));
  }
  if (block.init || block.out->scope != Scope::kAccumulator) {
    return absl::FailedPreconditionError(
        absl::StrCat(block.name, " has no accumulator; cache_write it first"));
  }
  const ExprNode *a = FactorOf(value->args[0], row), *b = FactorOf(value->args[1], row);
  if (!Multiplies(row, a->dtype, b->dtype) || block.out->dtype != row.accumulator) {
    return absl::FailedPreconditionError(
        absl::StrCat(row.name, " multiplies ", DTypeName(row.operand), " into ", DTypeName(row.accumulator),
                     "; ", block.name, " multiplies ", DTypeName(a->dtype), " by ", DTypeName(b->dtype),
                     " into ", DTypeName(block.out->dtype)));
  }
  return row.is_cpu() ? absl::OkStatus() : CheckScopes(block, row, {a, b});
}

// The accumulator's last dimension becomes the vector lanes: in one operand their groups must be contiguous;
// the other operand is broadcast.
bool HasLanes(const Block& block, const Instruction& row) {
  if (block.indices.empty() || block.indices.back()->op != Op::kVar) return false;
  const VarNode* lane = block.indices.back()->var.get();
  const auto a = StrideAlong(block, *FactorOf(block.value->args[0], row), lane),
             b = StrideAlong(block, *FactorOf(block.value->args[1], row), lane);
  return a && b && std::min(*a, *b) == 0 && std::max(*a, *b) == row.group;
}

// The innermost loop must run over one group, whose elements are adjacent in both operands.
bool HasGroups(const Block& block, const For& innermost, const Instruction& row) {
  if (row.group == 1) return true;
  const VarNode* var = innermost.var.get();
  return IsConstInt(innermost.extent, row.group) &&
         StrideAlong(block, *FactorOf(block.value->args[0], row), var) == 1 &&
         StrideAlong(block, *FactorOf(block.value->args[1], row), var) == 1;
}

// The block of the perfect nest that the instruction will execute.
absl::StatusOr<const Block*> BlockOfNest(const Path& path, const Instruction& row) {
  Stmt inner = path.target();
  while (const For* nested = DynAs<For>(inner)) {
    if (nested->loop_kind != LoopKind::kSerial && nested->loop_kind != LoopKind::kUnroll) {
      return absl::FailedPreconditionError(
          absl::StrCat("loop ", nested->var->name, " is ", std::string(LoopKindName(nested->loop_kind)),
                       "; expected serial or unroll: the instruction executes the loop"));
    }
    inner = nested->body;
  }
  const Block* block = DynAs<Block>(inner);
  if (block == nullptr)
    return absl::FailedPreconditionError("the loop is not a perfect nest around one block");
  MYCC_RETURN_IF_ERROR(CheckContraction(*block, row));
  return block;
}

const For& InnermostLoop(const Path& path) {
  const For* loop = &path.loop();
  while (const For* nested = DynAs<For>(loop->body)) loop = nested;
  return *loop;
}

absl::Status CheckWarps(int64_t rows, int64_t columns, const Instruction& row) {
  const int64_t warps = rows * columns * (row.kind == InstructionClass::kWarpgroup ? 4 : 1);
  if (rows < 1 || columns < 1 || warps > 32) {
    return absl::FailedPreconditionError(
        absl::StrCat(rows, " x ", columns, " warps or warpgroups; expected 1 to 32 warps in all"));
  }
  if (row.kind == InstructionClass::kWarpgroup && columns != 1)
    return absl::FailedPreconditionError("warpgroups share the rows of a tile; expected 1 along the columns");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Tensorize(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(args.Name(1), target));
  if (!row.is_cpu())
    return absl::FailedPreconditionError(
        absl::StrCat(row.name, " is of tensor cores; expected tensorize_tile"));
  MYCC_ASSIGN_OR_RETURN(const Block* block, BlockOfNest(path, row));
  if (!HasGroups(*block, InnermostLoop(path), row)) {
    return absl::FailedPreconditionError(
        absl::StrCat(row.name, " multiplies ", row.group, " elements of the depth at once; expected them as ",
                     "the innermost loop, and together in both operands of ", block->name));
  }
  if (!HasLanes(*block, row)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no operand of ", block->name, " is contiguous along the accumulator's last dimension, ",
                     "with the other one broadcast"));
  }
  LoopMarks marks = path.loop().marks;
  marks.instruction = row.name;
  return WithMarks(function, path, std::move(marks));
}

absl::StatusOr<Function> TensorizeTile(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(args.Name(1), target));
  if (row.is_cpu())
    return absl::FailedPreconditionError(
        absl::StrCat(row.name, " is not an instruction of tensor cores; expected tensorize"));
  MYCC_RETURN_IF_ERROR(CheckWarps(args.Int(2), args.Int(3), row));
  MYCC_RETURN_IF_ERROR(BlockOfNest(path, row).status());
  LoopMarks marks = path.loop().marks;
  marks.instruction = row.name;
  marks.warps = WarpGrid{static_cast<int>(args.Int(2)), static_cast<int>(args.Int(3))};
  return WithMarks(function, path, std::move(marks));
}

}  // namespace mycc

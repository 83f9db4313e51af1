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

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/primitives/annotate.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

// A factor: a load, a cast of a load (for instructions that widen), or tf32() of a load (for mma.tf32).
const ExprNode* FactorOf(const Expr& expr, const Instruction& row) {
  const bool fits = row.rounds_itself()
                        ? expr->op == Op::kTF32
                        : expr->op == Op::kLoad || (expr->op == Op::kCast && row.operand != row.accumulator);
  return fits ? LoadOfFactor(expr) : nullptr;
}

// The stride of an operand along a loop or an iteration variable of the block, in elements; nullopt when it
// is not constant.
std::optional<int64_t> StrideAlong(const Block& block, const ExprNode& load, const VarNode* var) {
  return StrideOf(Simplify(Substitute(FlatIndex(*load.buffer, load.args), BindingsOf(block))), var);
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
    if (in_registers && has_rows && row.a.in_fragments() && DTypeBytes(factor->dtype) == 2) continue;
    return Refusal(
        row.name,
        " takes its operands from shared memory, or that with the rows, of 16 bits, from registers; ",
        factor->buffer->name, " is in scope ", ScopeName(scope), ": stage it first");
  }
  return absl::OkStatus();
}

// acc += load * load, with the accumulator in registers.
absl::Status CheckContraction(const Block& block, const Instruction& row) {
  const Expr& value = block.value;
  if (!SumsProducts(block) || FactorOf(value->args[0], row) == nullptr ||
      FactorOf(value->args[1], row) == nullptr) {
    return Refusal(block.name, " is not a sum of products of two loads",
                   row.rounds_itself() ? " that tf32() rounds" : "");
  }
  if (block.init || block.out->scope != Scope::kAccumulator) {
    return Refusal(block.name, " has no accumulator; cache_write it first");
  }
  const ExprNode *a = FactorOf(value->args[0], row), *b = FactorOf(value->args[1], row);
  if (!Multiplies(row, a->dtype, b->dtype) || block.out->dtype != row.accumulator) {
    return Refusal(row.name, " multiplies ", DTypeName(row.operand), " into ", DTypeName(row.accumulator),
                   "; ", block.name, " multiplies ", DTypeName(a->dtype), " by ", DTypeName(b->dtype),
                   " into ", DTypeName(block.out->dtype));
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

// Every number in the buffer was rounded by tf32(), where it was computed or before it was copied.
bool HoldsRounded(const Function& function, const Buffer& buffer) {
  const Block* writer = WriterOf(function, buffer);
  if (writer == nullptr || writer->reduce != ReduceOp::kNone) return false;
  const Expr& value = writer->value;
  const Expr& element = value->op == Op::kSelect && IsZero(value->args[2]) ? value->args[1] : value;
  if (element->op == Op::kTF32) return true;
  return element->op == Op::kLoad && element->buffer != buffer && HoldsRounded(function, element->buffer);
}

absl::Status CheckRounded(const Function& function, const Block& block, const Instruction& row) {
  if (!row.tf32 || row.rounds_itself()) return absl::OkStatus();
  for (const Expr& factor : block.value->args) {
    const ExprNode* load = FactorOf(factor, row);
    if (HoldsRounded(function, load->buffer)) continue;
    return Refusal(row.name, " cuts off what it should round; expected ", load->buffer->name,
                   " to be a copy of numbers that a stage of their own rounds by tf32()");
  }
  return absl::OkStatus();
}

// The block of the perfect nest that the instruction will execute.
absl::StatusOr<const Block*> BlockOfNest(const Path& path, const Instruction& row) {
  Stmt inner;
  for (const For* loop : LoopsOfNest(path.target(), &inner)) {
    if (loop->loop_kind == LoopKind::kSerial || loop->loop_kind == LoopKind::kUnroll) continue;
    return Refusal("loop ", loop->var->name, " is ", LoopKindName(loop->loop_kind),
                   "; expected serial or unroll: the instruction executes the loop");
  }
  const Block* block = DynAs<Block>(inner);
  if (block == nullptr) return Refusal("the loop is not a perfect nest around one block");
  MYCC_RETURN_IF_ERROR(CheckContraction(*block, row));
  return block;
}

absl::Status CheckWarps(int64_t rows, int64_t columns, const Instruction& row) {
  const int64_t warps = rows * columns * row.warps();
  if (rows < 1 || columns < 1 || warps > 32) {
    return Refusal(rows, " x ", columns, " warps or warpgroups; expected 1 to 32 warps in all");
  }
  if (row.of_warpgroups() && columns != 1)
    return Refusal("warpgroups share the rows of a tile; expected 1 along the columns");
  return absl::OkStatus();
}

absl::Status CheckTensorize(const Marking& step) {
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(step.args.Name(1), step.target));
  if (!row.is_cpu()) return Refusal(row.name, " is of tensor cores; expected tensorize_tile");
  MYCC_ASSIGN_OR_RETURN(const Block* block, BlockOfNest(step.path, row));
  Stmt inner;
  if (!HasGroups(*block, *LoopsOfNest(step.path.target(), &inner).back(), row)) {
    return Refusal(row.name, " multiplies ", row.group, " elements of the depth at once; expected them as ",
                   "the innermost loop, and together in both operands of ", block->name);
  }
  if (HasLanes(*block, row)) return absl::OkStatus();
  return Refusal("no operand of ", block->name, " is contiguous along the accumulator's last dimension, ",
                 "with the other one broadcast");
}

absl::Status CheckTensorizeTile(const Marking& step) {
  MYCC_ASSIGN_OR_RETURN(const Instruction row, FindInstruction(step.args.Name(1), step.target));
  if (row.is_cpu()) return Refusal(row.name, " is not an instruction of tensor cores; expected tensorize");
  MYCC_RETURN_IF_ERROR(CheckWarps(step.args.Int(2), step.args.Int(3), row));
  MYCC_ASSIGN_OR_RETURN(const Block* block, BlockOfNest(step.path, row));
  return CheckRounded(step.function, *block, row);
}

}  // namespace

constexpr LoopMark kTensorizeMark = {
    .check = CheckTensorize,
    .set = [](const StepArgs& args, LoopMarks* marks) { marks->instruction = args.Name(1); },
};

constexpr LoopMark kTensorizeTileMark = {
    .check = CheckTensorizeTile,
    .set =
        [](const StepArgs& args, LoopMarks* marks) {
          marks->instruction = args.Name(1);
          marks->warps = {static_cast<int>(args.Int(2)), static_cast<int>(args.Int(3))};
        },
};

}  // namespace mycc

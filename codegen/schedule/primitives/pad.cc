// pad(B, d, extent): extends the tensor that block B computes to `extent` elements along dimension d, with
// zeros after its old end. Rows become whole vectors, and a reduction over the tensor may continue into the
// zeros (see stage_shared).
//
//   for i in 5: for c in 3: B: t1[i, c] = f(i, c)
//     ->
//   for i in 5: for c in 4: B: t1[i, c] = c < 3 ? f(i, c) : 0
//
// pad_groups(B, d, group, extent): the same for each group of `group` elements along the dimension, so that
// every group begins at a vector.
//
//   for c in 6: B: t1[c] = f(c)   ->   for c in 8: B: t1[c] = c % 4 < 3 ? f(c // 4 * 3 + c % 4) : 0
#include <optional>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

constexpr int64_t kMostGrowth = 16;  // times the old extent

// The growth of a dimension: each group of `group` elements grows to `extent`.
struct Growth {
  int64_t dim, group, extent;

  // The index in the new tensor of an element of the old one, and the reverse.
  Expr Moved(const Expr& index) const { return FloorDiv(index, group) * extent + Mod(index, group); }
  Expr Source(const Expr& index) const { return FloorDiv(index, extent) * group + Mod(index, extent); }
};

absl::Status CheckPaddable(const Function& function, const Path& path, int64_t dim) {
  const Block& block = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, block));
  if (block.reduce != ReduceOp::kNone) return Refusal(block.name, " is a reduction");
  if (IsParam(function, block.out))
    return Refusal(block.out->name, " is an output; its shape is the caller's");
  if (dim < 0 || dim >= block.out->rank())
    return Refusal("dimension ", dim, "; ", block.out->name, " has ", block.out->rank(), " dimensions");
  return absl::OkStatus();
}

absl::Status CheckGrowth(const Buffer& buffer, const Growth& growth) {
  const int64_t old = growth.group;
  if (old < 1 || buffer->shape[growth.dim] % old != 0) {
    return Refusal("groups of ", old, "; expected a divisor of ", buffer->shape[growth.dim]);
  }
  if (growth.extent <= old || growth.extent > kMostGrowth * old) {
    return Refusal("extent ", growth.extent, "; expected more than ", old, " and at most ",
                   kMostGrowth * old);
  }
  return absl::OkStatus();
}

Function Grown(const Function& function, const Path& path, const Growth& growth) {
  const Block& block = path.block();
  const int64_t dim = growth.dim, groups = block.out->shape[dim] / growth.group,
                extent = groups * growth.extent;
  BufferNode padded = *block.out;
  padded.shape[dim] = extent;
  padded.layout = Layout::RowMajor(padded.shape);
  const Buffer buffer = std::make_shared<BufferNode>(std::move(padded));

  // The naive nest has one loop for each iteration variable, and one variable for each dimension.
  const Var axis = block.indices[dim]->var, grown_axis = MakeVar(axis->name, extent);
  const Expr place = Simplify(Mod(VarRef(grown_axis), growth.extent)),
             inside = MakeBinary(Op::kLt, place, IntConst(growth.group));
  const VarMap map = {{axis.get(), Simplify(growth.Source(VarRef(grown_axis)))}};
  auto grown = std::make_shared<Block>(block);
  grown->out = buffer;
  grown->value = MakeSelect(inside, Substitute(block.value, map), ZeroOf(buffer->dtype));
  grown->indices[dim] = VarRef(grown_axis);
  std::vector<LoopSpec> loops;
  for (IterVar& iter : grown->iters) {
    const Var loop = iter.binding->var;
    const bool grows = iter.var == axis;
    loops.push_back({grows ? MakeVar(loop->name, extent) : loop});
    if (grows) iter = {grown_axis, false, VarRef(loops.back().var)};
  }
  const Function replaced = WithBody(function, ReplaceAt(NestPath(path), MakeNest(loops, grown)));
  const auto reindex = [&](const std::vector<Expr>& index) {
    std::vector<Expr> moved = index;
    moved[dim] = Simplify(growth.Moved(index[dim]));
    return moved;
  };
  return WithBody(replaced, groups == 1 ? ReplaceBuffer(replaced.body, block.out, buffer)
                                        : ReplaceBuffer(replaced.body, block.out, buffer, reindex));
}

// `group`: of elements that grow to `extent`; nullopt: the dimension is one.
absl::StatusOr<Function> Padded(const Function& function, const StepArgs& args, std::optional<int64_t> group,
                                int64_t extent) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const int64_t dim = args.Int(1);
  MYCC_RETURN_IF_ERROR(CheckPaddable(function, path, dim));
  const Buffer& buffer = path.block().out;
  const Growth growth{dim, group.value_or(buffer->shape[dim]), extent};
  MYCC_RETURN_IF_ERROR(CheckGrowth(buffer, growth));
  return Grown(function, path, growth);
}

}  // namespace

absl::StatusOr<Function> Pad(const Function& function, const Target&, const StepArgs& args) {
  return Padded(function, args, std::nullopt, args.Int(2));
}

absl::StatusOr<Function> PadGroups(const Function& function, const Target&, const StepArgs& args) {
  return Padded(function, args, args.Int(2), args.Int(3));
}

}  // namespace mycc

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
//
// pad_domain(B): lets block B, which adds products of tiles in shared memory to an accumulator, run over
// whole tiles, even beyond the tensor's edges, so that its products need no conditions.
//
//   for i.0 in 2: for k.0 in 3:                  for i.0 in 2: for k.0 in 3:
//     t0.r[i,k] = inside ? t0[..] : 0              t0.r[i,k] = inside ? t0[..] : 0
//     for i.1 in 8: for k.1 in 4:           ->     for i.1 in 8: for k.1 in 4:
//       B: acc[i.1] += t0.r[..] * ..                 B: acc[i.1] += t0.r[..] * ..
//          i in 13, k in 10                             i in 16, k in 12
//
// Sums beyond the edge stay in the accumulator: its write-back (cache_write) stores only elements of the
// tensor. Terms beyond the end of a sum must be products of zeros: both tiles must be zero there.
#include <optional>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/ir/guards.h"
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
  std::vector<int64_t> shape = block.out->shape;
  shape[dim] = extent;
  const Buffer buffer = MakeBuffer(block.out->name, block.out->dtype, shape, block.out->scope);

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

// A factor of the product: the load, its indices over loop variables, and the block that fills the tile.
struct TileRead {
  Buffer tile;
  std::vector<Expr> place;
  const Block* writer;
};

template <typename... Parts>
absl::Status Refuse(const Block& block, const Parts&... why) {
  return Refusal(block.name, " cannot run over whole tiles: ", why...);
}

// Whether the writer stores every element of the tile in each iteration of the loops around both it and the
// reader. Guards over its own loops (from uneven splits of fused loops) exclude no element.
bool FillsTile(const Block& writer, const VarSet& around) {
  if (writer.reduce != ReduceOp::kNone) return false;
  for (const IterVar& iter : writer.iters) {
    if (IsGuard(writer, iter) && UsesAnyOf(iter.binding, around)) return false;
  }
  VarSet named;
  for (size_t d = 0; d < writer.indices.size(); ++d) {
    const Expr& index = writer.indices[d];
    if (index->op != Op::kVar || index->var->extent != writer.out->shape[d]) return false;
    if (!named.insert(index->var.get()).second) return false;
  }
  return true;
}

absl::StatusOr<TileRead> ReadOf(const Function& function, const Path& path, const Expr& factor) {
  const Block& block = path.block();
  const ExprNode* load = LoadOfFactor(factor);
  if (load == nullptr || load->buffer->scope != Scope::kShared)
    return Refuse(block, "a factor of its product is not an element of a tile in shared memory");
  const Buffer& tile = load->buffer;
  TileRead read{tile, {}, WriterOf(function, tile)};
  if (read.writer == nullptr || !FillsTile(*read.writer, LoopVarsOn(path)))
    return Refuse(block, "elements of ", tile->name, " are left unwritten");
  const VarMap bindings = BindingsOf(block);
  for (int d = 0; d < tile->rank(); ++d) {
    read.place.push_back(Simplify(Substitute(load->args[d], bindings)));
    const std::optional<Interval> range = RangeOf(read.place.back());
    if (!range || range->min < 0 || range->max >= tile->shape[d])
      return Refuse(block, "beyond the edges it would read outside of ", tile->name);
  }
  return read;
}

// Whether the element that is read from the tile is zero wherever value >= extent.
bool IsZeroBeyond(const TileRead& read, const Expr& value, int64_t extent) {
  const Expr& stored = read.writer->value;
  if (stored->op != Op::kSelect || !IsZero(stored->args[2])) return false;
  VarMap place;
  for (size_t d = 0; d < read.place.size(); ++d) place[read.writer->indices[d]->var.get()] = read.place[d];
  Guards inside;
  inside.Assume(Simplify(Substitute(stored->args[0], place)), true);
  return inside.ProvablyAtLeastZero(IntConst(extent - 1) - value);
}

}  // namespace

absl::StatusOr<Function> Pad(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const int64_t dim = args.Int(1);
  MYCC_RETURN_IF_ERROR(CheckPaddable(function, path, dim));
  const Buffer& buffer = path.block().out;
  // Without the argument of pad_groups, the dimension is one group.
  const bool has_groups = args.size() == 4;
  const Growth growth{dim, has_groups ? args.Int(2) : buffer->shape[dim], args.Int(has_groups ? 3 : 2)};
  MYCC_RETURN_IF_ERROR(CheckGrowth(buffer, growth));
  return Grown(function, path, growth);
}

absl::StatusOr<Function> PadDomain(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& block = path.block();
  if (block.out->scope != Scope::kAccumulator || !SumsProducts(block))
    return Refuse(block, "it adds no products to an accumulator");
  std::vector<TileRead> reads;
  for (const Expr& factor : block.value->args) {
    MYCC_ASSIGN_OR_RETURN(TileRead read, ReadOf(function, path, factor));
    reads.push_back(std::move(read));
  }
  auto padded = std::make_shared<Block>(block);
  VarMap wider;
  for (IterVar& iter : padded->iters) {
    const std::optional<Interval> range = RangeOf(Simplify(iter.binding));
    if (!range || range->min < 0) return Refuse(block, iter.var->name, " has no bounds");
    const int64_t extent = iter.var->extent;
    if (range->max < extent) continue;
    const bool of_terms = iter.reduce || GuardsTerms(block, iter);
    for (const TileRead& read : reads) {
      if (of_terms && !IsZeroBeyond(read, iter.binding, extent))
        return Refuse(block, read.tile->name, " is not known to be zero where ", iter.var->name,
                      " >= ", extent);
    }
    const Var whole = MakeVar(iter.var->name, range->max + 1);
    wider[iter.var.get()] = VarRef(whole);
    iter.var = whole;
  }
  padded->value = Substitute(block.value, wider);
  return WithBody(function, ReplaceAt(path, padded));
}

}  // namespace mycc

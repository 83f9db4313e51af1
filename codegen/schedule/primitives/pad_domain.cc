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
#include <algorithm>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/ir/guards.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

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
  std::vector<const VarNode*> named;
  for (size_t d = 0; d < writer.indices.size(); ++d) {
    const Expr& index = writer.indices[d];
    if (index->op != Op::kVar || index->var->extent != writer.out->shape[d]) return false;
    if (std::ranges::find(named, index->var.get()) != named.end()) return false;
    named.push_back(index->var.get());
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

#include "codegen/schedule/region.h"

#include <algorithm>

#include "codegen/expr/affine.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

void CollectReads(const Expr& expr, const Buffer& buffer, const VarMap& bindings,
                  std::vector<Access>* accesses) {
  if (expr->op == Op::kLoad && expr->buffer == buffer) {
    Access access;
    for (const Expr& index : expr->args) access.push_back(Substitute(index, bindings));
    accesses->push_back(std::move(access));
  }
  for (const Expr& arg : expr->args) CollectReads(arg, buffer, bindings, accesses);
}

// An index: `outer` plus an offset in [low, high] while the inner variables run.
struct Span {
  Linear outer;  // without its constant
  int64_t low, high;
};

std::optional<Span> SpanOf(const Expr& index, const VarSet& inner) {
  const Linear linear = ToLinear(index);
  for (const auto& [atom, coefficient] : linear.terms) {
    if (HasLoad(atom) || (atom->op != Op::kVar && UsesAnyOf(atom, inner))) return std::nullopt;
  }
  const std::optional<FreeAndRange> split = SplitByVars(linear, inner);
  if (!split) return std::nullopt;
  return Span{{0, split->free.terms}, linear.constant + split->range.min, linear.constant + split->range.max};
}

DimRegion CoverDim(const std::vector<Access>& accesses, size_t dim, const VarSet& inner, int64_t extent) {
  const DimRegion whole{IntConst(0), extent, true};
  std::optional<Span> cover;
  Expr outer;  // of the cover
  for (const Access& access : accesses) {
    const std::optional<Span> span = SpanOf(access[dim], inner);
    if (!span) return whole;
    if (!cover) {
      cover = span;
      outer = FromLinear(span->outer);
      continue;
    }
    if (!StructurallyEqual(outer, FromLinear(span->outer))) return whole;
    cover->low = std::min(cover->low, span->low);
    cover->high = std::max(cover->high, span->high);
  }
  if (!cover || cover->high - cover->low + 1 >= extent) return whole;
  Linear base = cover->outer;
  base.constant = cover->low;
  return DimRegion{FromLinear(base), cover->high - cover->low + 1, false};
}

}  // namespace

std::vector<Access> ReadsUnder(const Stmt& stmt, const Buffer& buffer) {
  std::vector<Access> accesses;
  for (const Block* block : BlocksUnder(stmt)) {
    if (!Reads(*block, buffer)) continue;
    block->ForEachValue(
        [&](const Expr& value) { CollectReads(value, buffer, BindingsOf(*block), &accesses); });
  }
  return accesses;
}

Access WriteOf(const Block& block) {
  const VarMap bindings = BindingsOf(block);
  Access access;
  for (const Expr& index : block.indices) access.push_back(Substitute(index, bindings));
  return access;
}

std::vector<DimRegion> CoveringBox(const std::vector<Access>& accesses, const VarSet& inner,
                                   const std::vector<int64_t>& shape) {
  std::vector<DimRegion> box;
  for (size_t dim = 0; dim < shape.size(); ++dim) box.push_back(CoverDim(accesses, dim, inner, shape[dim]));
  return box;
}

}  // namespace mycc

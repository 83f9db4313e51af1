#include "codegen/passes/ring_sets.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"

namespace mycc {
namespace {

bool IsWarpgroupProduct(const Stmt& stmt) {
  const Mma* mma = DynAs<Mma>(stmt);
  return mma != nullptr && mma->of_warpgroups();
}

// The tiles that the statement itself uses, one entry for each use.
std::vector<Buffer> TilesUsedBy(const Stmt& stmt, const std::vector<Buffer>& tiles) {
  std::vector<Buffer> used;
  ForEachBuffer(stmt, [&](const Buffer& buffer) {
    if (std::count(tiles.begin(), tiles.end(), buffer) > 0) used.push_back(buffer);
  });
  return used;
}

bool ThreadsReadTiles(const std::vector<Buffer>& tiles, const std::vector<Stmt>& work) {
  const auto reads = [&](const Stmt& stmt) {
    return !IsWarpgroupProduct(stmt) && !TilesUsedBy(stmt, tiles).empty();
  };
  return std::any_of(work.begin(), work.end(), [&](const Stmt& root) { return AnyStmt(root, reads); });
}

// The tiles that belong to one product each, by product; empty when a tile is also used otherwise, or a
// product does not come once in each turn.
std::vector<std::vector<Buffer>> TilesOfProducts(const std::vector<Buffer>& tiles,
                                                 const std::vector<Stmt>& work) {
  std::vector<std::vector<Buffer>> products;
  size_t uses = 0;
  bool separate = true;
  const std::function<void(const Stmt&, bool)> walk = [&](const Stmt& stmt, bool once) {
    std::vector<Buffer> used = TilesUsedBy(stmt, tiles);
    separate &= used.empty() || (IsWarpgroupProduct(stmt) && once);
    uses += used.size();
    if (!used.empty()) products.push_back(std::move(used));
    once &= stmt->kind == StmtKind::kSeq || stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet;
    for (const Stmt& child : Children(stmt)) walk(child, once);
  };
  for (const Stmt& root : work) walk(root, true);
  std::unordered_set<Buffer> all;
  for (const std::vector<Buffer>& used : products) all.insert(used.begin(), used.end());
  if (!separate || products.size() < 2 || all.size() != uses || uses != tiles.size()) products.clear();
  return products;
}

}  // namespace

RingSets::RingSets(const LoopParts& parts, int slots)
    : slots_(slots),
      sets_(TilesOfProducts(parts.tiles, parts.work)),
      threads_read_(ThreadsReadTiles(parts.tiles, parts.work)) {
  if (sets_.empty()) sets_ = {parts.tiles};
  bytes_.resize(sets_.size(), 0);
  for (const Stmt& copy : parts.copies) {
    const BulkBox box = *BulkBoxOf(copy);
    for (size_t set = 0; set < sets_.size(); ++set) bytes_[set] += Has(set, box.shared) ? BytesOfBox(box) : 0;
  }
}

bool RingSets::Has(size_t set, const Buffer& tile) const {
  return std::count(sets_[set].begin(), sets_[set].end(), tile) > 0;
}

Expr RingSets::Full(size_t set, const Expr& slot) const {
  return Simplify(slot + 2 * static_cast<int64_t>(set) * slots_);
}

Expr RingSets::Empty(size_t set, const Expr& slot) const { return Simplify(Full(set, slot) + slots_); }

std::vector<int> RingSets::Arrivals(int readers) const {
  std::vector<int> arrivals;
  for (size_t set = 0; set < sets_.size(); ++set) {
    arrivals.insert(arrivals.end(), slots_, 1);
    arrivals.insert(arrivals.end(), slots_, readers);
  }
  return arrivals;
}

}  // namespace mycc

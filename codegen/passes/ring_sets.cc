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

// The tiles that the statement or one inside it uses, each once.
std::vector<Buffer> TilesUsedUnder(const Stmt& root, const std::vector<Buffer>& tiles) {
  std::vector<Buffer> used;
  VisitStmts(root, [&](const Stmt& stmt) {
    for (const Buffer& tile : TilesUsedBy(stmt, tiles)) {
      if (std::count(used.begin(), used.end(), tile) == 0) used.push_back(tile);
    }
    return true;
  });
  return used;
}

// A nest of threads' own arithmetic.
bool IsNest(const Stmt& stmt) { return stmt->kind == StmtKind::kFor && !Contains(stmt, StmtKind::kMma); }

// The tiles that belong to one reader each, a product or a nest, by reader; empty when a tile has several,
// when a reader does not come once in each turn, or when there are no two products.
std::vector<std::vector<Buffer>> TilesOfReaders(const std::vector<Buffer>& tiles,
                                                const std::vector<Stmt>& work) {
  std::vector<std::vector<Buffer>> readers;
  size_t uses = 0, products = 0;
  bool separate = true;
  const std::function<void(const Stmt&, bool)> walk = [&](const Stmt& stmt, bool once) {
    const bool is_nest = once && IsNest(stmt);
    std::vector<Buffer> used = is_nest ? TilesUsedUnder(stmt, tiles) : TilesUsedBy(stmt, tiles);
    const bool is_product = IsWarpgroupProduct(stmt);
    separate &= used.empty() || is_nest || (is_product && once);
    products += is_product && !used.empty() ? 1 : 0;
    uses += used.size();
    if (!used.empty()) readers.push_back(std::move(used));
    if (is_nest) return;
    once &= stmt->kind == StmtKind::kSeq || stmt->kind == StmtKind::kAlloc || stmt->kind == StmtKind::kLet;
    for (const Stmt& child : Children(stmt)) walk(child, once);
  };
  for (const Stmt& root : work) walk(root, true);
  std::unordered_set<Buffer> all;
  for (const std::vector<Buffer>& used : readers) all.insert(used.begin(), used.end());
  if (!separate || products < 2 || all.size() != uses || uses != tiles.size()) readers.clear();
  return readers;
}

}  // namespace

RingSets::RingSets(const LoopParts& parts, int slots)
    : slots_(slots),
      sets_(TilesOfReaders(parts.tiles, parts.work)),
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

std::optional<size_t> RingSets::SetOf(const Stmt& reader) const {
  for (size_t set = 0; set < sets_.size(); ++set) {
    if (!TilesUsedUnder(reader, sets_[set]).empty()) return set;
  }
  return std::nullopt;
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

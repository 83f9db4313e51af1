#include "codegen/passes/ring_sets.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/stmt_facts.h"

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
    if (std::ranges::count(tiles, buffer) > 0) used.push_back(buffer);
  });
  return used;
}

// The tiles that the statement or one inside it uses, each once.
std::vector<Buffer> TilesUsedUnder(const Stmt& root, const std::vector<Buffer>& tiles) {
  std::vector<Buffer> used;
  ForEachStmt(root, [&](const Stmt& stmt) {
    for (const Buffer& tile : TilesUsedBy(stmt, tiles)) {
      if (std::ranges::count(used, tile) == 0) used.push_back(tile);
    }
  });
  return used;
}

// The tiles that belong to one reader each, a product or a nest, by reader; empty when a tile has several,
// when a reader does not come once in each turn, or when there are no two products.
std::vector<std::vector<Buffer>> TilesOfReaders(const std::vector<Buffer>& tiles, const Stmt& work) {
  std::vector<std::vector<Buffer>> readers;
  std::vector<Buffer> uses;
  size_t products = 0;
  bool separate = true;
  const std::function<void(const Stmt&, bool)> walk = [&](const Stmt& stmt, bool once) {
    // A nest of threads' own arithmetic.
    const bool is_nest = once && stmt->kind == StmtKind::kFor && !Contains(stmt, StmtKind::kMma);
    std::vector<Buffer> used = is_nest ? TilesUsedUnder(stmt, tiles) : TilesUsedBy(stmt, tiles);
    const bool is_product = IsWarpgroupProduct(stmt);
    separate &= used.empty() || is_nest || (is_product && once);
    products += is_product && !used.empty() ? 1 : 0;
    uses.insert(uses.end(), used.begin(), used.end());
    if (!used.empty()) readers.push_back(std::move(used));
    if (is_nest) return;
    once &= RunsChildrenOnce(stmt);
    for (const Stmt& child : Children(stmt)) walk(child, once);
  };
  walk(work, true);
  const auto is_used_once = [&](const Buffer& tile) { return std::ranges::count(uses, tile) == 1; };
  if (!separate || products < 2 || !std::ranges::all_of(tiles, is_used_once)) readers.clear();
  return readers;
}

// The blocks divide the outermost dimension with several elements into equal parts of whole swizzles.
absl::Status CheckDivision(const BulkBox& box, const Var& cluster) {
  constexpr int64_t kSwizzleRows = 8;  // a swizzle repeats after them
  int64_t rows = 1, outermost = 0;
  for (size_t d = 0; d + 1 < box.dims.size(); ++d) {
    if (outermost <= 1) outermost = box.dims[d].extent;
    rows *= box.dims[d].extent;
  }
  if (outermost % cluster->extent == 0 && rows / cluster->extent % kSwizzleRows == 0) return absl::OkStatus();
  return Refusal("the blocks of cluster ", cluster->name, " cannot divide the ", rows, " rows of ",
                 box.shared->name, " into equal parts of whole 8 rows");
}

}  // namespace

RingSets::RingSets(const LoopParts& parts, int slots)
    : slots_(slots),
      sets_(TilesOfReaders(parts.tiles, parts.work)),
      threads_read_(AnyStmt(parts.work, [&](const Stmt& stmt) {
        return !IsWarpgroupProduct(stmt) && !TilesUsedBy(stmt, parts.tiles).empty();
      })) {
  if (sets_.empty()) sets_ = {parts.tiles};
  bytes_.resize(sets_.size(), 0);
  for (const Stmt& copy : parts.copies) {
    const BulkBox box = *BulkBoxOf(copy);
    for (size_t set = 0; set < sets_.size(); ++set) bytes_[set] += Has(set, box.shared) ? BytesOfBox(box) : 0;
  }
}

std::optional<size_t> RingSets::SetOf(const Stmt& reader) const {
  for (size_t set = 0; set < sets_.size(); ++set) {
    if (!TilesUsedUnder(reader, sets_[set]).empty()) return set;
  }
  return std::nullopt;
}

std::vector<int> RingSets::Arrivals(int readers) const {
  std::vector<int> arrivals;
  for (size_t set = 0; set < sets_.size(); ++set) {
    arrivals.insert(arrivals.end(), slots_, 1);
    arrivals.insert(arrivals.end(), slots_, readers);
  }
  return arrivals;
}

bool IsMulticast(const Stmt& copy, const Var& cluster) {
  return cluster != nullptr && !AnyStmt(copy, [&](const Stmt& stmt) { return UsesVar(stmt, cluster.get()); });
}

absl::Status CheckCluster(const Stmt& body, const LoopParts& parts, const Var& ring, const Var& cluster) {
  const std::string who = absl::StrCat("the blocks of cluster ", cluster->name);
  // Neither the ring's loop nor what is around it depends on the block.
  const std::vector<Stmt> path = PathTo(body, [&](const Stmt& stmt) { return IsLoopOver(stmt, ring); });
  if (std::ranges::any_of(path, [&](const Stmt& stmt) { return UsesVar(stmt, cluster.get()); }))
    return Refusal(who, " do not execute the same steps");
  bool shares = false;
  for (const Stmt& copy : parts.copies) {
    if (!IsMulticast(copy, cluster)) continue;
    shares = true;
    MYCC_RETURN_IF_ERROR(CheckDivision(*BulkBoxOf(copy), cluster));
  }
  if (shares) return absl::OkStatus();
  return Refusal(who, " have no tile in common");
}

}  // namespace mycc

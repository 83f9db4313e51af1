#include "codegen/passes/block_tiles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/pipeline_loops.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The parts of the sequences on the way to the loop, where all on the way is executed once.
std::vector<Stmt> PartsBefore(const Stmt& root, const Var& ring) {
  const std::vector<Stmt> path = PathTo(root, [&](const Stmt& stmt) { return IsLoopOver(stmt, ring); });
  std::vector<Stmt> parts;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (!RunsChildrenOnce(path[i])) return {};
    const std::vector<Stmt> children = Children(path[i]);
    parts.insert(parts.end(), children.begin(), std::ranges::find(children, path[i + 1]));
  }
  return parts;
}

// Whether the nest fills the tile with the same elements at all times: it uses no variables but its loops'.
bool IsClosed(const Stmt& nest) {
  const VarSet own = LoopVarsUnder(nest);
  bool is_closed = true;
  ForEachStmt(nest, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) { is_closed &= e.op != Op::kVar || own.count(e.var.get()) > 0; });
    });
  });
  return is_closed;
}

// The number of products that read the tile, if nothing else but `fill` accesses it.
std::optional<int> ReadersOf(const Stmt& work, const Stmt& fill, const Buffer& tile) {
  int accesses = 0, readers = 0;
  VisitStmts(work, [&](const Stmt& stmt) {
    if (stmt == fill) return false;
    const Mma* mma = DynAs<Mma>(stmt);
    const bool is_product = mma != nullptr && mma->of_warpgroups();
    const bool is_used = Accesses(stmt, tile);
    accesses += is_used ? 1 : 0;
    readers += is_used && is_product && mma->acc.buffer != tile ? 1 : 0;
    return true;
  });
  return readers > 0 && readers == accesses ? std::optional<int>(readers) : std::nullopt;
}

}  // namespace

BlockTiles::BlockTiles(const Stmt& work, const Var& ring, const std::vector<Buffer>& tiles, bool only_same) {
  const BufferSet written = WrittenUnder(work);
  for (const Stmt& part : PartsBefore(work, ring)) {
    const Store* store = StoreOf(part);
    const bool has_threads =
        AnyOf<For>(part, [](const For& loop) { return loop.loop_kind != LoopKind::kSerial; });
    if (part->kind != StmtKind::kFor || has_threads || store == nullptr ||
        std::ranges::count(tiles, store->buffer) == 0)
      continue;
    const absl::StatusOr<BulkBox> box = BulkBoxOf(part);
    const bool can_copy = box.ok() && box->to_shared && !written.contains(box->global.get());
    const std::optional<int> readers = can_copy ? ReadersOf(work, part, box->shared) : std::nullopt;
    const bool is_same = IsClosed(part);
    if (readers && (is_same || !only_same)) {
      tiles_.push_back({box->shared, As<For>(part).var, *readers, is_same});
    } else {
      others_.Update(Refusal("one thread would fill ", store->buffer->name,
                             box.ok() ? "" : absl::StrCat(": ", box.status().message())));
    }
  }
}

bool BlockTiles::IsSameForAll(const Buffer& buffer) const {
  return std::ranges::any_of(tiles_, [&](const Tile& tile) { return tile.is_same && tile.buffer == buffer; });
}

bool BlockTiles::HaveOneReader() const {
  return std::ranges::all_of(tiles_, [](const Tile& tile) { return tile.readers == 1; });
}

std::vector<int> BlockTiles::SetBarriers(int64_t first, Expr round, int readers) {
  first_barrier_ = first;
  round_ = std::move(round);
  arrivals_ = readers;
  std::vector<int> counts;
  for (size_t tile = 0; tile < tiles_.size(); ++tile) counts.insert(counts.end(), {1, readers});
  return counts;
}

size_t BlockTiles::NumberOfFill(const Stmt& stmt) const {
  const auto found =
      std::ranges::find_if(tiles_, [&](const Tile& tile) { return IsLoopOver(stmt, tile.fill); });
  return static_cast<size_t>(found - tiles_.begin());
}

Stmt BlockTiles::Fetch(const Stmt& fill) const {
  const size_t tile = NumberOfFill(fill);
  const bool is_same = tiles_[tile].is_same;
  Stmt fetch = MakeSeq({round_ && !is_same ? std::make_shared<Wait>(Empty(tile), round_ - 1) : nullptr,
                        std::make_shared<Copy>(fill, CopyEngine::kBulk, Full(tile)),
                        std::make_shared<Arrive>(Full(tile), nullptr, 1, BytesOfBox(*BulkBoxOf(fill)))});
  if (!round_ || !is_same) return fetch;
  return std::make_shared<If>(MakeBinary(Op::kLt, round_, IntConst(1)), std::move(fetch));
}

Stmt BlockTiles::FetchAll(const Stmt& work) const {
  std::vector<Stmt> fetches;
  ForEachStmt(work, [&](const Stmt& stmt) {
    if (IsFill(stmt)) fetches.push_back(Fetch(stmt));
  });
  return MakeSeq(std::move(fetches));
}

Stmt BlockTiles::Await(const Stmt& fill) const {
  const size_t tile = NumberOfFill(fill);
  return std::make_shared<Wait>(Full(tile), round_ && !tiles_[tile].is_same ? round_ : IntConst(0));
}

Stmt BlockTiles::Release() const {
  if (!round_ || tiles_.empty()) return nullptr;
  std::vector<Stmt> arrivals;
  for (size_t tile = 0; tile < tiles_.size(); ++tile) {
    if (tiles_[tile].is_same) continue;
    arrivals.push_back(std::make_shared<Arrive>(Empty(tile), nullptr, arrivals_, 0,
                                                std::vector<Buffer>{tiles_[tile].buffer}));
  }
  return arrivals.empty() ? nullptr : MakeSeq(std::move(arrivals));
}

bool BlockTiles::IsReadBy(const Mma& mma) const {
  return std::ranges::any_of(
      tiles_, [&](const Tile& tile) { return mma.a.buffer == tile.buffer || mma.b.buffer == tile.buffer; });
}

}  // namespace mycc

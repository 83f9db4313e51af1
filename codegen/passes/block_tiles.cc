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
bool PartsBefore(const Stmt& root, const Var& ring, std::vector<Stmt>* parts) {
  if (const For* loop = DynAs<For>(root)) return loop->var == ring;
  if (!RunsChildrenOnce(root)) return false;
  const size_t before = parts->size();
  for (const Stmt& child : Children(root)) {
    if (PartsBefore(child, ring, parts)) return true;
    parts->push_back(child);
  }
  parts->resize(before);
  return false;
}

bool HasThreads(const Stmt& root) {
  return AnyOf<For>(root, [](const For& loop) { return loop.loop_kind != LoopKind::kSerial; });
}

// Whether the nest fills the tile with the same elements at all times: it uses no variables but its loops'.
bool IsClosed(const Stmt& nest) {
  const VarSet own = LoopVarsUnder(nest);
  bool is_closed = true;
  VisitStmts(nest, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) { is_closed &= e.op != Op::kVar || own.count(e.var.get()) > 0; });
    });
    return true;
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
  std::vector<Stmt> parts;
  if (!PartsBefore(work, ring, &parts)) return;
  const BufferSet written = WrittenUnder(work);
  for (const Stmt& part : parts) {
    const Store* store = StoreOf(part);
    if (part->kind != StmtKind::kFor || HasThreads(part) || store == nullptr ||
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
  VisitStmts(work, [&](const Stmt& stmt) {
    if (!IsFill(stmt)) return true;
    fetches.push_back(Fetch(stmt));
    return false;
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

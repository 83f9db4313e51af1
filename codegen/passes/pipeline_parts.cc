#include "codegen/passes/pipeline_parts.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Whether a copy may be executed before statements that precede it: they neither compute what it reads nor
// use what it fills.
bool MayGoFirst(const Store& copy, const std::vector<Stmt>& before) {
  const auto hinders = [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    return Accesses(stmt, copy.buffer) || (store != nullptr && Loads(copy.value, store->buffer));
  };
  return std::none_of(before.begin(), before.end(), [&](const Stmt& stmt) { return AnyStmt(stmt, hinders); });
}

}  // namespace

const Store* StoreOf(Stmt nest) {
  while (nest->kind == StmtKind::kFor || nest->kind == StmtKind::kIf) {
    if (const If* guard = DynAs<If>(nest); guard != nullptr && guard->otherwise) return nullptr;
    nest = Children(nest)[0];
  }
  return DynAs<Store>(nest);
}

absl::StatusOr<LoopParts> PartsOf(const For& loop) {
  LoopParts parts;
  Stmt inner = loop.body;
  std::vector<Buffer> of_work;  // in registers
  while (inner->kind == StmtKind::kAlloc || inner->kind == StmtKind::kLet) {
    if (const Let* let = DynAs<Let>(inner)) {
      // The iteration's number, where the loop begins later (skip_masked). The roles have it each for itself.
      inner = SubstituteSimplified(let->body, VarMap{{let->var.get(), let->value}});
      continue;
    }
    const Alloc& alloc = As<Alloc>(inner);
    (alloc.buffer->scope == Scope::kShared ? parts.tiles : of_work).push_back(alloc.buffer);
    inner = alloc.body;
  }
  for (const Stmt& stmt : StmtsOf(inner)) {
    const Store* store = StoreOf(stmt);
    const bool copies =
        store != nullptr && std::count(parts.tiles.begin(), parts.tiles.end(), store->buffer) > 0;
    if (copies && !MayGoFirst(*store, parts.work)) {
      return Refusal("loop ", loop.var->name, " cannot be pipelined: ", store->buffer->name,
                     " is filled after it was used, or with what is computed before");
    }
    (copies ? parts.copies : parts.work).push_back(stmt);
  }
  if (parts.copies.empty())
    return Refusal("loop ", loop.var->name, " cannot be pipelined: it copies nothing into shared memory");
  if (of_work.empty() || parts.work.empty()) return parts;
  parts.work = {InAllocs(of_work, MakeSeq(std::move(parts.work)))};
  return parts;
}

Rings::Rings(std::vector<Buffer> tiles, int slots) : tiles_(std::move(tiles)) {
  for (const Buffer& tile : tiles_) {
    BufferNode ring = *tile;
    ring.shape.insert(ring.shape.begin(), slots);
    ring.layout = tile->layout.Repeated(slots);
    rings_.push_back(std::make_shared<BufferNode>(std::move(ring)));
  }
}

Stmt Rings::In(const Stmt& stmt, const Expr& slot) const {
  const auto in_slot = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> in_ring = {slot};
    in_ring.insert(in_ring.end(), indices.begin(), indices.end());
    return in_ring;
  };
  Stmt result = stmt;
  for (size_t i = 0; i < tiles_.size(); ++i) result = ReplaceBuffer(result, tiles_[i], rings_[i], in_slot);
  return result;
}

bool IsLoopOver(const Stmt& stmt, const Var& var) {
  const For* loop = DynAs<For>(stmt);
  return loop != nullptr && loop->var == var;
}

std::vector<const For*> NestAround(const Stmt& stmt) {
  std::vector<const For*> nest;
  for (const For* loop = DynAs<For>(stmt); loop != nullptr; loop = DynAs<For>(loop->body)) {
    if (loop->loop_kind != LoopKind::kSerial) break;
    nest.push_back(loop);
    if (loop->marks.pipeline.kind == PipelineKind::kNone) continue;
    // Iterations are numbered over a whole nest of constant extents. A loop of computed length stands alone.
    const bool is_constant =
        std::all_of(nest.begin(), nest.end(), [](const For* l) { return ConstExtent(*l).has_value(); });
    return is_constant || nest.size() == 1 ? nest : std::vector<const For*>();
  }
  return {};
}

}  // namespace mycc

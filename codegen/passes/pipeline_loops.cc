// Implements the pipeline marks of loops: copies into shared memory run ahead of the computation that reads
// them, through a ring of tiles. Either a separate role makes bulk copies (bulk_pipeline.cc), or all threads
// copy (threads_pipeline.cc).
//
// With s slots, an iteration uses slot number % s, where number counts over all loops inside the thread
// block.
#include "codegen/passes/pipeline_loops.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
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
  return std::ranges::none_of(before, [&](const Stmt& stmt) { return AnyStmt(stmt, hinders); });
}

absl::StatusOr<Stmt> PipelineLaunch(const Stmt& launch) {
  const For* loop =
      FirstOf<For>(launch, [](const For& one) { return one.marks.pipeline.kind != PipelineKind::kNone; });
  const For* grid = DynAs<For>(launch);
  if (grid != nullptr && grid->marks.multicast_cluster &&
      (loop == nullptr || loop->marks.pipeline.kind != PipelineKind::kBulk)) {
    return Refusal("cluster ", grid->var->name, ": only bulk copies of a pipeline reach other blocks");
  }
  if (loop == nullptr) return launch;
  MYCC_ASSIGN_OR_RETURN(const LoopParts parts, PartsOf(*loop));
  if (loop->marks.pipeline.kind == PipelineKind::kBulk) return PipelineInBulk(*loop, parts, launch);
  return PipelineByThreads(launch, parts);
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
  std::vector<Stmt> work;
  for (const Stmt& stmt : StmtsOf(inner)) {
    const Store* store = StoreOf(stmt);
    const bool copies = store != nullptr && std::ranges::count(parts.tiles, store->buffer) > 0;
    if (copies && !MayGoFirst(*store, work)) {
      return Refusal("loop ", loop.var->name, " cannot be pipelined: ", store->buffer->name,
                     " is filled after it was used, or with what is computed before");
    }
    (copies ? parts.copies : work).push_back(stmt);
  }
  if (parts.copies.empty())
    return Refusal("loop ", loop.var->name, " cannot be pipelined: it copies nothing into shared memory");
  parts.work = InAllocs(of_work, MakeSeq(std::move(work)));
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
        std::ranges::all_of(nest, [](const For* l) { return ConstExtent(*l).has_value(); });
    return is_constant || nest.size() == 1 ? nest : std::vector<const For*>();
  }
  return {};
}

absl::StatusOr<Stmt> PipelineLoops(const Stmt& body) {
  // Each launch (a statement at the root, inside the Allocs of tensors between launches) has at most one
  // pipelined loop.
  if (body->kind != StmtKind::kAlloc && body->kind != StmtKind::kSeq) return PipelineLaunch(body);
  absl::Status status;
  Stmt pipelined = MapChildren(body, [&](const Stmt& child) {
    const absl::StatusOr<Stmt> made = status.ok() ? PipelineLoops(child) : child;
    status.Update(made.status());
    return made.ok() ? *made : child;
  });
  if (!status.ok()) return status;
  return pipelined;
}

}  // namespace mycc

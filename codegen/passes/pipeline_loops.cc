// Implements the pipeline marks of loops: copies into shared memory run ahead of the computation that reads
// them, through a ring of tiles. Either a separate role makes bulk copies (bulk_pipeline.cc), or all threads
// copy (threads_pipeline.cc).
//
// With s slots, an iteration uses slot number % s, where number counts over all loops inside the thread
// block.
#include "base/status.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/pipeline_parts.h"

namespace mycc {
namespace {

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
  if (loop->marks.pipeline.kind == PipelineKind::kBulk) {
    Stmt body;
    const std::vector<const For*> blocks = GridLoopsOf(launch, &body);
    return PipelineInBulk(*loop, parts, blocks, body);
  }
  return PipelineByThreads(launch, parts);
}

}  // namespace

absl::StatusOr<Stmt> PipelineLoops(const Stmt& body) {
  // Each launch (a statement at the root, inside the Allocs of tensors between launches) has at most one
  // pipelined loop.
  if (const Alloc* alloc = DynAs<Alloc>(body)) {
    MYCC_ASSIGN_OR_RETURN(Stmt inner, PipelineLoops(alloc->body));
    return inner == alloc->body ? body : std::make_shared<Alloc>(alloc->buffer, std::move(inner));
  }
  if (const Seq* seq = DynAs<Seq>(body)) {
    std::vector<Stmt> parts;
    for (const Stmt& part : seq->stmts) {
      MYCC_ASSIGN_OR_RETURN(Stmt done, PipelineLoops(part));
      parts.push_back(std::move(done));
    }
    return parts == seq->stmts ? body : MakeSeq(std::move(parts));
  }
  return PipelineLaunch(body);
}

}  // namespace mycc

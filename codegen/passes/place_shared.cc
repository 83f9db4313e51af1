// Divides the shared memory of a launch's thread blocks: buffers at the offsets of PlanShared, then the
// memory through which threads combine, then barriers.
#include <algorithm>

#include "base/status.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

// Barriers of 8 bytes: those of the roles, or of the messages in a reducing cluster.
int64_t BarrierCountOf(const Launch& launch) {
  if (launch.shape.cluster_reduce > 1) return Contains(launch.body, StmtKind::kCombine) ? kReceiveBuffers : 0;
  size_t barriers = 0;
  VisitEach<Roles>(launch.body,
                   [&](const Roles& roles) { barriers = std::max(barriers, roles.barrier_counts.size()); });
  return static_cast<int64_t>(barriers);
}

// The launch with its parts of shared memory: buffers, then scratch, messages and barriers.
LaunchShape ShapeWithShared(const Launch& launch, int64_t buffer_bytes) {
  constexpr int64_t kAlignment = 16, kBarrierBytes = 8;
  int64_t element_bytes = 0;  // of the widest value or tuple that threads combine
  bool uses_scratch = false;  // threads of different warps combine
  VisitEach<Combine>(launch.body, [&](const Combine& combine) {
    int64_t bytes = 0;  // each part of a tuple has its own array
    combine.ForEachBuffer([&](const Buffer& buffer) { bytes += ExchangedBytes(buffer); });
    element_bytes = std::max(element_bytes, bytes);
    uses_scratch |= std::ranges::any_of(combine.groups, CrossesWarps);
  });
  LaunchShape shape = launch.shape;
  const int64_t scratch = shape.threads > kThreadsOfWarp ? element_bytes * shape.threads : 0;
  const int64_t received =
      shape.cluster_reduce > 1 ? kReceiveBuffers * element_bytes * shape.cluster_reduce : 0;
  const int64_t barriers = BarrierCountOf(launch);
  shape.scratch_offset = RoundUp(buffer_bytes, kAlignment);
  shape.received_offset = shape.scratch_offset + scratch;
  shape.barriers_offset = shape.received_offset + received;
  shape.shared_bytes =
      uses_scratch || barriers > 0 ? shape.barriers_offset + kBarrierBytes * barriers : buffer_bytes;
  return shape;
}

}  // namespace

absl::StatusOr<Stmt> PlaceShared(const Stmt& body, const Target& target) {
  return TryRewriteEach<Launch>(body, [&](const Launch& launch) -> absl::StatusOr<Stmt> {
    const SharedPlan plan = PlanShared(launch.body);
    const LaunchShape shape = ShapeWithShared(launch, plan.bytes);
    if (shape.shared_bytes > target.smem_bytes) {
      return Refusal("a thread block takes ", shape.shared_bytes, " bytes of shared memory; ", target.model,
                     " has ", target.smem_bytes);
    }
    const Stmt code = RewriteEach<Alloc>(launch.body, [&](const Alloc& alloc) -> Stmt {
      const auto found = std::ranges::find(plan.buffers, alloc.buffer, &SharedBuffer::buffer);
      if (found == plan.buffers.end()) return nullptr;
      return std::make_shared<Alloc>(alloc.buffer, alloc.body, found->offset);
    });
    return std::make_shared<Launch>(shape, code);
  });
}

}  // namespace mycc

#include "codegen/cuda/launch.h"

#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/function.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"

namespace mycc {

absl::StatusOr<std::vector<CudaLaunch>> CudaLaunchesOf(const Stmt& body,
                                                       const std::vector<LaunchBuffer>& buffers) {
  std::vector<CudaLaunch> launches;
  const std::vector<Stmt> roots =
      body->kind == StmtKind::kSeq ? As<Seq>(body).stmts : std::vector<Stmt>{body};
  for (const Stmt& root : roots) {
    MYCC_CHECK(root->kind == StmtKind::kLaunch) << StmtName(root) << " is no launch";
    CudaLaunch launch{As<Launch>(root).shape, {}, nullptr, {}, {}};
    launch.blocks = GridLoopsOf(As<Launch>(root).body, &launch.body);
    const auto used = BuffersUnder(launch.body);
    for (const LaunchBuffer& buffer : buffers) {
      if (used.count(buffer.buffer.get()) != 0) launch.buffers.push_back(buffer);
    }
    MYCC_ASSIGN_OR_RETURN(launch.registers,
                          DistributeRegisters(launch.body, launch.threads * launch.cluster_reduce));
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace mycc

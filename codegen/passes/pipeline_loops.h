// Analyses a pipelined loop, and turns its tiles into rings. Pure. For the two kinds of pipelines,
// threads_pipeline.cc and bulk_pipeline.cc, with what each is made of.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/schedule/tree.h"

namespace mycc {

// The parts of a pipelined loop's body.
struct LoopParts {
  std::vector<Buffer> tiles;  // allocated in the loop, in shared memory
  std::vector<Stmt> copies;   // nests that fill the tiles from other memory
  Stmt work;                  // the rest
};

absl::StatusOr<LoopParts> PartsOf(const For& loop);

// The only store of a nest of loops and guards; null when there are other statements.
const Store* StoreOf(Stmt nest);

// Tiles extended to rings: each gets a leading dimension of slots.
class Rings {
 public:
  Rings(std::vector<Buffer> tiles, int slots);
  // The statement, accessing the tiles of one slot.
  Stmt In(const Stmt& stmt, const Expr& slot) const;
  Stmt Around(Stmt body) const { return InAllocs(rings_, std::move(body)); }

 private:
  std::vector<Buffer> tiles_, rings_;  // one ring for each tile
};

bool IsLoopOver(const Stmt& stmt, const Var& var);

// The perfect nest of serial loops down to the pipelined loop; empty when there is none.
std::vector<const For*> NestAround(const Stmt& stmt);

// The two kinds of pipelines. `loop` is the pipelined loop in the launch.
absl::StatusOr<Stmt> PipelineInBulk(const For& loop, const LoopParts& parts, const Stmt& launch);
Stmt PipelineByThreads(const Stmt& launch, const LoopParts& parts);

}  // namespace mycc

// Analyses a pipelined loop, and turns its tiles into rings: the common part of both kinds of pipelines.
// Pure; for pipeline_loops.cc and its two files alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// The body of a pipelined loop, taken apart.
struct LoopParts {
  std::vector<Buffer> tiles;  // allocated in the loop, in shared memory
  std::vector<Stmt> copies;   // nests that fill them from memory outside
  std::vector<Stmt> work;     // the rest
};

absl::StatusOr<LoopParts> PartsOf(const For& loop);

// The store of a nest of loops and guards; null where it holds more.
const Store* StoreOf(Stmt nest);

// The tiles as rings: a dimension of slots before theirs.
class Rings {
 public:
  Rings(const std::vector<Buffer>& tiles, int slots);
  // The statement on the tiles of one slot.
  Stmt In(const Stmt& stmt, const Expr& slot) const;
  Stmt Around(Stmt body) const;

 private:
  std::vector<std::pair<Buffer, Buffer>> rings_;
};

// Serial loops that hold nothing but the next one, down to the pipelined loop; none otherwise.
std::vector<const For*> NestAround(const Stmt& stmt);
// The loops' values in iteration `number` of the whole nest.
VarMap ValuesAt(const std::vector<const For*>& nest, const Expr& number);

// The two pipelines. `blocks`: the loops of the grid around `body`, that of one block, which holds the loop.
absl::StatusOr<Stmt> PipelineInBulk(const For& loop, LoopParts parts, const std::vector<const For*>& blocks,
                                    const Stmt& body);
Stmt PipelineByThreads(const Stmt& launch, const LoopParts& parts);

}  // namespace mycc

// Tiles that all blocks of a cluster read: each block copies its part of the tile to all of them (multicast).
// Pure. For bulk_pipeline.cc only.
#pragma once

#include "absl/status/status.h"
#include "codegen/ir/stmt.h"
#include "codegen/passes/pipeline_parts.h"

namespace mycc {

// Whether all blocks of the cluster copy the same elements. `cluster` is the variable of the loop over its
// blocks; null when there is no cluster.
bool IsMulticast(const Stmt& copy, const Var& cluster);

// The blocks advance through the ring of pipelined loop `ring` together, and share some of its tiles.
// FailedPrecondition when their steps differ, when no tile is shared, or when a shared tile cannot be divided
// among them. `body` is the code of one block. REQUIRES: the copy engine can make all copies of `parts`
// (BulkBoxOf).
absl::Status CheckCluster(const Stmt& body, const LoopParts& parts, const Var& ring, const Var& cluster);

}  // namespace mycc

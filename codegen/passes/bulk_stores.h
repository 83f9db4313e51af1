// Stores tiles of results in shared memory by the copy engine:
//
//   nest: s = acc                  wait for all bulk stores; nest: s = acc
//   nest: y[..] = s           ->   fence; copy y[..] = s in bulk; commit
//
// Pure. For bulk_pipeline.cc only.
#pragma once

#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// `tiles` are written by the role whose code `body` is. A tile is written again after the copy engine has
// read it. The same pointer when nothing is stored in this way; otherwise the role has to wait at its end.
Stmt StoreInBulk(const Stmt& body, const std::vector<Buffer>& tiles);

}  // namespace mycc

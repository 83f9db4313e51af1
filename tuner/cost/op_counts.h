// Counts the operations of a block, each by how often it runs. Pure function.
#pragma once

#include <unordered_map>
#include <vector>

#include "tuner/cost/index_form.h"
#include "tuner/cost/nest.h"

namespace mycc {

// The loops around the statements that write each buffer.
using WriterLoops = std::unordered_map<const BufferNode*, std::vector<const For*>>;

// Operations of one instance of the block, in the mean. On a CPU, an operation whose operands an inner loop
// leaves as they are counts as often as the loops outside of that one run: compilers hoist it (loop-invariant
// code motion; Aho, Lam, Sethi, Ullman, "Compilers", 9.5). A condition on indices alone does not count, since
// the lowered loops are cut where it changes; of what it chooses, the arm with more arithmetic counts. Index
// arithmetic inside loads does not count either: it is hoisted or strength-reduced, but for data-dependent
// indices. `nest`: its loops, tile and lane are known. `scope`: with the forms of the block's variables.
OpCounts CountOps(const NestBlock& nest, const IndexScope& scope, const WriterLoops& writers);

}  // namespace mycc

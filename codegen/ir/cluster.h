// Turns thread blocks that communicate (in a cluster, or through flags) into one program, so that the
// interpreter can find races and deadlocks between them, as it does between the roles of one block.
// Pure.
#pragma once

#include "codegen/ir/stmt.h"

namespace mycc {

//   block r in n of one cluster:                alloc s: alloc s.1:
//     alloc s:                                    roles:
//       roles:                                      copy:      wait empty; s[0..] = ..; s.1[0..] = ..;
//         copy:    wait empty           ->                     arrive full; arrive full.1
//                  multicast s = ..                 compute:   ..
//                  arrive full of all               copy.1:    wait empty.1; s[4..] = ..; s.1[4..] = ..; ..
//         compute: ..                               compute.1: ..
Stmt ExpandBlocks(const Stmt& body);

// Block `rank`'s part of a multicast's nest among `blocks` blocks: a share of the outermost loop with more
// than one iteration. REQUIRES: `blocks` divides that loop's extent.
Stmt PartOfMulticast(const Stmt& nest, const Expr& rank, int64_t blocks);

}  // namespace mycc

// Vector loops of a GPU's threads, with the elements that they move several at a time. Thread rule:
// immutable, so free to share.
#pragma once

#include <utility>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// Moves the elements of all lanes between a thread's own registers and consecutive elements of a tensor, in
// accesses of `count` elements each. The first element of an access is aligned to the access's bytes.
//
// A store into a tensor in registers packs two elements of 16 bits into one register.
struct VectorMove {
  Buffer lanes;  // one element for each lane
  Buffer tensor;
  std::vector<Expr> indices;  // of lane 0
  int64_t count = 1;
  std::vector<Expr> conditions;  // of a load: all of them hold
  bool once = false;             // a load of elements that the launch reads once
  bool sums = false;             // a store of sums of products as they are, in f32
};

// Executes the loads, then `loop`, a vector loop that reads and writes their lanes, then the stores. The
// lanes exist inside this statement. `by_one`: of the threads that execute this code redundantly, one
// executes all of it.
struct Vectors : StmtOf<Vectors, StmtKind::kVectors> {
  Vectors(std::vector<VectorMove> loads, Stmt loop, std::vector<VectorMove> stores, bool by_one)
      : loads(std::move(loads)), loop(std::move(loop)), stores(std::move(stores)), by_one(by_one) {}
  std::vector<VectorMove> loads;
  Stmt loop;
  std::vector<VectorMove> stores;
  bool by_one;
};

}  // namespace mycc

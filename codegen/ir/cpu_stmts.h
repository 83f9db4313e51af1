// Statements that CPUs alone execute: stores past the caches, and sums in tile registers. Thread rule:
// immutable, so free to share.
#pragma once

#include <utility>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// The least vector that a CPU stores past its caches.
inline constexpr int64_t kLeastBypassBytes = 16;

// Executes `body`. If every one of `outputs`, tensors of the caller, begins at a cache line, the stores in it
// with bypass_lanes bypass the caches, and all threads see them when it ends. Else no store does.
struct Bypass : StmtOf<Bypass, StmtKind::kBypass> {
  Bypass(std::vector<Buffer> outputs, Stmt body) : outputs(std::move(outputs)), body(std::move(body)) {}
  std::vector<Buffer> outputs;
  Stmt body;
};

// The same as `nest`, loops that set the sums of a TileRegion to zero, load them from `view`, or store them
// there; between tile registers and memory, without the accumulator. An empty nest, with the accumulator's
// own view, moves sums between registers and the accumulator.
struct TileMove : StmtOf<TileMove, StmtKind::kTileMove> {
  enum Kind : uint8_t { kZero, kLoad, kStore };
  TileMove(Kind move, TileView view, Stmt nest) : move(move), view(std::move(view)), nest(std::move(nest)) {}
  Kind move;
  TileView view;  // of the sums themselves for kZero
  Stmt nest;
};

// Products into one accumulator whose sums are in tile registers from `begin` (a TileMove, or Ifs whose arms
// are) to `end`, a TileMove. Between them are loops of products alone.
struct TileRegion : StmtOf<TileRegion, StmtKind::kTileRegion> {
  TileRegion(Stmt begin, Stmt products, Stmt end, int64_t depth_bytes)
      : begin(std::move(begin)),
        products(std::move(products)),
        end(std::move(end)),
        depth_bytes(depth_bytes) {}
  Stmt begin, products, end;
  int64_t depth_bytes;  // of every step; zeros fill up steps that are less deep
  // Loads its own configuration of tiles, and restores the function's at its end. All other regions of a
  // function, which is the kernel or the body of its parallel loops, have one configuration.
  bool configures = false;
};

}  // namespace mycc

// How an operand of a tensor-core product reaches shared memory: directly from its tensor, or from a copy in
// a suitable layout. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/space/rules/cuda/gpu.h"

namespace mycc {

// A copy of an operand, made in a launch of its own (or ahead of time, of a const input), whose rows run
// along the depth and begin at vectors: what is unaligned, strided or transposed is gathered once, not tile
// by tile.
struct Repack {
  std::string source;      // the input that it copies, or a stage that pads or rounds, which is the copy
  bool of_stage = false;   // the latter
  bool is_const = false;   // the copy is made ahead of time
  std::vector<int> order;  // of its dimensions in memory; the depth is the last
  int along = -1;          // the one along which what it copies is contiguous
  // A thread writes whole rows: where elements come from is known of each before the kernel runs.
  bool whole_rows = false;
  int64_t groups = 1;      // that the depth's dimension has, one behind the other
  int64_t old_extent = 0;  // of the depth in one of them,
  int64_t extent = 0;      // and with the zeros that fill up its vectors
  int64_t lanes = 1;       // elements of a vector
};

// One side's operand.
struct TensorOperand {
  std::string buffer;                // that is staged: the operand's, what its padding reads, or a copy
  bool second = false;               // of a product of a tensor by itself: the one that is staged second
  std::vector<std::string> inlined;  // stages that disappear into the product, or into the copy, first
  std::optional<Repack> repack;
  size_t rank = 0;                // of the buffer
  int64_t vector_bytes = 0;       // that copies of its tiles can be wide, at most 16
  bool depth_contiguous = true;   // along the innermost reduction axis; else along the side's last axis
  bool bulk = false;              // the copy engine can fetch its tiles
  std::vector<int> before_depth;  // axes of the side that lie in front of the depth in memory
  // Elements along the depth before others follow that are not of the sum, those of the next group; 0: the
  // tensor ends there.
  int64_t run = 0;
  DType dtype = DType::kF32;
  bool tf32 = false;     // rounded by tf32() on the way
  bool rounded = false;  // rounded by a stage of the group, which is its copy
};

// Whether the operand is made by a stage of the group that rounds each element of a tensor by tf32().
bool IsRoundedByStage(const Anatomy& anatomy, const Group& group, const Operand& operand);

// The operand's load after the stages that only pad it are inlined.
Expr ResolvedLoad(const Anatomy& anatomy, const Group& group, const Operand& operand,
                  TensorOperand* resolved);
// Sets where the operand lies and how its tiles are fetched. `side`: its axes of the stage; `depth`: the
// reduction axis that is tiled.
void SetLoad(const Stage& stage, const Expr& load, const std::vector<int>& side, const Var& depth,
             TensorOperand* operand);

// The copy engine can fetch tiles of the load: every index steps evenly with one tiled axis at most, and rows
// are aligned.
bool IsBulk(const Expr& load, const std::vector<Var>& tiled);

// Whether the depth runs along a dimension of its own, or groups of it, so that a copy can have it last.
bool CanRepack(const Operand& operand, const Var& depth);
// The load of a copy with the depth last. REQUIRES: CanRepack.
Expr RepackedLoad(const Anatomy& anatomy, const Group& group, const Operand& operand, const Var& depth,
                  TensorOperand* repacked);

// The operand as block `product` reads it: stages that pad are inlined, the copy is made. Returns the buffer
// that is staged then.
std::string EmitOperand(const TensorOperand& operand, const std::string& product, TraceBuilder* b);

}  // namespace mycc

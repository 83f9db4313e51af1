// A contraction on tensor cores as the GPU rules see it: axes, operands, possible tile sizes. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/target/instructions.h"
#include "tuner/space/rules/cuda/operand.h"
#include "tuner/space/rules/cuda/tap_window.h"

namespace mycc {

// The tile of `size` elements, of powers of two, that covers axes of these extents with the least waste;
// larger inner axes break ties.
AxisTile BestAxisTile(const std::vector<int64_t>& extents, int64_t size);

// "t3.rf", k -> "t3.rf.k": loops are called alike in the stage's block and in that of its parts.
std::string LoopOf(const std::string& block, const Var& axis);
// Splits the loops of a block's axes by their tiles.
struct TiledLoops {
  std::vector<std::string> outer, inner;
};
TiledLoops SplitAxes(const Stage& product, const std::string& block, const std::vector<int>& axes,
                     const AxisTile& tile, TraceBuilder* b);
void Append(std::vector<std::string>* to, const std::vector<std::string>& more);

struct TensorContraction {
  int stage;
  std::vector<int> rows, cols, batch, depth;  // axes; `depth`: reduction axes, the tiled one last
  std::vector<int> near;                      // batches that share lines of memory: groups of few channels
  TensorOperand a, b;                         // of rows, of columns
  std::vector<int> epilogue;                  // stages, in order
  DType output = DType::kF32;
  bool bulk_store = false;          // the copy engine can store tiles of the result
  bool one_tensor = false;          // that both operands are of: a gram matrix
  std::optional<TapWindow> window;  // of a's pixels; decision "window" says whether a tile has all its taps

  std::vector<int64_t> Extents(const Anatomy& anatomy, const std::vector<int>& axes) const;
};

// A product as its operands lie, and of copies of those whose tiles cannot be copied by whole vectors, where
// there are such and copies help; decision "repack" chooses.
struct TensorForms {
  TensorContraction direct;
  std::optional<TensorContraction> repacked;
  const TensorContraction& at(int64_t repack) const { return repack != 0 ? *repacked : direct; }
};
// nullopt when the product is not one for tensor cores: types, or operands that are computed in other ways
// than by padding.
std::optional<TensorForms> FindTensorForms(const Anatomy& anatomy, const Group& group);

// Whether there are batches that share lines of memory: decision "near" says whether the grid runs along them
// innermost, so that thread blocks that run together use whole lines.
bool HasNearBatches(const TensorForms& forms);
// The loops of batches of block `product`: those that are innermost in the grid, or the others.
std::vector<std::string> BatchLoops(const Anatomy& anatomy, const TensorContraction& t,
                                    const std::string& product, const Values& v, bool innermost);
// The loops of a tile in the order in which its operands are staged: contiguous along the last one of each
// operand's. REQUIRES: not `a` along its rows and `b` along the depth, which no order has.
std::vector<std::string> TileOrder(const TensorOperand& a, const TensorOperand& b,
                                   const std::vector<std::string>& rows, const std::vector<std::string>& cols,
                                   const std::vector<std::string>& depth);
// The epilogue's stages become part of the block that stores the product.
void EmitEpilogue(const Anatomy& anatomy, const TensorContraction& t, TraceBuilder* b);

// The operands as block `product` reads them (operand.h); returns the buffers.
struct StagedBuffers {
  std::string a, b;
};
StagedBuffers EmitOperands(const TensorContraction& t, const std::string& product, TraceBuilder* b);
// The loops under which their tiles are staged in shared memory, and the loop over the taps whose pixels a's
// tile has all; empty without one.
struct StagingLoops {
  std::string a, b, taps;
};
// Stages them; returns the tiles. `work`: the product, or its parts.
StagedBuffers StageOperands(const TensorContraction& t, const StagedBuffers& buffers, const std::string& work,
                            const StagingLoops& loops, TraceBuilder* b);

// An instruction for the types, of the class that is asked for.
std::optional<Instruction> TensorInstruction(const TensorContraction& t, DType accumulator,
                                             InstructionClass kind, const Target& target);

// A contraction, an instruction for it and the target: what both rules plan with. With `swap` rows and
// columns change places.
struct TensorPlan {
  Anatomy anatomy;
  TensorForms forms;
  Instruction row;
  Target target;

  const TensorContraction& t(const Values& v) const { return forms.at(v.at("repack")); }
  const Stage& stage() const { return anatomy.product(forms.direct.stage); }
  std::vector<int64_t> Rows(bool swap = false) const;
  std::vector<int64_t> Cols(bool swap = false) const;
  // The extent of the axis that is tiled, and so split.
  int64_t Depth(const Values& v) const { return stage().reduce_axes[t(v).depth.back()]->extent; }
  int64_t Tiles(int64_t bm, int64_t bn, bool swap = false) const;
};

}  // namespace mycc

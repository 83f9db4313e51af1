// Contractions on a GPU's tensor cores: what the rule knows of one, and the tiles it chooses from. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/instructions.h"
#include "tuner/space/rules/cuda/gpu.h"

namespace mycc {

// Axes that run along one side of the matrix product, and how a tile of them is cut: powers of two, one for
// each axis.
using AxisTile = std::vector<int64_t>;

// The tile of `size` elements that covers axes of these extents with the least waste; larger inner axes break
// ties.
AxisTile BestAxisTile(const std::vector<int64_t>& extents, int64_t size);
// Tiles to cover the extents.
int64_t TilesOf(const std::vector<int64_t>& extents, const AxisTile& tile);

// One side's operand.
struct TensorOperand {
  std::string buffer;                // that is staged: the operand's, or what its padding reads
  std::vector<int64_t> shape;        // of that buffer
  std::vector<std::string> inlined;  // stages that disappear into the product first
  int source = -1;               // the stage that feeds the product itself, inlined or not; -1 for an input
  bool depth_contiguous = true;  // along the innermost reduction axis; else along the side's last axis
  bool bulk = false;             // the copy engine can fetch its tiles
  DType dtype = DType::kF32;
  bool tf32 = false;  // rounded by tf32() on the way
};

struct TensorContraction {
  int stage;
  std::vector<int> rows, cols, batch, depth;  // axes; `depth`: reduction axes, the tiled one last
  TensorOperand a, b;                         // of rows, of columns
  std::vector<int> epilogue;                  // stages, in order
  DType output = DType::kF32;
  bool bulk_store = false;  // the copy engine can store tiles of the result

  std::vector<int64_t> Extents(const Anatomy& anatomy, const std::vector<int>& axes) const;
};

// nullopt when the product is not one for tensor cores: types, or operands that are computed in other ways
// than by padding. `row` is an instruction for the types, of the class that is asked for.
std::optional<TensorContraction> FindTensorContraction(const Anatomy& anatomy, const Group& group);
std::optional<Instruction> TensorInstruction(const TensorContraction& t, DType accumulator,
                                             InstructionClass kind, const Target& target);

}  // namespace mycc

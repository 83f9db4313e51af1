// Which instructions of a CPU target can compute a contraction, and which memory layout of its operands each
// needs. Pure functions.
#pragma once

#include <vector>

#include "codegen/target/instructions.h"
#include "codegen/target/target.h"
#include "tuner/space/anatomy.h"

namespace mycc {

struct CpuProduct {
  // With lanes along the output's last axis, or the other way round (Crosswise), where the output is
  // transposed while it is stored.
  Contraction way;
  Instruction instruction;
  // The reduction axis along which groups of the instruction lie; -1 where it takes single elements.
  int depth_axis = -1;
  // The scalar operand's groups do not lie together in memory: it has to be packed.
  bool packs_scalar = false;
};

// The products worth a search, of each way the most promising first; empty where no instruction serves.
std::vector<CpuProduct> CpuProductsOf(const Contraction& contraction, const Stage& stage,
                                      const Target& target);

// The operand whose sign to change, for a product of two i8 or two u8 that is best computed by an instruction
// for u8 times i8 (codegen/schedule/stage_rewrites.h); null where there is none. The sums' change depends on
// the other operand, and is known ahead when that one is const.
Buffer SignToChange(const Contraction& contraction, const Stage& stage, const Target& target);
// Lanes can run along the depth: it is long, and both operands lie along it.
bool LiesAlongDepth(const Contraction& contraction, const Stage& stage);
// And so few rows read a panel of the other operand that it is not worth making.
bool HasFewRowsForPanels(const Contraction& contraction, const Stage& stage);

}  // namespace mycc

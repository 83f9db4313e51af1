// Classifies stages as contraction, tile, row or elementwise, which selects their rule. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "codegen/target/target.h"
#include "tuner/space/anatomy.h"

namespace mycc {

// The last two are no classes of one stage: a group of stages along one axis (stream_chain.h), in one pass;
// and the stages that merge the results of its parts.
enum class StageClass { kContraction, kTile, kRow, kElementwise, kStreamed, kMerge };

StageClass Classify(const Anatomy& anatomy, int s, const Target& target);
// Whether tensor cores multiply these types as they are stored. `product`: the stage as it multiplies.
bool HasTensorInstruction(const Contraction& c, const Stage& product, const Target& target);
// The class of a contraction on a GPU when its rows or columns are so few that tensor cores multiply mostly
// nothing: another rule may be faster. nullopt when they are not.
std::optional<StageClass> OtherClass(const Anatomy& anatomy, int s, const Target& target);

}  // namespace mycc

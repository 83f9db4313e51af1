// Which class of computations a stage is of: what rule its group gets. Pure functions.
#pragma once

#include "codegen/target/target.h"
#include "tuner/space/anatomy.h"

namespace mycc {

enum class StageClass { kContraction, kTile, kRow, kElementwise };

StageClass Classify(const Anatomy& anatomy, int s, const Target& target);

}  // namespace mycc

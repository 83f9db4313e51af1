// Bands of a convolution: parts of the image's lines (or columns, where those are outermost), one for each
// thread. Each thread makes its own copy of the padded image lines that it reads. With a shared copy, threads
// would wait for each other, and read it from another core's caches. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// How many bands an image may be in, at most: the last ones may be empty and are left out. 0: none, the copy
// is made where `pad` says.
std::vector<int64_t> BandChoices(const ContractionPlan& plan);

// The number of tiles of lines, or blocks of columns, that bands divide among them.
int64_t BandTiles(const ContractionPlan& plan, const Values& v);

// No fewer bands are the same.
bool BandsDiffer(const ContractionPlan& plan, int64_t tiles, int64_t bands);

// The choice by which the threads are done first, by estimate.
int64_t BestBands(const ContractionPlan& plan, bool of_columns, int64_t tiles);

}  // namespace mycc

// Bands: parts of a convolution, of the image's lines or, where columns are outermost, of the columns. A band
// is one thread's, and so is a copy of the part of the padded image that it reads: what another thread wrote
// would come from that one's caches, after all have waited for all of the copy. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// How many bands an image may be in, at most: the last ones may be empty and are left out. 0: none, the copy
// is made where `pad` says.
std::vector<int64_t> BandChoices(const ContractionPlan& plan);

// How many tiles of lines, or blocks of columns, bands share out.
int64_t BandTiles(const ContractionPlan& plan, const Values& v);

// No fewer bands are the same.
bool BandsDiffer(const ContractionPlan& plan, int64_t tiles, int64_t bands);

// The choice by which the threads are done first, by estimate.
int64_t BestBands(const ContractionPlan& plan, bool of_columns, int64_t tiles);

}  // namespace mycc

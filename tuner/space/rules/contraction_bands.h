// Bands: parts of a convolution, of the image's lines or, where columns are outermost, of the columns. Each
// is one thread's, and so is a copy of the part of the padded image that it reads: what another thread wrote
// would come from that one's caches, after all have waited for all of the copy. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// How many bands an image may be in; 0: none, and a copy that is everyone's.
std::vector<int64_t> BandChoices(const ContractionPlan& plan);

// What bands are of: tiles of lines, or blocks of columns.
int64_t BandTiles(const ContractionPlan& plan, const Values& v);
// Of so many tiles of lines, or blocks of columns, those in a band; 0 when so many bands would leave one
// empty.
int64_t TilesInBand(int64_t tiles, int64_t bands);

// Of the choices that by which the threads are done first; 0 when none gives each of them one.
int64_t BestBands(const ContractionPlan& plan, int64_t tiles);

}  // namespace mycc

// Ties of a final round: finalists that the round cannot tell apart from the fastest. Among them the choice
// is made by what does not change from one round to the next, so that two tunes of a workload choose alike.
// Pure functions.
#pragma once

#include <vector>

#include "proto/records.pb.h"

namespace mycc {

// The positions of the records that tie for the best, those to be preferred first: of less spilled and shared
// memory, fewer registers and less code; then of a steadier time; then in the order of their traces' texts.
//
// TiesWith (proto/precision.h) says which records tie with the fastest, which is one of them itself.
// REQUIRES: the records passed a final round, and are not empty.
std::vector<size_t> TiesForBest(const std::vector<const v1::Record*>& records);

}  // namespace mycc

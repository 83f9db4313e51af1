// Helpers that several rules share: lists of tile sizes to choose from, decisions about threads and caches,
// and the plain schedule of a stage without decisions.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expr/integers.h"
#include "tuner/space/part.h"

namespace mycc {

// Numbers of tiles to a block: powers of two, their halves between, and all of them.
std::vector<int64_t> TileCounts(int64_t tiles);
int64_t LargestAtMost(const std::vector<int64_t>& ascending, int64_t bound);
// The choices up to `most`, and the first in any case.
std::vector<int64_t> UpTo(std::vector<int64_t> choices, int64_t most);

// Whether the group's stages do or move enough that the default schedule wakes the other threads, which costs
// a few microseconds: thousands of vector operations, half a megabyte.
bool PaysForThreads(const Anatomy& anatomy, const Group& group, const Target& target);

// The decision `par`: whether the threads share the group's outer loops, `can` says whether they could; by
// default where that pays.
void DecideThreads(const Anatomy& anatomy, const Group& group, const Target& target, bool can, Part* part);

// The decision `bypass`: whether stores of the stage's tensor bypass the caches, where no other stage reads
// it and a thread's share does not fit. Not by default: memory may be slower than a cache that all threads
// share.
void DecideBypass(const Anatomy& anatomy, int stage, const Target& target, Part* part);

// Vectors along the last axis where its reads are contiguous or broadcast there, and parallel over as many of
// the others as give the threads work when asked: for stages that only feed a neighbour, such as a
// convolution's padding. The loops are those of the naive nest or of compute_at.
void EmitPlainStage(const Anatomy& anatomy, int stage, const Target& target, bool parallel, TraceBuilder* b);

// An epilogue's stages as one, on the accumulators of the block that they follow.
void EmitEpilogue(const Anatomy& anatomy, const std::vector<int>& stages, TraceBuilder* b);

}  // namespace mycc

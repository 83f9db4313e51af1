// Helpers that the GPU rules share: vector widths for memory, the number of threads that a kernel wants, and
// the flat schedule of a stage that stands alone. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/space/part.h"

namespace mycc {

inline constexpr int64_t kAccessBytes = 16;  // of one thread, at most
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kMaxBlockThreads = 1024;

// The elements, a power of two, that a vector along `lane` may be long for each of its places in the tensor
// to be aligned to its own length: 1 where the address does not move by one element with the lane. The lanes
// of other axes' steps begin where a vector does.
int64_t AlignedLanes(const BufferNode& buffer, const std::vector<Expr>& index, const Var& lane);

// The longest useful vector along `lane` for a stage: by its output where that moves along the lane, and by
// every read that does. Never above kAccessBytes of the narrowest of these.
int64_t LanesOf(const Stage& stage, const Var& lane);

// 1, 2, .. up to `most`, powers of two.
std::vector<int64_t> PowersOfTwo(int64_t from, int64_t most);
int64_t PowerAtMost(int64_t value);   // the largest power of two, at least 1
int64_t PowerAtLeast(int64_t value);  // the smallest
int64_t LowestBit(int64_t value);     // the largest power of two that divides it

// One launch over all elements of a stage:
//   block: thread: unroll: vector
// Loops are those of the naive nest, `lanes` along the last.
void EmitFlat(const std::vector<std::string>& loops, int64_t unroll, int64_t threads, int64_t lanes,
              TraceBuilder* b);

// Gives the groups of a contraction (anatomy.h) loops of their own, in `block`: the stage's, or one with its
// loops.
void EmitGroups(const Anatomy& anatomy, int stage, const std::string& block, TraceBuilder* b);

// Vectors that each thread has, so that there are blocks enough for every SM.
int64_t VectorsPerThread(int64_t elements, int64_t lanes, int64_t threads, int64_t most,
                         const Target& target);

// Moves defaults that are not legal together to the nearest point that is, counted in steps along decisions.
// REQUIRES: some ten thousand points at most.
void MakeDefaultsLegal(Part* part);

}  // namespace mycc

// The biases and masks of a chain's tiles on a GPU (stream_chain.h): tensors with an element for each row and
// each place of the axis, as many as scores. Threads load the elements of their scores while products run; or
// the copy engine brings tiles of them through a ring, turns ahead, as it brings keys and values. Pure. For
// streamed.cc only.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/workload/stream_chain.h"
#include "tuner/space/anatomy.h"

namespace mycc {

struct TileBias {
  int tile;  // the stage that reads it
  const ExprNode* load;
};

// The biases whose elements a thread reads beside its scores. A tensor comes once for each stage that reads
// it. A vector of the keys, what is read along diagonals, or by rows that are several heads', does not.
std::vector<TileBias> TileBiasesOf(const Anatomy& anatomy, const StreamChain& chain);

// Whether the copy engine can fetch its tiles of `rows` by `keys` elements: rows of whole 16 bytes, and tiles
// that end in the tensor, or where it ends.
bool CanFetchInTiles(const Anatomy& anatomy, const StreamChain& chain, const TileBias& bias, int64_t rows,
                     int64_t keys);

// Whether one of the biases depends on an axis of the sum.
bool BiasesDependOn(const Anatomy& anatomy, const StreamChain& chain, const std::vector<TileBias>& biases,
                    int axis);

}  // namespace mycc

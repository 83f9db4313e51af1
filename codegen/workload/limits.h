// Limits on a workload's sizes. They are far beyond useful sizes; they keep size arithmetic inside 64 bits
// and recursion inside a thread's stack.
#pragma once

#include <cstdint>

namespace mycc {

inline constexpr int kMaxNesting = 128;            // nested brackets and signs in text
inline constexpr int kMaxExprDepth = 256;          // levels of one expression
inline constexpr int64_t kMaxExprNodes = 1 << 16;  // nodes of one expression as a tree
inline constexpr int kMaxDivisions = 8;            // nested // and % of i64, whose simplification branches
inline constexpr int kMaxStages = 256;             // stages of a workload
inline constexpr int kMaxTotalDepth = 4096;        // all expressions' levels: depth of evaluation
inline constexpr int kMaxRank = 16;                // dimensions of a tensor, axes of a reduction
inline constexpr int64_t kMaxElements = int64_t{1} << 40;    // elements of a tensor
inline constexpr int64_t kMaxIterations = int64_t{1} << 60;  // points of a stage: axes times reduction axes
inline constexpr int64_t kMaxIndex = int64_t{1} << 60;       // magnitude of any part of an index

}  // namespace mycc

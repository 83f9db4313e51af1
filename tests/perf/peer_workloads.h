// What the libraries are asked to compute: one row for each workload of suite_cpu_f32.te and of
// examples/resnet50_b1_f32.te, under the workload's name there. A row describes the same computation on the
// same layouts; tests/perf/suites_test.py compares the names.
#pragma once

#include <span>
#include <string_view>

namespace mycc {

enum class PeerKind { kGemm, kConv, kMaxPool, kAvgPool, kSoftmax, kLayerNorm, kTranspose, kGelu };
enum class Epilogue { kNone, kBias, kBiasRelu, kBiasAddRelu };

// All f32. Matrices are row-major m x n, activations NHWC with batch 1 and square images, weights in any
// layout (they are constants).
struct PeerWorkload {
  std::string_view name;
  PeerKind kind;
  int m = 0, n = 0, k = 0;                         // kGemm: m x k times k x n; rows: m x n
  int h = 0, c = 0, out_c = 0, r = 1, stride = 1;  // kConv and pooling: image size, channels, kernel size
  int pad = 0, groups = 1;
  Epilogue epilogue = Epilogue::kNone;
};

std::span<const PeerWorkload> AllPeerWorkloads();
// nullptr when there is none of that name.
const PeerWorkload* FindPeerWorkload(std::string_view name);

// Each times one library's best ways of computing the workload and prints a line `NAME LIBRARY[.WAY]
// MILLISECONDS` for each way. Returns false when the library has no such computation.
bool TimeOneDnn(const PeerWorkload& workload, double budget_seconds);
bool TimeOpenBlas(const PeerWorkload& workload, double budget_seconds);
bool TimeLoops(const PeerWorkload& workload, double budget_seconds);

}  // namespace mycc

// Workloads for the libraries. A workload comes as one word, FAMILY:KEY=VALUE,..., as cpu_workloads.py writes
// it beside the text that mycc compiles: one description, made from the same numbers. Its tensors are files,
// so that all sides compute on the same data (peer_data.h).
#pragma once

#include <string>
#include <string_view>

#include "tests/perf/peer_data.h"

namespace mycc {

enum class PeerKind {
  kGemm,
  kBatchedGemm,
  kConv,
  kMaxPool,
  kAverageAll,
  kSoftmax,
  kLayerNorm,
  kTranspose,
  kGelu,
  kChain  // 1 / (1 + exp(-(2 max(x, 0) + 1)))
};
enum class PeerType { kF32, kBf16, kI8, kU8 };
enum class PeerLayout { kNhwc, kNchw, kBlocked };  // kBlocked: nChw16c, images of fewer than 16 channels nchw
enum class Epilogue { kNone, kBias, kBiasRelu, kBiasAddRelu };

// Inputs in the order of the workload's text: operands, then bias, then what is added. Products of bytes are
// summed to i32, all others to f32.
struct PeerWorkload {
  std::string spec;
  PeerKind kind = PeerKind::kGemm;
  // Products: m x k times k x n, or n x k where `transposed`, `batch` of them; rows: m x n.
  int batch = 1, m = 0, n = 0, k = 0;
  bool transposed = false;
  // Images and kernels: height, width, channels in and out, a square kernel.
  int images = 1, h = 0, w = 0, c = 0, out_c = 0, kernel = 1, stride = 1, dilation = 1, pad = 0, groups = 1;
  PeerType a = PeerType::kF32, b = PeerType::kF32;  // the operands' types; b of the weights
  PeerLayout layout = PeerLayout::kNhwc;
  Epilogue epilogue = Epilogue::kNone;

  int OutputExtent(int extent) const { return (extent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }
};

// False with the reason in `error` when `spec` is none.
bool ParsePeerWorkload(std::string_view spec, PeerWorkload* workload, std::string* error);

// Each computes the workload in one library's best ways and prints, for each way, `SPEC LIBRARY[.WAY]
// MILLISECONDS` and how far its result is from the one in `data`. Nothing when the library has no such
// computation. oneDNN's and the data's errors are exceptions.
void TimeOneDnn(const PeerWorkload& workload, const PeerData& data, double budget_seconds);
void TimeOpenBlas(const PeerWorkload& workload, const PeerData& data, double budget_seconds);
void TimeLoops(const PeerWorkload& workload, const PeerData& data, double budget_seconds);

}  // namespace mycc

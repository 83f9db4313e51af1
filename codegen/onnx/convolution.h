// Shared by convolutions, transposed and deformable ones. Internal to this folder. Thread rule: pure
// functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"
#include "codegen/onnx/windows.h"

namespace mycc::onnx {

// Sums of products of narrow floats are kept in f32.
inline DType SumType(DType dtype) { return IsNarrowFloat(dtype) ? DType::kF32 : dtype; }

// The spatial extents of weights [.., .., kernel...]; refused when kernel_shape says something else.
absl::StatusOr<std::vector<int64_t>> KernelOf(const NodeImport& n, size_t weights);

// The convolution of a padded image with w[m, c / group, kernel...], in the type of sums.
absl::StatusOr<Buffer> ConvolutionSums(NodeImport& n, const Buffer& padded, const Buffer& w, int64_t group,
                                       const Windows& windows);

// The sums, plus a bias for each channel when the node has this input, in the type of the result.
absl::StatusOr<Buffer> WithBias(NodeImport& n, const Buffer& sums, size_t bias, DType dtype);

// conv_transpose_operators.cc and deform_conv_operators.cc.
absl::Status ImportConvTranspose(NodeImport& n);
absl::Status ImportDeformConv(NodeImport& n);

}  // namespace mycc::onnx

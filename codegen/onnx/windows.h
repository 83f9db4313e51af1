// Windows that slide over the spatial axes of images [n, c, spatial...], and the padding around the images:
// what convolutions and pooling share. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// Above this no sum or product of two extents overflows.
inline constexpr int64_t kMostWindowExtent = int64_t{1} << 30;

// One number for each spatial axis in every field.
struct Windows {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> image;          // extents
  std::vector<int64_t> before, after;  // padding, as the attributes say
  std::vector<int64_t> out;            // the number of windows

  size_t rank() const { return kernel.size(); }
  // The elements from the first to the last one of a window.
  int64_t Reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  // The padded extent that windows read; it may end before or behind the padding.
  int64_t Padded(size_t i) const { return (out[i] - 1) * strides[i] + Reach(i); }
  // The place in the padded image that a window reads with a tap.
  Expr Place(size_t i, const Expr& window, const Expr& tap) const;
  // Whether a window reads anything but elements of the image.
  bool ReadsPadding() const;
};

// The attributes strides, dilations, pads, auto_pad and ceil_mode, over an image [n, c, spatial...].
absl::StatusOr<Windows> WindowsOf(const NodeImport& n, const std::vector<int64_t>& image,
                                  std::vector<int64_t> kernel);

// An attribute with `count` numbers of at least `least`; absent, they are `least`.
absl::StatusOr<std::vector<int64_t>> WindowInts(const NodeImport& n, const std::string& name, size_t count,
                                                int64_t least);

// auto_pad, with "NOTSET" for "".
absl::StatusOr<std::string> AutoPad(const NodeImport& n);

// A read of `image` at indices that may be outside of it by `before` and `after` elements of each spatial
// axis, which read as `outside`.
Expr LoadPadded(const Buffer& image, const std::vector<int64_t>& before, const Axes& at, const Expr& outside,
                const std::vector<int64_t>& padded);

// The image with the padding that windows read, as a stage of its own; the image where there is none.
Buffer PaddedImage(GraphBuilder& g, const Buffer& image, const Windows& windows, const Expr& outside);

}  // namespace mycc::onnx

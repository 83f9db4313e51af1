// One axis of a tensor that is resized: the elements that each result reads, and their weights. They are
// tables, which are known when the model is compiled if the scales are. Internal to this folder. Thread rule:
// pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

enum class Interpolation { kNearest, kLinear, kCubic };

struct ResizeOptions {
  Interpolation interpolation = Interpolation::kNearest;
  std::string coordinates = "half_pixel";  // the attribute coordinate_transformation_mode
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

struct ResizedAxis {
  size_t axis = 0;
  int64_t in = 1, out = 1;
  Expr scale;                         // f64
  std::optional<double> known_scale;  // its value, where it is known
  Expr roi_begin, roi_end;            // f64, of tf_crop_and_resize alone
};

// Result i reads the elements first[i] to first[i] + taps - 1, clamped to the axis.
struct AxisTaps {
  size_t axis = 0;
  int64_t in = 1, taps = 1;
  Buffer first;    // i32[out]; null: all read element 0
  Buffer weights;  // [out, taps]; null: one tap, which is the result
  Buffer outside;  // bool[out], results that are beyond the axis; null: none
};

// `dtype` is that of the weights.
AxisTaps TapsOf(GraphBuilder& g, const ResizedAxis& axis, const ResizeOptions& options, DType dtype);

// The element that result `i` reads with tap number `tap`: plain arithmetic on i where the table follows a
// line.
Expr TapIndex(const GraphBuilder& g, const AxisTaps& taps, const Expr& i, const Expr& tap);

}  // namespace mycc::onnx

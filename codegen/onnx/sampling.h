// Reads of images at places that are computed when the model runs, interpolated between their neighbours:
// deformable convolutions, sampling at grids and regions of interest. Internal to this folder. Thread rule:
// pure functions.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// Places in the spatial axes of an image: for each axis a tensor of floats. All have one shape.
using Places = std::vector<Buffer>;

// Places rounded down, as integers.
std::vector<Buffer> FloorsOf(GraphBuilder& g, const Places& places);

// The element of `image` at `outer` and, along the spatial axes behind it, at integers that may be outside of
// the image, where it is 0.
Expr LoadOrZero(const Buffer& image, const Axes& outer, const std::vector<Expr>& at);

// The same with the integers clamped to the image.
Expr LoadClamped(const Buffer& image, const Axes& outer, const std::vector<Expr>& at);

// Multilinear interpolation at a place, one number for each spatial axis. `low` is the place rounded down, as
// an i64; `load` reads the image at integers. In the type of the place.
Expr Interpolated(const std::vector<Expr>& place, const std::vector<Expr>& low,
                  const std::function<Expr(const std::vector<Expr>&)>& load);

// The elements of places, and of their floors as i64.
std::vector<Expr> LoadEach(const std::vector<Buffer>& tensors, const Axes& at);
std::vector<Expr> LoadEachIndex(const std::vector<Buffer>& tensors, const Axes& at);

// The operators that are written over this: grid_sample_operators.cc and roi_operators.cc.
absl::Status ImportGridSample(NodeImport& n);
absl::Status ImportRoiAlign(NodeImport& n);
absl::Status ImportMaxRoiPool(NodeImport& n);

}  // namespace mycc::onnx

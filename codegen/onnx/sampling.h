// Reads of images at places that are computed when the model runs, interpolated between their neighbours:
// deformable convolutions, sampling at grids and regions of interest. Internal to this folder. Thread rule:
// pure functions.
#pragma once

#include <functional>
#include <vector>

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

// Multilinear interpolation at the element `at` of places, whose floors are `floors`; `load` reads the image
// at integers. In the type of the places.
Expr Interpolated(const Places& places, const std::vector<Buffer>& floors, const Axes& at,
                  const std::function<Expr(const std::vector<Expr>&)>& load);

}  // namespace mycc::onnx

// Rewrites a convolution with a 3 x 3 window as stages with fewer multiplications: Winograd's minimal
// filtering F(m x m, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
// Pure functions. For tiles of m x m outputs, n = m + 2:
//
//   u = G w G^T        of each filter     [n, n, c, k]
//   v = B^T d B        of each input tile [n, n, tile, c]
//   M = sum over c of v * u               n * n products of matrices: m * m * 9 / (n * n) fewer
//   y = A^T M A        of each output tile
//
// The matrices are those of the Cook-Toom algorithm for the points 0, +-p (and +-q) and infinity. The points
// were chosen for a small error: see kWinogradPoints. Results that the direct sum computes exactly (sums of
// small integers) may become inexact. An infinity or NaN in the input makes all outputs of the tiles that
// read it NaN.
//
// Narrower operands are widened first; everything is computed in the sum's type.
//
// In f32, for inputs and weights uniform in [-1, 1), the error of F(2) is a few roundoffs of the largest
// output, and that of F(4) some dozens. Both are below WinogradError, which is below ToleranceOf.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Suffixes of the stages' names, after the convolution's own name.
inline constexpr char kWinogradFilterRows[] = ".g";  // G w
inline constexpr char kWinogradFilter[] = ".u";      // u
inline constexpr char kWinogradWindow[] = ".d";      // input tiles, zero beyond what outputs need
inline constexpr char kWinogradWindowRows[] = ".e";  // B^T d
inline constexpr char kWinogradInput[] = ".v";       // v
inline constexpr char kWinogradProduct[] = ".m";     // M
inline constexpr char kWinogradRows[] = ".z";        // A^T M

// The roles of a convolution stage's axes, as indices of axes or reduction axes. Filters and channels may
// have several axes, the outermost first (blocks, then positions in a block).
struct WinogradShape {
  std::vector<int> batch;           // axes over images
  int rows, columns;                // axes
  std::vector<int> filters;         // axes
  int window_rows, window_columns;  // reduction axes
  std::vector<int> channels;        // the other reduction axes
  bool image_first;                 // the image is the left factor

  int64_t Filters(const Stage& stage) const;  // their number
  int64_t Channels(const Stage& stage) const;
};

// FailedPrecondition, with the reason, unless `stage` is a sum over a 3 x 3 window and channels of image[..,
// i + r, j + s, .., c] * filter[k, c, r, s] in f32 or f64. An operand's dimensions may be in any order; its
// elements are of the sum's type, or narrower than 32 bits and widened to it.
absl::StatusOr<WinogradShape> WinogradShapeOf(const Stage& stage);

// The load of the image's element, and the filters' tensor.
const Expr& ImageOf(const Stage& stage, const WinogradShape& shape);
const Buffer& FilterOf(const Stage& stage, const WinogradShape& shape);

// A bound of F(m x m)'s error over `channels` channels, in units of roundoff of the largest output.
double WinogradError(int m, int64_t channels);

// The stages that replace `stage`, in order; the last one computes its tensor. REQUIRES: `shape` is the
// stage's; m is 2 or 4.
std::vector<Stage> WinogradStages(const Stage& stage, const WinogradShape& shape, int m);

}  // namespace mycc

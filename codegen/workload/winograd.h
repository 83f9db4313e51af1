// Rewrites a convolution of a 3 x 3 window in stages with fewer multiplications: Winograd's minimal filtering
// F(m x m, 3 x 3). For tiles of m x m outputs, n = m + 2:
//
//   u = G w G^T        of each filter     [n, n, c, k]
//   v = B^T d B        of each input tile [n, n, tile, c]
//   M = sum over c of v * u               n * n products of matrices: m * m * 9 / (n * n) fewer
//   y = A^T M A        of each output tile
//
// The matrices are Cook's and Toom's for the points 0, +-p (and +-q), infinity, which were chosen for their
// error: see kWinogradPoints. Results that the direct sum computes exactly (sums of small integers) may get
// an error, and an infinity or NaN in the input makes all outputs of the tiles that read it NaN.
//
// Operands of fewer bits are widened first, and everything is computed in the sum's type.
//
// In f32, for inputs and weights drawn evenly from [-1, 1), F(2) errs by a few roundoffs of the largest
// output and F(4) by some dozens: below WinogradError, which is below what ToleranceOf allows.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The names of the stages: the convolution's own and one of these.
inline constexpr char kWinogradFilterRows[] = ".g";  // G w
inline constexpr char kWinogradFilter[] = ".u";      // u
inline constexpr char kWinogradWindow[] = ".d";      // input tiles, zero beyond what outputs need
inline constexpr char kWinogradWindowRows[] = ".e";  // B^T d
inline constexpr char kWinogradInput[] = ".v";       // v
inline constexpr char kWinogradProduct[] = ".m";     // M
inline constexpr char kWinogradRows[] = ".z";        // A^T M

// A convolution's parts: which of the stage's axes are what, and where they stand in the operands. Filters
// and channels may have several axes, the outermost first: blocks, and the places in them.
struct WinogradShape {
  std::vector<int> batch;           // axes that number images
  int rows, columns;                // axes
  std::vector<int> filters;         // axes
  int window_rows, window_columns;  // reduction axes
  std::vector<int> channels;        // the other reduction axes
  bool image_first;                 // the image is the left factor

  int64_t Filters(const Stage& stage) const;  // how many there are
  int64_t Channels(const Stage& stage) const;
};

// FailedPrecondition, with the reason, unless `stage` is a sum over a 3 x 3 window and channels of
// image[.., i + r, j + s, .., c] * filter[k, c, r, s] in f32 or f64, each operand's dimensions in any order
// and its elements of that type, or of fewer than 32 bits and widened to it.
absl::StatusOr<WinogradShape> WinogradShapeOf(const Stage& stage);

// The element of the image, and the tensor of the filters.
const Expr& ImageOf(const Stage& stage, const WinogradShape& shape);
const Buffer& FilterOf(const Stage& stage, const WinogradShape& shape);

// A bound of F(m x m)'s error over `channels` channels, in units of roundoff of the largest output.
double WinogradError(int m, int64_t channels);

// The stages in the place of `stage`, in order; the last one computes its tensor. REQUIRES: `shape` is the
// stage's; m is 2 or 4.
std::vector<Stage> WinogradStages(const Stage& stage, const WinogradShape& shape, int m);

}  // namespace mycc

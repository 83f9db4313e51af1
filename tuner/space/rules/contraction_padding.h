// Finds multiplications by padding zeros that a convolution can skip: whole window taps, in loops where the
// position at the border is known. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/anatomy.h"

namespace mycc {

// The zeros that a contraction leaves out of its sum.
enum SkippedZeros : int64_t {
  kSkipNone = 0,
  kSkipOuter = 1,  // taps of places that loops outside of the register tile number: rows of the image
  kSkipAll = 2,    // and of the tile's rows: the image is read as it is, and never copied
};

struct ContractionPadding {
  std::vector<int> outer, rows;            // dimensions of the image, by which loops number the places
  double outer_share = 0, row_share = 0;   // of the products: those with zeros
  double copy_share = 0;                   // of the products' time: what the padded copy takes
  bool is_whole = false;                   // no other zeros: the image may be read as it is
  int64_t outer_cases = 1, row_cases = 1;  // inside, and each place or tap that reaches beyond the border

  std::vector<int64_t> Choices() const;
  // Few enough kernels are made of the cases, with `tiles` register tiles beside each other and, with
  // `has_tail`, a narrower one.
  bool Fits(int64_t skip, int64_t tiles, bool has_tail) const;
  int64_t Preferred(int64_t tiles, bool has_tail) const;
};

// The padding of a product over the operand, which stage `pad` computes and nothing else reads; `tile_row`
// (-1: none) and `lane` are the axes inside of the register tile, which has `lanes` lanes.
ContractionPadding FindPadding(const Stage& product, const Operand& image, const Stage& pad, int tile_row,
                               int lane, int64_t lanes);

}  // namespace mycc

// The addresses in shared memory from which the lanes of a warp load an operand of mma.sync, as code. They
// follow from the layout of the instruction's operand. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/target/instructions.h"

namespace mycc {

// The elements of 16 rows of a, or of the columns of two instructions beside each other, and of one
// instruction's depth. Coordinates are (other, depth), `other` the row of a or the column of b. The running
// lane's number is written `lane`.
class WarpOperand {
 public:
  WarpOperand(const Instruction& row, bool is_a);

  // Registers of a lane.
  int64_t count() const;
  // The coordinates of register `i` of the lane.
  std::string Other(const char* i) const { return OfRegister(i, &Fragment::Step::row); }
  std::string Depth(const char* i) const { return OfRegister(i, &Fragment::Step::column); }
  // The lane's row of the matrices that ldmatrix loads, each matrix a register of all lanes: its first
  // element. The 8 rows of 16 bytes run along the depth, or, transposed, along the other dimension.
  std::string OtherOfMatrix(bool transposed) const { return OfMatrix(&Fragment::Step::row, !transposed); }
  std::string DepthOfMatrix(bool transposed) const { return OfMatrix(&Fragment::Step::column, transposed); }

 private:
  std::string OfRegister(const char* i, int64_t Fragment::Step::*along) const;
  std::string OfMatrix(int64_t Fragment::Step::*along, bool has_rows) const;

  std::vector<Fragment::Step> threads_, registers_;  // the row is the other coordinate, the column the depth
};

}  // namespace mycc

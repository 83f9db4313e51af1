#include "codegen/cuda/warp_operand.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

constexpr int64_t kLanes = 32, kRowsOfMatrix = 8;

// A coordinate as code: "lane / 16 * 8". `digits` are those of a number of `total` values, with their strides
// in the coordinate; the slowest comes first.
std::string CoordinateText(const std::string& number, const std::vector<Mode>& digits, int64_t total) {
  const std::vector<Mode> modes = Layout{{digits}, {}}.Coalesced().dims[0];
  std::vector<std::string> terms;
  int64_t distance = 1;
  for (auto mode = modes.rbegin(); mode != modes.rend(); distance *= mode++->extent) {
    if (mode->stride == 0) continue;
    terms.push_back(absl::StrCat(number, distance == 1 ? "" : absl::StrCat(" / ", distance),
                                 distance * mode->extent == total ? "" : absl::StrCat(" % ", mode->extent),
                                 mode->stride == 1 ? "" : absl::StrCat(" * ", mode->stride)));
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

std::vector<Mode> DigitsOf(const std::vector<Fragment::Step>& steps, int64_t Fragment::Step::*along) {
  std::vector<Mode> digits;
  for (const Fragment::Step& step : steps) digits.push_back({step.extent, step.*along});
  return digits;
}

}  // namespace

WarpOperand::WarpOperand(const Instruction& row, bool is_a) {
  const Fragment& fragment = is_a ? row.a.fragment : row.b.fragment;
  threads_ = fragment.Steps(0);
  registers_ = fragment.Steps(1);
  if (DTypeBytes(row.operand) < 4) registers_.pop_back();  // a register's own elements
  if (is_a) return;
  registers_.insert(registers_.begin(), {2, 0, row.n});
  for (auto* steps : {&threads_, &registers_}) {
    for (Fragment::Step& step : *steps) std::swap(step.row, step.column);
  }
}

int64_t WarpOperand::count() const {
  int64_t count = 1;
  for (const Fragment::Step& step : registers_) count *= step.extent;
  return count;
}

std::string WarpOperand::OfRegister(const char* i, int64_t Fragment::Step::*along) const {
  const std::string of_register = CoordinateText(i, DigitsOf(registers_, along), count()),
                    of_lane = CoordinateText("lane", DigitsOf(threads_, along), kLanes);
  return of_register == "0" ? of_lane : absl::StrCat(of_register, " + ", of_lane);
}

std::string WarpOperand::OfMatrix(int64_t Fragment::Step::*along, bool has_rows) const {
  std::vector<Mode> digits = DigitsOf(registers_, along);
  digits.push_back({kRowsOfMatrix, has_rows ? 1 : 0});
  return CoordinateText("lane", digits, kLanes);
}

}  // namespace mycc

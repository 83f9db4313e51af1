// docs/language.md states what AccuracyOf says, operation by operation.
#include "codegen/expr/accuracy.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

const std::map<std::string, Op> kNames = {
    {"`+`", Op::kAdd},     {"`-`", Op::kSub},       {"`*`", Op::kMul},     {"`/`", Op::kDiv},
    {"`sqrt`", Op::kSqrt}, {"`floor`", Op::kFloor}, {"`ceil`", Op::kCeil}, {"`round`", Op::kRound},
    {"`abs`", Op::kAbs},   {"`tf32`,", Op::kTF32},  {"casts", Op::kCast},  {"`rsqrt`", Op::kRsqrt},
    {"`exp`", Op::kExp},   {"`log`", Op::kLog},     {"`tanh`", Op::kTanh}, {"`erf`", Op::kErf},
    {"`sin`", Op::kSin},   {"`cos`", Op::kCos},     {"`pow`", Op::kPow},
};

// The rows of the table of the section "Accuracy", as cells.
std::vector<std::vector<std::string>> StatedRows() {
  std::ifstream file(MYCC_SOURCE_ROOT "/docs/language.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) inside = line == "## Accuracy";
    if (!inside || (line.rfind("| `", 0) != 0)) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|', absl::SkipEmpty());
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    rows.push_back(cells);
  }
  return rows;
}

TEST(AccuracyTest, IsWhatTheLanguageStates) {
  std::map<std::string, int> seen;
  for (const std::vector<std::string>& cells : StatedRows()) {
    ASSERT_EQ(cells.size(), 5) << cells[0];
    const std::vector<std::string> names = absl::StrSplit(cells[0], ' ', absl::SkipEmpty());
    for (const std::string& name : names) {
      ASSERT_TRUE(kNames.contains(name)) << name;
      ++seen[name];
      const Op op = kNames.at(name);
      EXPECT_EQ(std::atof(cells[1].c_str()), AccuracyOf(op, DType::kF32).cpu) << name;
      EXPECT_EQ(std::atof(cells[2].c_str()), AccuracyOf(op, DType::kF32).cuda) << name;
      EXPECT_EQ(std::atof(cells[3].c_str()), AccuracyOf(op, DType::kF64).any()) << name;
      for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2})
        EXPECT_EQ(std::atof(cells[4].c_str()), AccuracyOf(op, dtype).any()) << name;
    }
  }
  EXPECT_EQ(seen.size(), kNames.size());
}

TEST(AccuracyTest, UnitsInTheLastPlace) {
  EXPECT_EQ(UnitInLastPlace(DType::kF32, 1), 0x1p-23);
  EXPECT_EQ(UnitInLastPlace(DType::kF32, 0.999), 0x1p-24);
  EXPECT_EQ(UnitInLastPlace(DType::kF32, 0), 0x1p-149);
  EXPECT_EQ(UnitInLastPlace(DType::kF32, 0x1p130), 0x1p107);
  EXPECT_EQ(UnitInLastPlace(DType::kF16, 1e-6), 0x1p-24);
  EXPECT_EQ(UnitInLastPlace(DType::kF8E4M3, 448), 32);
}

}  // namespace
}  // namespace mycc

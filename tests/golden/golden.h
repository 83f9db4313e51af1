// Golden files: texts under tests/golden that a test's output must equal. MYCC_UPDATE_GOLDEN=1 rewrites them
// instead of comparing.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace mycc {

// EXPECT_TRUE(MatchesGolden("ir/naive_gemm", text)): compares with tests/golden/ir/naive_gemm.txt; the
// failure shows the first lines that differ. REQUIRES: the environment's MYCC_SOURCE_DIR, which ctest sets;
// by hand, the current folder is the repository's root.
testing::AssertionResult MatchesGolden(const std::string& name, const std::string& text);

}  // namespace mycc

// The comparison with golden files: equal, different, missing, updated.
#include "tests/golden/golden.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mycc {
namespace {

using testing::HasSubstr;

// Runs over a source tree of its own.
class GoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / "golden_test";
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    setenv("MYCC_SOURCE_DIR", root_.c_str(), 1);
    unsetenv("MYCC_UPDATE_GOLDEN");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path root_;
};

TEST_F(GoldenTest, ComparesWithTheFile) {
  std::filesystem::create_directories(root_ / "tests/golden/area");
  std::ofstream(root_ / "tests/golden/area/name.txt") << "one\ntwo\nthree\nfour\n";
  EXPECT_TRUE(MatchesGolden("area/name", "one\ntwo\nthree\nfour\n"));
  const testing::AssertionResult changed = MatchesGolden("area/name", "one\ntwo\n3\nfour\n");
  EXPECT_FALSE(changed);
  EXPECT_THAT(changed.message(), HasSubstr("differs from line 3 on"));
  EXPECT_THAT(changed.message(), HasSubstr("  one\n  two\n- three\n+ 3\n"));
  EXPECT_FALSE(MatchesGolden("area/name", "one\ntwo\nthree\nfour"));
  EXPECT_FALSE(MatchesGolden("area/name", ""));
}

TEST_F(GoldenTest, AMissingFileFails) {
  const testing::AssertionResult missing = MatchesGolden("area/name", "text");
  EXPECT_FALSE(missing);
  EXPECT_THAT(missing.message(), HasSubstr("MYCC_UPDATE_GOLDEN=1 writes it"));
}

TEST_F(GoldenTest, UpdatingWritesTheFile) {
  setenv("MYCC_UPDATE_GOLDEN", "1", 1);
  EXPECT_TRUE(MatchesGolden("area/name", "text\n"));
  unsetenv("MYCC_UPDATE_GOLDEN");
  EXPECT_TRUE(MatchesGolden("area/name", "text\n"));
  EXPECT_FALSE(MatchesGolden("area/name", "other\n"));
}

}  // namespace
}  // namespace mycc

// Which builds are found again, and which are not.
#include "worker/kept_builds.h"

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

class KeptBuildsTest : public ::testing::Test {
 protected:
  v1::BuildRequest Candidate(const std::string& trace) const {
    v1::BuildRequest candidate;
    candidate.set_workload("workload");
    candidate.set_target("target");
    candidate.set_trace(trace);
    candidate.set_directory(folder_.path());
    return candidate;
  }
  // A build of a candidate whose library has these bytes.
  BuildOutcome Built(const std::string& bytes) {
    BuildOutcome outcome;
    outcome.seconds = 0.5;
    outcome.built.set_code_digest(absl::StrCat("digest of ", bytes));
    outcome.built.mutable_resources()->set_registers_per_thread(40);
    outcome.built.set_library(absl::StrCat(folder_.path(), "/built-", builds_++, ".so"));
    EXPECT_TRUE(WriteFileAtomically(outcome.built.library(), bytes).ok());
    return outcome;
  }
  void Measure(const std::string& trace, const std::string& bytes, bool good = true) {
    const BuildOutcome built = Built(bytes);
    kept_.Measured(Candidate(trace), "", built, good);
    std::filesystem::remove(built.built.library());
  }
  // The bytes of the library that is found; "" where none is.
  std::string Found(const std::string& trace) {
    const std::optional<BuildOutcome> found = kept_.Find(Candidate(trace));
    return found ? ReadFile(found->built.library()).value() : "";
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  int builds_ = 0;
  KeptBuilds kept_{folder_.path(), {.builds = 3, .bytes = 100}};
};

TEST_F(KeptBuildsTest, WhatWasMeasuredIsFoundByteForByte) {
  const std::string bytes("\177ELF\0\n\r\xff", 8);
  EXPECT_FALSE(kept_.Find(Candidate("a")));
  Measure("a", bytes);
  std::set<std::string> files;
  for (int use = 0; use < 3; ++use) {
    const std::optional<BuildOutcome> found = kept_.Find(Candidate("a"));
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->ok());
    EXPECT_EQ(found->seconds, 0.5);
    EXPECT_EQ(found->built.code_digest(), absl::StrCat("digest of ", bytes));
    EXPECT_EQ(found->built.resources().registers_per_thread(), 40u);
    EXPECT_EQ(ReadFile(found->built.library()).value(), bytes);
    EXPECT_EQ(std::filesystem::path(found->built.library()).parent_path(), folder_.path());
    files.insert(found->built.library());
    // A candidate may overwrite its own file alone.
    EXPECT_TRUE(WriteFileAtomically(found->built.library(), "overwritten").ok());
  }
  EXPECT_EQ(files.size(), 3u);
}

TEST_F(KeptBuildsTest, AllThatMakesTheCodeHasToBeEqual) {
  Measure("a", "bytes");
  kept_.Measured(Candidate("b"), "fetched", Built("linked"), /*good=*/true);
  v1::BuildRequest other = Candidate("a");
  other.set_directory("/elsewhere");
  EXPECT_TRUE(kept_.Find(other)) << "the folder does not change the code";
  other.set_workload("another");
  EXPECT_FALSE(kept_.Find(other));
  other = Candidate("a");
  other.set_target("another");
  EXPECT_FALSE(kept_.Find(other));
  EXPECT_FALSE(kept_.Find(Candidate("c")));
  EXPECT_FALSE(kept_.Find(Candidate("a"), "fetched"));
  EXPECT_FALSE(kept_.Find(Candidate("b")));
  EXPECT_TRUE(kept_.Find(Candidate("b"), "fetched"));
}

TEST_F(KeptBuildsTest, NothingIsKeptAfterAFailure) {
  Measure("a", "bytes", /*good=*/false);
  EXPECT_EQ(Found("a"), "");
  BuildOutcome failed = Built("half");
  failed.ending = {v1::MEASURE_STATUS_BUILD_ERROR, "it does not link"};
  kept_.Measured(Candidate("a"), "", failed, /*good=*/true);
  EXPECT_EQ(Found("a"), "");
  Measure("a", "bytes");
  EXPECT_EQ(Found("a"), "bytes");
  Measure("a", "bytes", /*good=*/false);
  EXPECT_EQ(Found("a"), "") << "a candidate that fails later is built anew";
}

TEST_F(KeptBuildsTest, WhatWasUsedLongestAgoMakesRoom) {
  for (const char* trace : {"a", "b", "c"}) Measure(trace, trace);
  EXPECT_EQ(Found("a"), "a");
  Measure("d", "d");
  EXPECT_EQ(Found("b"), "");
  EXPECT_EQ(Found("a"), "a");
  EXPECT_EQ(Found("c"), "c");
  Measure("large", std::string(99, 'x'));
  EXPECT_EQ(Found("large"), std::string(99, 'x'));
  EXPECT_EQ(Found("a"), "");
  EXPECT_EQ(Found("c"), "c");
  Measure("too large", std::string(101, 'x'));
  EXPECT_EQ(Found("too large"), "");
  EXPECT_EQ(Found("c"), "c");
}

TEST_F(KeptBuildsTest, WhereNoFileCanBeWrittenItIsBuilt) {
  KeptBuilds kept(folder_.path() + "/gone");
  kept.Measured(Candidate("a"), "", Built("bytes"), /*good=*/true);
  EXPECT_FALSE(kept.Find(Candidate("a")));
  ASSERT_TRUE(std::filesystem::create_directory(folder_.path() + "/gone"));
  EXPECT_TRUE(kept.Find(Candidate("a")));
}

}  // namespace
}  // namespace mycc

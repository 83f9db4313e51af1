// Artifacts of build-only workers: found again after a restart, bounded, and never returned damaged.
#include "server/artifact_store.h"

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/sha256.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

constexpr int64_t kPlenty = 1 << 20;

class ArtifactStoreTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder() + "/" + name; }
  std::string folder() const { return temporary_.path() + "/log.artifacts"; }
  static std::string Candidate(const std::string& trace) {
    return ArtifactStore::CandidateOf("w", "t", trace);
  }

  const TemporaryFolder temporary_ = TemporaryFolder::Create().value();
};

TEST_F(ArtifactStoreTest, KeepsBytesByTheirDigest) {
  ArtifactStore store(folder(), kPlenty);
  ASSERT_TRUE(store.Open().ok());
  EXPECT_FALSE(std::filesystem::exists(folder())) << "nothing is made before it is needed";
  EXPECT_EQ(store.Find(Candidate("a")), "");
  const std::string digest = store.Put(Candidate("a"), "bytes").value();
  EXPECT_EQ(digest, Sha256Hex("bytes"));
  EXPECT_EQ(store.Find(Candidate("a")), digest);
  EXPECT_EQ(store.Get(digest).value(), "bytes");
  EXPECT_TRUE(absl::IsNotFound(store.Get(std::string(64, '0')).status()));
  EXPECT_TRUE(absl::IsNotFound(store.Get("../secret").status()));
}

TEST_F(ArtifactStoreTest, EqualBytesOfTwoCandidatesAreOneFile) {
  ArtifactStore store(folder(), kPlenty);
  EXPECT_EQ(store.Put(Candidate("a"), "bytes").value(), store.Put(Candidate("b"), "bytes").value());
  EXPECT_EQ(store.bytes(), 5);
  store.Forget(Candidate("a"));
  EXPECT_EQ(store.Find(Candidate("b")), "") << "the same bytes are no better under another name";
}

TEST_F(ArtifactStoreTest, AnotherBuildOfACandidateTakesThePlaceOfTheFirst) {
  ArtifactStore store(folder(), kPlenty);
  ASSERT_TRUE(store.Put(Candidate("a"), "first").ok());
  const std::string second = store.Put(Candidate("a"), "second").value();
  EXPECT_EQ(store.Find(Candidate("a")), second);
  ArtifactStore next(folder(), kPlenty);
  ASSERT_TRUE(next.Open().ok());
  EXPECT_EQ(next.Find(Candidate("a")), second);
  next.Forget(Candidate("a"));
  EXPECT_EQ(next.Find(Candidate("a")), "");
}

TEST_F(ArtifactStoreTest, SurvivesARestartAndALineThatIsCutShort) {
  {
    ArtifactStore store(folder(), kPlenty);
    ASSERT_TRUE(store.Put(Candidate("a"), "first").ok());
    ASSERT_TRUE(store.Put(Candidate("b"), "second").ok());
  }
  {
    std::ofstream index(Path("index"), std::ios::app);
    index << Candidate("c") << " 12";
  }
  ArtifactStore store(folder(), kPlenty);
  ASSERT_TRUE(store.Open().ok());
  EXPECT_EQ(store.Get(store.Find(Candidate("a"))).value(), "first");
  EXPECT_EQ(store.Get(store.Find(Candidate("b"))).value(), "second");
  EXPECT_EQ(store.Find(Candidate("c")), "");
  EXPECT_EQ(store.bytes(), 11);
}

TEST_F(ArtifactStoreTest, ALineThatIsCutShortCostsNoLaterOnes) {
  ArtifactStore store(folder(), kPlenty);
  ASSERT_TRUE(store.Put(Candidate("a"), "first").ok());
  std::ofstream(Path("index"), std::ios::app) << Candidate("b") << " 0123";
  for (const char* trace : {"c", "d", "e"}) ASSERT_TRUE(store.Put(Candidate(trace), trace).ok());
  ArtifactStore next(folder(), kPlenty);
  ASSERT_TRUE(next.Open().ok());
  EXPECT_EQ(next.Find(Candidate("a")), Sha256Hex("first"));
  EXPECT_EQ(next.Find(Candidate("d")), Sha256Hex("d"));
  EXPECT_EQ(next.Find(Candidate("e")), Sha256Hex("e"));
}

TEST_F(ArtifactStoreTest, ADamagedFileIsNotReturnedAndGoes) {
  ArtifactStore store(folder(), kPlenty);
  const std::string digest = store.Put(Candidate("a"), "bytes").value();
  ASSERT_TRUE(WriteFileAtomically(Path(digest), "other").ok());
  EXPECT_TRUE(absl::IsNotFound(store.Get(digest).status()));
  EXPECT_EQ(store.Find(Candidate("a")), "");
  EXPECT_FALSE(std::filesystem::exists(Path(digest)));
  EXPECT_EQ(store.bytes(), 0);
}

TEST_F(ArtifactStoreTest, WhatWasUsedLongestAgoGoesFirst) {
  ArtifactStore store(folder(), 300);
  const std::string first = store.Put(Candidate("a"), std::string(100, 'a')).value();
  ASSERT_TRUE(store.Put(Candidate("b"), std::string(100, 'b')).ok());
  ASSERT_TRUE(store.Put(Candidate("c"), std::string(100, 'c')).ok());
  ASSERT_TRUE(store.Get(first).ok());
  ASSERT_TRUE(store.Put(Candidate("d"), std::string(100, 'd')).ok());
  EXPECT_EQ(store.Find(Candidate("b")), "");
  EXPECT_EQ(store.Find(Candidate("a")), first);
  EXPECT_EQ(store.bytes(), 300);
  EXPECT_FALSE(std::filesystem::exists(Path(Sha256Hex(std::string(100, 'b')))));
  ArtifactStore smaller(folder(), 150);
  ASSERT_TRUE(smaller.Open().ok());
  EXPECT_EQ(smaller.bytes(), 100);
  EXPECT_NE(smaller.Find(Candidate("d")), "") << "it was used last";
}

// A server that runs for months builds millions of candidates, and has a few thousand of them.
TEST_F(ArtifactStoreTest, TheIndexIsBoundedByWhatIsKept) {
  ArtifactStore store(folder(), 40);
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(store.Put(Candidate(std::to_string(i)), std::to_string(1000 + i)).ok());
  EXPECT_LT(std::filesystem::file_size(Path("index")), 300'000u) << "5000 lines are 650,000 bytes";
  ArtifactStore next(folder(), kPlenty);
  ASSERT_TRUE(next.Open().ok());
  for (int i = 291; i < 300; ++i) EXPECT_NE(next.Find(Candidate(std::to_string(i))), "") << i;
}

// A full disk cuts a line short, and the next one is appended to it.
TEST_F(ArtifactStoreTest, ATornLineOfTheIndexCostsNoOthers) {
  std::string digest;
  {
    ArtifactStore store(folder(), kPlenty);
    ASSERT_TRUE(store.Put(Candidate("a"), "a").ok());
    std::ofstream(Path("index"), std::ios::app) << Candidate("torn") << " 0123";
    ASSERT_TRUE(store.Put(Candidate("b"), "b").ok());
    digest = store.Put(Candidate("c"), "c").value();
  }
  ArtifactStore next(folder(), kPlenty);
  ASSERT_TRUE(next.Open().ok());
  EXPECT_EQ(next.Find(Candidate("c")), digest);
}

TEST_F(ArtifactStoreTest, AFolderThatCannotBeMadeIsAnErrorOfPut) {
  ASSERT_TRUE(WriteFileAtomically(folder(), "a file").ok());
  ArtifactStore store(folder(), kPlenty);
  ASSERT_TRUE(store.Open().ok());
  EXPECT_FALSE(store.Put(Candidate("a"), "bytes").ok());
  EXPECT_EQ(store.Find(Candidate("a")), "");
}

}  // namespace
}  // namespace mycc

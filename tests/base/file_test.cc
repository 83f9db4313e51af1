// Whole files: written bytes are read back, failures name the file, and nothing half-written is left behind.
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "base/temporary_folder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  int NumFiles() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_->path()), {}));
  }

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
  const std::string path_ = folder_->path() + "/file";
};

TEST_F(FileTest, RoundTrips) {
  std::string bytes(200000, 'x');
  bytes[5] = '\0';
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  EXPECT_EQ(ReadFile(path_).value(), bytes);
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(ReadFile(path_).value(), "");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FileTest, OnlyExecutablesAreExecutable) {
  struct stat info;
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & S_IXUSR, 0u);
  ASSERT_TRUE(WriteFileAtomically(path_, "", true).ok());
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IXUSR, 0u);
}

TEST_F(FileTest, MissingFileAndMissingFolder) {
  const absl::Status read = ReadFile(path_).status();
  EXPECT_TRUE(absl::IsNotFound(read));
  EXPECT_THAT(std::string(read.message()), HasSubstr(path_));
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically(path_ + "/nowhere/x", "")));
}

TEST_F(FileTest, FolderInPlaceOfAFile) {
  EXPECT_FALSE(ReadFile(folder_->path()).ok());
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  EXPECT_FALSE(WriteFileAtomically(path_, "text").ok());
  EXPECT_EQ(NumFiles(), 1);
}

// A limit on the size of files stands for a full disk: the write stops short.
absl::Status WithoutSpace(const std::function<absl::Status()>& write) {
  rlimit before;
  EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = write();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  return status;
}

TEST_F(FileTest, NoSpaceLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  const absl::Status status =
      WithoutSpace([&] { return WriteFileAtomically(path_, std::string(5000, 'n')); });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReadFile(path_).value(), "old");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FileTest, FilesThatBelongTogetherStayTogether) {
  const std::string other = path_ + ".so", large(5000, 'n');
  ASSERT_TRUE(WriteFilesAtomically({{path_, "old"}, {other, "old too", true}}).ok());
  const absl::Status status = WithoutSpace([&] {
    return WriteFilesAtomically({{path_, "new"}, {other, large, true}});
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(other));
  EXPECT_EQ(ReadFile(path_).value(), "old");
  EXPECT_EQ(ReadFile(other).value(), "old too");
  EXPECT_EQ(NumFiles(), 2);
  ASSERT_TRUE(WriteFilesAtomically({{path_, "new"}, {other, "new too"}}).ok());
  EXPECT_EQ(ReadFile(path_).value() + ReadFile(other).value(), "newnew too");
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(FileTest, NoMoreIsReadThanAFileMayHold) {
  ASSERT_TRUE(WriteFileAtomically(path_, "1234567").ok());
  EXPECT_EQ(ReadFile(path_, 7).value(), "1234567");
  const absl::Status more = ReadFile(path_, 6).status();
  EXPECT_TRUE(absl::IsInvalidArgument(more));
  EXPECT_THAT(std::string(more.message()), HasSubstr(path_ + "` is too large; expected at most 6 bytes"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile("/dev/zero", 1 << 20).status()));
  std::filesystem::resize_file(path_, uint64_t{3} << 30);  // a hole, which takes no space
  EXPECT_THAT(std::string(ReadFile(path_, kMostSourceBytes).status().message()), HasSubstr("at most 64 MiB"));
  EXPECT_EQ(ReadBeginning(path_, 8).value(), std::string("1234567\0", 8));
  EXPECT_EQ(ReadBeginning("/dev/zero", 3).value(), std::string(3, '\0'));
}

TEST_F(FileTest, ATextMayBeginWithAByteOrderMark) {
  ASSERT_TRUE(WriteFileAtomically(path_, "\xef\xbb\xbftext \xef\xbb\xbf").ok());
  EXPECT_EQ(ReadText(path_, 100).value(), "text \xef\xbb\xbf");
}

TEST(TemporaryFolderTest, GoesWithEverythingInIt) {
  std::string path;
  {
    absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder.ok()) << folder.status();
    const TemporaryFolder moved = *std::move(folder);
    path = moved.path();
    ASSERT_TRUE(WriteFileAtomically(path + "/file", "text").ok());
    ASSERT_TRUE(std::filesystem::create_directory(path + "/folder"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolderTest, PlaceThatIsNotThere) {
  const char* const before = getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/folder", 1);
  const absl::Status status = TemporaryFolder::Create().status();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", saved.c_str(), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace mycc

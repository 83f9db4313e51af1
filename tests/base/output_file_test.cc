// Output goes where it was asked: nodes are written to, links are followed, regular files are replaced whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  static absl::Status Write(const std::string& path, const std::string& text) {
    absl::StatusOr<OutputFile> file = OutputFile::Open(path);
    if (!file.ok()) return file.status();
    file->stream() << text;
    return file->Commit();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  using Are = std::vector<std::string>;

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(OutputFileTest, ARegularFileIsReplacedWhenTheNewOneIsComplete) {
  ASSERT_TRUE(Write(Path("file"), "old").ok());
  absl::StatusOr<OutputFile> file = OutputFile::Open(Path("file"));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string written(200000, 'n');
  file->stream() << written;
  EXPECT_EQ(ReadFile(Path("file")).value(), "old");
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadFile(Path("file")).value(), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(Path("file")).value(), written);
  EXPECT_EQ(Names(), Are{"file"});
}

TEST_F(OutputFileTest, WhatIsNotCommittedLeavesNothing) {
  ASSERT_TRUE(OutputFile::Open(Path("file")).ok());
  EXPECT_EQ(Names(), Are{});
  std::filesystem::create_directory(Path("folder"));
  EXPECT_THAT(std::string(Write(Path("folder"), "x").message()), HasSubstr("Is a directory"));
  EXPECT_FALSE(Write(Path("no/file"), "x").ok());
  EXPECT_EQ(Names(), Are{"folder"});
}

TEST_F(OutputFileTest, TwoWritersOfOnePathDoNotMix) {
  absl::StatusOr<OutputFile> first = OutputFile::Open(Path("file")), second = OutputFile::Open(Path("file"));
  ASSERT_TRUE(first.ok() && second.ok());
  first->stream() << "first";
  second->stream() << "the second";
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(ReadFile(Path("file")).value(), "first");
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(ReadFile(Path("file")).value(), "the second");
  EXPECT_EQ(Names(), Are{"file"});
}

TEST_F(OutputFileTest, LinksAreFollowedAndStay) {
  std::filesystem::create_directory(Path("elsewhere"));
  std::filesystem::create_symlink("elsewhere/file", Path("relative"));
  std::filesystem::create_symlink(Path("relative"), Path("chain"));
  ASSERT_TRUE(Write(Path("chain"), "made").ok());
  EXPECT_EQ(ReadFile(Path("elsewhere/file")).value(), "made");
  ASSERT_TRUE(Write(Path("chain"), "replaced").ok());
  EXPECT_EQ(ReadFile(Path("elsewhere/file")).value(), "replaced");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("chain")) && std::filesystem::is_symlink(Path("relative")));
  EXPECT_EQ(Names(), (Are{"chain", "elsewhere", "relative"}));
  std::filesystem::create_symlink("b", Path("a"));
  std::filesystem::create_symlink("a", Path("b"));
  EXPECT_FALSE(Write(Path("a"), "x").ok());
}

TEST_F(OutputFileTest, DevicesAreWrittenTo) {
  std::filesystem::create_symlink("/dev/null", Path("link"));
  for (const std::string& path : {std::string("/dev/null"), Path("link")}) {
    ASSERT_TRUE(Write(path, "text").ok());
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_TRUE(S_ISCHR(info.st_mode));
  }
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  const absl::Status full = Write("/dev/full", "text");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("cannot write `/dev/full`: No space left"));
}

TEST_F(OutputFileTest, AFifoIsWrittenTo) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const int reader = open(Path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(Write(Path("fifo"), "text").ok());
  char text[8] = "";
  EXPECT_EQ(read(reader, text, sizeof(text)), 4);
  EXPECT_EQ(std::string(text), "text");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(Path("fifo")));
  EXPECT_EQ(Names(), Are{"fifo"});
}

// Also where it is a regular file, which is then not replaced: the shell has it open.
TEST_F(OutputFileTest, TheStandardOutputIsWrittenToWhereItStands) {
  const int saved = dup(STDOUT_FILENO);
  const int file = open(Path("out").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
  absl::Status status;
  for (const char* path : {"/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"}) {
    status.Update(Write(path, "a "));
    status.Update(write(STDOUT_FILENO, "b ", 2) == 2 ? absl::OkStatus() : absl::UnknownError("write"));
  }
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(file);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadFile(Path("out")).value(), "a b a b a b ");
  EXPECT_EQ(Names(), Are{"out"});
}

TEST_F(OutputFileTest, NamesOfTheStandardOutput) {
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    EXPECT_TRUE(IsStandardOutput(name));
  for (const char* name : {"", "./-", "/dev/null", "/dev/stderr", "/dev/fd/2", "1"})
    EXPECT_FALSE(IsStandardOutput(name)) << name;
}

}  // namespace
}  // namespace mycc

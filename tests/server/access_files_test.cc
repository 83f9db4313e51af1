// The files of callers and certificates, which are read again while others ask for callers.
#include "server/access_files.h"

#include <atomic>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/sha256.h"
#include "base/temporary_folder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class AccessFilesTest : public ::testing::Test {
 protected:
  AccessFilesTest() : folder_(TemporaryFolder::Create().value()), path_(folder_.path() + "/access.json") {
    Write("sesame");
  }

  void Write(const std::string& token) {
    AccessList list;
    Principal ann;
    ann.name = "ann";
    ann.roles = {Role::kRead};
    ann.tokens = {{Sha256Hex(token)}};
    ASSERT_TRUE(list.Add(ann).ok());
    ASSERT_TRUE(WriteFileAtomically(path_, list.Print()).ok());
  }
  static Shown Token(const std::string& token) { return {.token_sha256 = Sha256Hex(token)}; }

  const TemporaryFolder folder_;
  const std::string path_;
  std::vector<std::string> said_;
};

TEST_F(AccessFilesTest, ChangesAreSeenAndSaid) {
  auto files =
      AccessFiles::Open({.access_file = path_}, [this](const std::string& line) { said_.push_back(line); });
  ASSERT_TRUE(files.ok()) << files.status();
  const uint64_t version = (*files)->version();
  EXPECT_FALSE((*files)->Refresh());
  Write("other");
  EXPECT_TRUE((*files)->CallerOf(Token("sesame"), 0).ok()) << "before it looks";
  EXPECT_TRUE((*files)->Refresh());
  EXPECT_GT((*files)->version(), version);
  EXPECT_FALSE((*files)->CallerOf(Token("sesame"), 0).ok());
  EXPECT_EQ((*files)->CallerOf(Token("other"), 0)->name, "ann");
  EXPECT_EQ(said_, std::vector<std::string>{"read " + path_ + " again"});
}

TEST_F(AccessFilesTest, AFileThatIsGoneLeavesTheCallers) {
  auto files =
      AccessFiles::Open({.access_file = path_}, [this](const std::string& line) { said_.push_back(line); });
  ASSERT_TRUE(files.ok()) << files.status();
  std::remove(path_.c_str());
  EXPECT_FALSE((*files)->Refresh());
  EXPECT_FALSE((*files)->Refresh());
  EXPECT_TRUE((*files)->CallerOf(Token("sesame"), 0).ok());
  ASSERT_EQ(said_.size(), 1u) << "once";
  EXPECT_THAT(said_[0], HasSubstr("the callers stay as they were: cannot open"));
}

TEST_F(AccessFilesTest, OneTokenIsEverybodys) {
  std::ofstream(folder_.path() + "/token") << "sesame\n";
  const auto files = AccessFiles::Open({.token_file = folder_.path() + "/token"}, nullptr);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto caller = (*files)->CallerOf(Token("sesame"), 0);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->name, "") << "many share it";
  EXPECT_TRUE(caller->roles.Allow(Role::kAdmin));
  EXPECT_EQ((*files)->CallerOf({}, 0).status().message(),
            "the token is missing or wrong; expected --token-file");
}

TEST_F(AccessFilesTest, ManyAskWhileTheFilesChange) {
  auto files = AccessFiles::Open({.access_file = path_}, nullptr);
  ASSERT_TRUE(files.ok()) << files.status();
  std::atomic<bool> stop = false;
  std::atomic<int> changes = 0;
  (*files)->Watch([&changes] { ++changes; });
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      while (!stop) {
        const bool is_first = (*files)->CallerOf(Token("sesame"), 0).ok();
        const bool is_second = (*files)->CallerOf(Token("other"), 0).ok();
        EXPECT_TRUE(is_first || is_second || (*files)->version() > 1);
        (void)(*files)->tls();
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    Write(i % 2 == 0 ? "other" : "sesame");
    EXPECT_TRUE((*files)->Refresh());
  }
  stop = true;
  for (std::thread& asker : askers) asker.join();
}

}  // namespace
}  // namespace mycc

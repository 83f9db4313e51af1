// The worker's scratch folders: a worker keeps its own while others start, and the next one removes what a
// killed worker left.
#include "worker/scratch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"

namespace mycc {
namespace {

class ScratchFolderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(setenv("TMPDIR", parent_.path().c_str(), 1), 0); }
  void TearDown() override { ASSERT_EQ(unsetenv("TMPDIR"), 0); }

  const TemporaryFolder parent_ = *TemporaryFolder::Create();
};

TEST_F(ScratchFolderTest, TheNextWorkerRemovesLeftovers) {
  const std::filesystem::path left = std::filesystem::path(parent_.path()) / "mycc-worker-killed";
  std::filesystem::create_directory(left);
  std::ofstream(left / "lock").flush();
  const auto folder = ScratchFolder::Create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(std::filesystem::exists(folder->path()));
  EXPECT_FALSE(std::filesystem::exists(left));
}

// Each start looks for leftovers while the others' folders are made and not yet locked.
TEST_F(ScratchFolderTest, WorkersThatStartTogetherKeepTheirFolders) {
  std::atomic<int> lost = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&lost] {
      for (int start = 0; start < 200; ++start) {
        const auto folder = ScratchFolder::Create();
        if (!folder.ok() || !std::filesystem::exists(folder->path() + "/lock")) ++lost;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(std::filesystem::is_empty(parent_.path()));
}

}  // namespace
}  // namespace mycc

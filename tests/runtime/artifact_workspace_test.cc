// Workspaces under overlapping calls and growing teams, the check of the CPU, and the thread's error text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/runtime/artifact_tables.h"

extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

// An allocation that cannot be is answered with NULL, as by libc, where AddressSanitizer would end the
// program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace mycc {
namespace {

using ::testing::HasSubstr;

const MyccEntry& Scale() { return mycc_module.entries[kScale]; }

MyccWorkspace Take() {
  MyccWorkspace workspace;
  EXPECT_EQ(MyccTakeWorkspace(&Scale(), &workspace), 0) << MyccLastError();
  return workspace;
}

// Runs first: once the machine has been found good, it stays so.
TEST(ArtifactCpuTest, MissingFeatureIsNamedBeforeAnyCodeRuns) {
  cpu_need = {"telepathy", 1, 0, 0, 31, 0};  // a reserved bit
  bool ran = false;
  on_scale = [&](void* const*, uint8_t*, uint8_t*) { ran = true; };
  DLTensor* args[4] = {};
  EXPECT_NE(MyccCall(&Scale(), args, 4), 0);
  EXPECT_STREQ(MyccLastError(), "m: compiled for `v1 cpu mcpu=test`, but this machine lacks telepathy");
  EXPECT_NE(MyccPrepare(0), 0);
  cpu_need = {"state that no system saves", 1, 0, 3, 26, int64_t{1} << 62};
  EXPECT_NE(MyccPrepare(0), 0);
  cpu_need = {"a leaf from the future", 0x7fffffff, 0, 0, 0, 0};
  EXPECT_NE(MyccPrepare(0), 0);
  cpu_need = {"sse2", 1, 0, 3, 26, 0};
  EXPECT_EQ(MyccPrepare(0), 0) << MyccLastError();
  EXPECT_FALSE(ran);
  on_scale = nullptr;
}

TEST(ArtifactWorkspaceTest, IsAlignedAndHoldsEveryThread) {
  MyccWorkspace workspace = Take();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.shared) % kMyccPackedAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.threads) % kMyccPackedAlignment, 0u);
  EXPECT_GE(workspace.threads - workspace.shared, 100);
  // An overrun would be found by AddressSanitizer.
  std::memset(workspace.shared, 1, 100);
  std::memset(workspace.threads, 2, 40 * omp_get_max_threads());
  MyccPutWorkspace(&Scale(), &workspace);
}

TEST(ArtifactWorkspaceTest, IsReused) {
  MyccWorkspace first = Take();
  MyccPutWorkspace(&Scale(), &first);
  MyccWorkspace second = Take();
  EXPECT_EQ(first.block, second.block);
  MyccPutWorkspace(&Scale(), &second);
}

TEST(ArtifactWorkspaceTest, PrepareAllocatesWhatTheFirstCallTakes) {
  ASSERT_EQ(MyccPrepare(0), 0);
  MyccWorkspace workspace = Take();
  MyccWorkspace overlapping = Take();
  EXPECT_NE(workspace.block, overlapping.block);
  MyccPutWorkspace(&Scale(), &workspace);
  MyccPutWorkspace(&Scale(), &overlapping);
}

// Bytes of the workspace's block behind its first cache line, which begins with the size of all of it.
int64_t BytesOf(const MyccWorkspace& workspace) {
  int64_t bytes = 0;
  std::memcpy(&bytes, workspace.block, sizeof(bytes));
  return bytes - kMyccPackedAlignment;
}

TEST(ArtifactWorkspaceTest, GrowsWithTheTeam) {
  const int before = omp_get_max_threads(), more = before + 62;
  // The only block that is free is one of a small team.
  std::vector<MyccWorkspace> others;
  for (int i = 0; i < kMyccPoolSlots; ++i) others.push_back(Take());
  MyccPutWorkspace(&Scale(), &others.back());
  EXPECT_LT(BytesOf(others.back()), 100 + 40 * more);

  omp_set_num_threads(more);
  MyccWorkspace large = Take();
  EXPECT_GE(large.threads - large.shared, 100);
  ASSERT_GE(BytesOf(large) - (large.threads - large.shared), 40 * more);
  std::memset(large.threads, 3, 40 * more);
  MyccPutWorkspace(&Scale(), &large);
  // It serves the small team too.
  omp_set_num_threads(before);
  MyccWorkspace again = Take();
  EXPECT_EQ(again.block, large.block);
  MyccPutWorkspace(&Scale(), &again);
  others.pop_back();
  for (MyccWorkspace& other : others) MyccPutWorkspace(&Scale(), &other);
}

TEST(ArtifactWorkspaceTest, MoreOverlappingCallsThanSlots) {
  std::vector<MyccWorkspace> workspaces;
  std::set<void*> blocks;
  for (int i = 0; i < 2 * kMyccPoolSlots; ++i) {
    workspaces.push_back(Take());
    blocks.insert(workspaces.back().block);
  }
  EXPECT_EQ(blocks.size(), workspaces.size());
  for (MyccWorkspace& workspace : workspaces) MyccPutWorkspace(&Scale(), &workspace);
}

TEST(ArtifactWorkspaceTest, NeverShared) {
  std::vector<std::thread> threads;
  std::vector<int> clashes(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&clashes, t] {
      for (int i = 0; i < 2000; ++i) {
        MyccWorkspace workspace;
        if (MyccTakeWorkspace(&Scale(), &workspace) != 0) ++clashes[t];
        std::memset(workspace.shared, t, 100);
        for (int k = 0; k < 100; ++k) clashes[t] += workspace.shared[k] != t;
        MyccPutWorkspace(&Scale(), &workspace);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, std::vector<int>(4, 0));
}

TEST(ArtifactWorkspaceTest, ImpossibleSizeIsAnError) {
  MyccEntry entry = Scale();
  entry.shared_bytes = int64_t{1} << 60;
  MyccWorkspace workspace;
  EXPECT_NE(MyccTakeWorkspace(&entry, &workspace), 0);
  EXPECT_THAT(MyccLastError(), HasSubstr("m_scale: no memory for a workspace of"));
}

TEST(ArtifactErrorTest, EachThreadHasItsOwnText) {
  MyccFail("mine %d", 1);
  std::thread([] {
    EXPECT_STREQ(MyccLastError(), "");
    MyccFail("another's");
  }).join();
  EXPECT_STREQ(MyccLastError(), "mine 1");
}

TEST(ArtifactErrorTest, LongTextIsCut) {
  EXPECT_EQ(MyccFail("%s", std::string(5000, 'x').c_str()), 1);
  EXPECT_EQ(std::strlen(MyccLastError()), 1023u);
}

}  // namespace
}  // namespace mycc

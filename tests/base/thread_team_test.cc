// Threads that divide calls among them.
#include "base/thread_team.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(ParallelForTest, MakesTheCallsInTurnWithoutThreads) {
  ParallelFor in_turn;
  std::vector<size_t> calls;
  in_turn.Run(5, [&](size_t i) { calls.push_back(i); });
  EXPECT_EQ(calls, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(in_turn.width(), 1);
}

TEST(ThreadTeamTest, MakesEachCallOnceAndReturnsWhenAllHave) {
  ThreadTeam team;
  for (const int threads : {1, 2, 7, 3, 0}) {
    team.SetWidth(threads);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{5}, size_t{400}}) {
      std::vector<int> calls(count, 0);
      team.Run(count, [&](size_t i) { ++calls[i]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
  EXPECT_EQ(team.width(), 1) << "as 1";
}

// Each call waits until as many are under way as there are threads.
TEST(ThreadTeamTest, CallsAreUnderWayTogether) {
  ThreadTeam team(3);
  std::atomic<int> under_way = 0;
  std::vector<std::thread::id> ids(3);
  team.Run(3, [&](size_t i) {
    ids[i] = std::this_thread::get_id();
    ++under_way;
    while (under_way < 3) std::this_thread::yield();
  });
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

TEST(ThreadTeamTest, ANarrowerRunUsesFewerThreads) {
  ThreadTeam team(4);
  team.Run(64, [](size_t) {});
  team.SetWidth(1);
  std::set<std::thread::id> ids;
  team.Run(64, [&](size_t) { ids.insert(std::this_thread::get_id()); });
  EXPECT_EQ(ids, (std::set<std::thread::id>{std::this_thread::get_id()}));
}

#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && !defined(ABSL_HAVE_THREAD_SANITIZER)
// Without address space for a thread's stack, none begins.
TEST(ThreadTeamTest, MakesDoWithTheThreadsThatTheSystemAllows) {
  const auto run_confined = [] {
    const rlimit none{size_t{1} << 20, size_t{1} << 20};
    setrlimit(RLIMIT_AS, &none);
    ThreadTeam team(8);
    int calls = 0;
    team.Run(64, [&](size_t) { ++calls; });
    std::exit(calls == 64 ? 0 : 1);
  };
  EXPECT_EXIT(run_confined(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace mycc

// Sharing of reference kernels while builds end, fail or are lost, as the test says.
#include "worker/references.h"

#include <chrono>
#include <deque>
#include <filesystem>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/scratch.h"

namespace mycc {
namespace {

// Builds wait here until the test ends them.
class Builds {
 public:
  void Start(BuildWork work) {
    const MutexLock lock(&mutex_);
    line_.push_back(std::move(work));
    ++begun_;
    changed_.NotifyAll();
  }
  // Ends the oldest one, once it has begun.
  void EndNext(v1::MeasureStatus status) {
    BuildWork work;
    {
      const MutexLock lock(&mutex_);
      while (line_.empty()) changed_.Wait(&mutex_);
      work = std::move(line_.front());
      line_.pop_front();
    }
    if (!work.is_wanted()) return work.done(std::nullopt);
    BuildOutcome outcome{{status, ""}};
    outcome.built.set_library(work.request.directory() + "/reference.so");
    work.done(outcome);
  }
  int begun() {
    const MutexLock lock(&mutex_);
    return begun_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<BuildWork> line_ ABSL_GUARDED_BY(mutex_);
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(CacheTest, WhatWasUsedLongestAgoGoesFirst) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string path = absl::StrCat(folder.path(), "/", name);
    ASSERT_TRUE(WriteFileAtomically(path, std::string(100, 'x')).ok());
    std::filesystem::last_write_time(path, now - std::chrono::hours(10 + name[0]));
  }
  const auto names = [&folder] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.insert(entry.path().filename());
    return names;
  };
  TrimCache(folder.path(), 400);
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b", "c", "d"}));
  MarkUsed(folder.path() + "/d");  // the oldest until then
  TrimCache(folder.path(), 399);
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b", "d"}));
  TrimCache(folder.path(), 200);
  EXPECT_EQ(names(), (std::set<std::string>{"a", "d"}));
  TrimCache(folder.path(), 0);
  EXPECT_EQ(names(), (std::set<std::string>{"d"}));
  TrimCache(folder.path() + "/none", 0);
}

class ReferencesTest : public ::testing::Test {
 protected:
  std::shared_ptr<Reference> Take(const std::string& workload) {
    v1::BuildRequest request;
    request.set_workload(workload);
    request.set_target("v1 cuda");
    return references_.Take(request);
  }
  v1::MeasureStatus StatusOf(const std::shared_ptr<Reference>& reference) {
    return references_.Await(reference).ending.status;
  }
  size_t Folders() const {
    const std::filesystem::directory_iterator folders(folder_.path());
    return static_cast<size_t>(std::distance(begin(folders), end(folders)));
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Builds builds_;
  References references_{folder_.path(), 2, [this](BuildWork work) { builds_.Start(std::move(work)); }};
};

TEST_F(ReferencesTest, IsBuiltOnceForAllWhoTakeIt) {
  const auto first = Take("w"), second = Take("w");
  EXPECT_EQ(first, second);
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  EXPECT_EQ(StatusOf(first), v1::MEASURE_STATUS_OK);
  EXPECT_EQ(StatusOf(second), v1::MEASURE_STATUS_OK);
  EXPECT_EQ(builds_.begun(), 1);
}

TEST_F(ReferencesTest, WhatFailsFailsForAll) {
  const auto reference = Take("w");
  builds_.EndNext(v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_EQ(StatusOf(reference), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_EQ(StatusOf(Take("w")), v1::MEASURE_STATUS_BUILD_ERROR);
  EXPECT_EQ(builds_.begun(), 1);
}

TEST_F(ReferencesTest, WhatIsLostIsBuiltAgainByWhoeverWaits) {
  const auto reference = Take("w");
  v1::MeasureStatus statuses[2] = {};
  std::vector<std::thread> waiters;
  for (v1::MeasureStatus& status : statuses)
    waiters.emplace_back([this, &reference, &status] { status = StatusOf(reference); });
  builds_.EndNext(v1::MEASURE_STATUS_WORKER_LOST);
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(statuses[0], v1::MEASURE_STATUS_OK);
  EXPECT_EQ(statuses[1], v1::MEASURE_STATUS_OK);
  EXPECT_EQ(builds_.begun(), 2);
}

TEST_F(ReferencesTest, WhoAsksIsToldOnceWhenItIsBuilt) {
  const auto reference = Take("w");
  int told = 0;
  for (int i = 0; i < 2; ++i) references_.WhenBuilt(reference, [&told] { ++told; });
  EXPECT_EQ(told, 0);
  builds_.EndNext(v1::MEASURE_STATUS_WORKER_LOST);
  EXPECT_EQ(told, 2) << "also when the build is lost";
  std::thread waiter([&] { EXPECT_EQ(StatusOf(reference), v1::MEASURE_STATUS_OK); });
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  waiter.join();
  EXPECT_EQ(told, 2);
  references_.WhenBuilt(reference, [&told] { ++told; });
  EXPECT_EQ(told, 3) << "at once";
}

TEST_F(ReferencesTest, NobodyTriesForEver) {
  const auto reference = Take("w");
  builds_.EndNext(v1::MEASURE_STATUS_WORKER_LOST);
  std::thread waiter([&] { EXPECT_EQ(StatusOf(reference), v1::MEASURE_STATUS_WORKER_LOST); });
  builds_.EndNext(v1::MEASURE_STATUS_WORKER_LOST);
  waiter.join();
  EXPECT_EQ(builds_.begun(), 2);
  std::thread next([&] { EXPECT_EQ(StatusOf(reference), v1::MEASURE_STATUS_OK); });
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  next.join();
}

TEST_F(ReferencesTest, TheOldestThatNobodyHoldsIsForgotten) {
  auto held = Take("held"), old = Take("old");
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  old.reset();
  EXPECT_EQ(Folders(), 2u);
  Take("new");
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  EXPECT_EQ(Folders(), 2u) << "the folder of `old` is gone";
  EXPECT_EQ(Take("held"), held);
  EXPECT_EQ(builds_.begun(), 3);
  Take("old");
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  EXPECT_EQ(builds_.begun(), 4);
  EXPECT_EQ(Folders(), 2u);
}

TEST_F(ReferencesTest, NothingIsForgottenWhileItIsHeldOrBuilt) {
  const auto a = Take("a"), b = Take("b");
  Take("c");
  EXPECT_EQ(Folders(), 3u);
  for (int i = 0; i < 3; ++i) builds_.EndNext(v1::MEASURE_STATUS_OK);
  EXPECT_EQ(Take("a"), a);
  EXPECT_EQ(Take("b"), b);
}

TEST_F(ReferencesTest, WhoWaitsWhileAllStopsIsTold) {
  const auto reference = Take("w");
  references_.Stop();
  builds_.EndNext(v1::MEASURE_STATUS_OK);
  EXPECT_EQ(StatusOf(reference), v1::MEASURE_STATUS_WORKER_LOST);
  EXPECT_EQ(builds_.begun(), 1);
}

}  // namespace
}  // namespace mycc

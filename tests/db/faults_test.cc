// The log after kill -9, after a disk that is full, and after a write-ahead log that was cut anywhere.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

// A child process that says a number after each thing it did.
class Child {
 public:
  explicit Child(const std::function<void(const std::function<void(int)>& say)>& body) {
    int ends[2];
    MYCC_CHECK(pipe(ends) == 0);
    pid_ = fork();
    MYCC_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      close(ends[0]);
      body([&](int number) { MYCC_CHECK(write(ends[1], &number, sizeof(number)) == sizeof(number)); });
      _exit(0);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Child() { close(pipe_); }

  // False when the child is gone.
  bool ReadNumber(int* number) { return read(pipe_, number, sizeof(*number)) == sizeof(*number); }
  void Kill() { kill(pid_, SIGKILL); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
  int pipe_ = -1;
};

TEST(FaultsTest, WhatWasAcknowledgedSurvivesKillNineAndNothingIsRepeated) {
  constexpr int kRecords = 400;
  TempDir directory;
  const std::string path = directory / "tuning.db";
  std::mt19937 random(11);
  std::set<int> acknowledged;
  int kills = 0;
  bool finished = false;
  while (!finished) {
    // A client that was not answered sends again, from its first unanswered record on; a server opens and
    // appends.
    const int first = static_cast<int>(acknowledged.size());
    Child child([&](const std::function<void(int)>& say) {
      auto log = TuningLog::Open(path, OpenMode::kServe);
      MYCC_CHECK(log.ok()) << log.status();
      for (int i = first; i < kRecords; ++i) {
        MYCC_CHECK((*log)->Append({MakeRecord({.index = i})}).ok());
        say(i);
      }
      MYCC_CHECK((*log)->Close().ok());
    });
    int hear = static_cast<int>(random() % 40);
    int number = 0;
    while (hear-- >= 0 && child.ReadNumber(&number)) acknowledged.insert(number);
    child.Kill();
    while (child.ReadNumber(&number)) acknowledged.insert(number);  // said before it died
    const int status = child.Wait();
    ASSERT_TRUE(status == 0 || WTERMSIG(status) == SIGKILL) << "it failed by itself";
    finished = status == 0;
    kills += !finished;
    if (!std::filesystem::exists(path)) continue;  // killed before it made the log
    auto log = TuningLog::Open(path, OpenMode::kWrite);
    ASSERT_TRUE(log.ok()) << log.status();
    auto records = (*log)->List({});
    ASSERT_TRUE(records.ok()) << records.status();
    ASSERT_GE(records->size(), acknowledged.size());
    ASSERT_LE(records->size(), acknowledged.size() + 1);  // the one whose answer was not heard
    for (size_t i = 0; i < records->size(); ++i) {
      ASSERT_TRUE(SameMessage((*records)[i].record, MakeRecord({.index = static_cast<int>(i)})));
    }
    finished = acknowledged.size() == kRecords;
  }
  EXPECT_GT(kills, 5);
  auto log = TuningLog::Open(path, OpenMode::kWrite);
  EXPECT_EQ((*log)->List({})->size(), static_cast<size_t>(kRecords));
}

// One life of a server: takes the trials that are open, leases them, finishes them, makes the next
// generation.
void ServeJob(const std::string& path, const std::string& job, int generations, int size,
              const std::function<void(int)>& say) {
  auto log = TuningLog::Open(path, OpenMode::kServe);
  MYCC_CHECK(log.ok()) << log.status();
  JobStore jobs(log->get());
  const v1::Record sample = MakeRecord({});
  Task task;
  task.key = {sample.workload(), sample.workload_hash(), sample.shape_erased_hash(), "add_one", kTarget};
  MYCC_CHECK(jobs.CreateJob({.id = job, .spec = "spec"}, {task}).ok());
  while (true) {
    auto trials = jobs.LoadTrials(job, 0);
    MYCC_CHECK(trials.ok()) << trials.status();
    for (const Trial& trial : *trials) {
      if (trial.state == TrialState::kFinished) continue;
      uint32_t attempt = trial.attempt;  // a worker that kept its lease reports it again
      if (trial.state == TrialState::kQueued) attempt = (*jobs.LeaseTrials({trial.name}, "worker"))[0];
      auto answers =
          jobs.FinishTrials({{trial.name, attempt, MakeResult({.index = static_cast<int>(trial.index)})}});
      MYCC_CHECK(answers.ok() && (*answers)[0].ok()) << answers.status();
      say(static_cast<int>(trial.generation) * size + static_cast<int>(trial.index));
    }
    Generation next{.job = job, .state = absl::StrCat("after ", trials->size())};
    next.generation = next.proposal = static_cast<uint32_t>(trials->size()) / size;
    if (static_cast<int>(next.generation) == generations) break;
    for (int i = 0; i < size; ++i)
      next.trials.push_back({absl::StrCat("v1\nsplit(", next.generation, ", ", i, ")\n"), {}});
    MYCC_CHECK(jobs.AddGeneration(next).ok());
  }
  if (jobs.GetJob(job)->state == JobState::kDone) return;  // the life before was killed just afterwards
  MYCC_CHECK(jobs.SetJobState(job, JobState::kDone, "").ok());
}

TEST(FaultsTest, AServerThatIsKilledAgainAndAgainFinishesTheSameSearch) {
  constexpr int kGenerations = 12;
  constexpr int kSize = 8;
  TempDir directory;
  const std::string path = directory / "tuning.db";
  const std::string job = JobId(5);
  std::mt19937 random(12);
  std::multiset<int> finished;
  for (int status = -1; status != 0;) {
    Child server([&](const std::function<void(int)>& say) { ServeJob(path, job, kGenerations, kSize, say); });
    int number = 0;
    for (int hear = static_cast<int>(random() % 20); hear >= 0 && server.ReadNumber(&number); --hear)
      finished.insert(number);
    server.Kill();
    while (server.ReadNumber(&number)) finished.insert(number);
    status = server.Wait();
    ASSERT_TRUE(status == 0 || WTERMSIG(status) == SIGKILL) << "it failed by itself";
  }
  for (int i = 0; i < kGenerations * kSize; ++i) EXPECT_LE(finished.count(i), 1u) << "measured twice: " << i;
  auto log = TuningLog::Open(path, OpenMode::kServe);
  JobStore jobs(log->get());
  EXPECT_EQ(jobs.GetJob(job)->state, JobState::kDone);
  auto records = (*log)->List({.job = job});
  EXPECT_EQ(records->size(), static_cast<size_t>(kGenerations * kSize));
  auto trials = jobs.LoadTrials(job, 0);
  for (const Trial& trial : *trials) {
    EXPECT_EQ(trial.state, TrialState::kFinished);
    EXPECT_EQ(trial.attempt, 1u) << trial.name;
    EXPECT_TRUE(trial.result.has_value());
  }
  EXPECT_EQ(jobs.LoadGenerations(job)->back().state, absl::StrCat("after ", (kGenerations - 1) * kSize));
}

TEST(FaultsTest, AWriteAheadLogCutAnywhereIsAPrefixOfWhatWasWritten) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  auto log = TuningLog::Open(path, OpenMode::kCreate);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE((*log)->Append({MakeRecord({.index = i})}).ok());
  const std::string bytes = ReadBytes(path);
  const std::string wal = ReadBytes(path + "-wal");
  std::mt19937 random(13);
  size_t longest = 0;
  for (int round = 0; round < 80; ++round) {
    TempDir crashed;
    const size_t size = round == 0 ? wal.size() : random() % wal.size();
    std::string cut = wal.substr(0, size);
    if (round % 2 == 1 && !cut.empty())
      cut.back() = static_cast<char>(~cut.back());  // and its last byte is torn
    WriteBytes(crashed / "tuning.db", bytes);
    WriteBytes(crashed / "tuning.db-wal", cut);
    auto opened = TuningLog::Open(crashed / "tuning.db", OpenMode::kServe);
    ASSERT_TRUE(opened.ok()) << opened.status();
    auto records = (*opened)->List({});
    ASSERT_TRUE(records.ok()) << records.status();
    for (size_t i = 0; i < records->size(); ++i) {
      ASSERT_TRUE(SameMessage((*records)[i].record, MakeRecord({.index = static_cast<int>(i)})));
    }
    longest = std::max(longest, records->size());
  }
  EXPECT_EQ(longest, 12u);
}

TEST(FaultsTest, AFullDiskLosesNothingThatWasKeptAndPasses) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  auto log = TuningLog::Open(path, OpenMode::kCreate);
  ASSERT_TRUE((*log)->database()->Execute("PRAGMA max_page_count = 40").ok());
  int kept = 0;
  absl::Status status;
  while (status.ok()) {
    status = (*log)->Append({MakeRecord({.index = kept})}).status();
    kept += status.ok();
    ASSERT_LT(kept, 1000);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(std::string(status.message()).rfind(path, 0), 0u) << status;
  EXPECT_GT(kept, 5);
  EXPECT_EQ((*log)->List({})->size(), static_cast<size_t>(kept));
  ASSERT_TRUE((*log)->database()->Execute("PRAGMA max_page_count = 100000").ok());  // somebody made room
  EXPECT_TRUE((*log)->Append({MakeRecord({.index = kept})}).ok());
  ASSERT_TRUE((*log)->Close().ok());
  log = TuningLog::Open(path, OpenMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->List({})->size(), static_cast<size_t>(kept) + 1);
}

// The same with writes that the operating system refuses.
TEST(FaultsTest, AFileThatMayNotGrowKeepsWhatItHas) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  Child child([&](const std::function<void(int)>& say) {
    signal(SIGXFSZ, SIG_IGN);
    auto log = TuningLog::Open(path, OpenMode::kCreate);
    MYCC_CHECK(log.ok()) << log.status();
    const rlimit limit{200000, 200000};
    MYCC_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int i = 0;; ++i) {
      const absl::Status status = (*log)->Append({MakeRecord({.index = i})}).status();
      if (!status.ok()) {
        MYCC_CHECK(absl::IsResourceExhausted(status)) << status;
        // An attempt writes: what space is left is too little soon.
        int attempts = 0;
        while ((*log)->TryWrite().ok()) MYCC_CHECK(++attempts < 100);
        break;
      }
      say(i);
    }
  });
  int last = -1;
  while (child.ReadNumber(&last)) {
  }
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_GT(last, 0);
  auto log = TuningLog::Open(path, OpenMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->List({})->size(), static_cast<size_t>(last) + 1);
}

TEST(FaultsTest, ALogThatCannotBeMadeForLackOfSpaceIsNotLeftBehind) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  Child child([&](const std::function<void(int)>&) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    MYCC_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    const absl::Status status = TuningLog::Open(path, OpenMode::kCreate).status();
    MYCC_CHECK(absl::IsResourceExhausted(status)) << status;
  });
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_TRUE(Snapshot(directory.path()).empty());
}

}  // namespace
}  // namespace mycc

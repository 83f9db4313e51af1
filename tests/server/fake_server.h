// Parts that tests of the server share: a clock that moves when told, a log in a folder of its own, workers
// that answer without measuring.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "db/log_writer.h"
#include "db/tuning_log.h"
#include "gtest/gtest.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/coordinator.h"
#include "server/local_search.h"
#include "server/time_source.h"

namespace mycc {

class FakeTime final : public TimeSource {
 public:
  double Seconds() const override { return now_; }
  int64_t UnixMicros() const override { return static_cast<int64_t>((now_ + wall_ahead_) * 1e6); }
  void Advance(double seconds) { now_ += seconds; }
  // The time of day jumps, while the steady clock goes on.
  void JumpWall(double seconds) { wall_ahead_ += seconds; }

 private:
  double now_ = 1000, wall_ahead_ = 0;
};

inline constexpr char kTestTarget[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
inline constexpr char kTestWorkload[] =
    "workload gemm(x: f32[64,64], w: f32[64,64]) -> (y: f32[64,64]) {\n"
    "  y[i,j] = sum[k:64](x[i,k] * w[k,j])\n"
    "}\n";
inline constexpr char kOtherWorkload[] =
    "workload scale(x: f32[96,80]) -> (y: f32[96,80]) {\n"
    "  y[i,j] = x[i,j] * 2.0\n"
    "}\n";

// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() : folder_(TemporaryFolder::Create().value()) {}
  // In memory where the system has a place for that: no test waits there for a disk.
  static TestFolder InMemory();

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  explicit TestFolder(TemporaryFolder folder) : folder_(std::move(folder)) {}

  const TemporaryFolder folder_;
};

v1::JobSpec MakeSpec(const std::vector<std::string>& workloads, uint32_t trials, uint64_t seed = 1);

// The "measurement" of a trace: the same always, different for each.
v1::MeasureResult FakeResult(const v1::Assignment& assignment);
// And its rivals', of a final round.
std::vector<v1::MeasureResult> FakeResults(const v1::Assignment& assignment);

// A server without loop and network, its log, and the way to kill and restart it.
class FakeServer {
 public:
  explicit FakeServer(CoordinatorOptions options = DefaultOptions(),
                      StartSearch start_search = LocalSearch::Start);
  static CoordinatorOptions DefaultOptions();

  Coordinator& operator*() { return *coordinator_; }
  Coordinator* operator->() { return coordinator_.get(); }
  TuningLog& log() { return *log_; }
  FakeTime& time() { return time_; }
  // Ends like kill -9, and starts again: nothing is said to anybody, and changes that were not in the log are
  // gone. `before` is called when it has started, and before anything that takes time is done.
  void Restart(const std::function<void(Coordinator&)>& before = nullptr);
  void Wait(double seconds) {
    time_.Advance(seconds);
    coordinator_->Tick();
    Commit();
  }
  // Does what waits for the log or a search, in order, until nothing is left.
  void Commit();
  // From now on changes of the log fail with this, or work again.
  void FailWrites(const absl::Status& error) { write_error_ = error; }
  // From now on changes of the log wait, or do not.
  void HoldWrites(bool hold);
  // From now on reads of the log are done, and their ends wait, or do not.
  void HoldReadEnds(bool hold);

  std::string Submit(const v1::JobSpec& spec, const std::string& submission = "",
                     const std::string& client = "");
  absl::StatusOr<v1::JobProgress> TrySubmit(const v1::SubmitJobRequest& request);
  absl::StatusOr<v1::JobProgress> Update(const v1::UpdateJobRequest& request);
  absl::StatusOr<v1::JobProgress> Cancel(const std::string& job, const std::string& by = "");
  absl::StatusOr<v1::JobProgress> Leave(const std::string& job, const std::string& client);
  v1::JobProgress Progress(const std::string& job);
  absl::StatusOr<v1::JobProgress> TryProgress(const std::string& job);
  std::vector<v1::JobProgress> List(uint32_t limit = 0);
  // Trial -> trace of the job's records; fails the test when a trial has two.
  std::map<std::string, std::string> TracesOf(const std::string& job);
  // The records of the job's trials, or those that final rounds made of them.
  std::vector<StoredRecord> RecordsOf(const std::string& job, bool finals = false);

 private:
  void Open(const std::function<void(Coordinator&)>& before = nullptr);

  const TestFolder folder_ = TestFolder::InMemory();
  FakeTime time_;
  const CoordinatorOptions options_;
  const StartSearch start_search_;
  std::unique_ptr<TuningLog> log_;
  std::deque<std::function<void()>> works_, held_writes_, held_read_ends_;
  absl::Status write_error_;
  bool hold_writes_ = false, hold_read_ends_ = false;
  std::unique_ptr<Coordinator> coordinator_;

  friend class FakeWorker;
  std::map<std::string, std::string> processes_;  // the latest of each worker's name
};

// The answer to a call that `start` makes, once the log has what it adds; Unknown when there is none yet.
template <typename Response>
absl::StatusOr<Response> AnswerOf(FakeServer* server,
                                  const std::function<void(const Reply<Response>&)>& start) {
  auto answer = std::make_shared<absl::StatusOr<Response>>(absl::UnknownError("no answer yet"));
  start([answer](absl::StatusOr<Response> given) { *answer = std::move(given); });
  server->Commit();
  return *answer;
}

class FakeWorker {
 public:
  // A worker of the version before this one says neither what it holds, nor which process it is, nor which
  // protocols it knows.
  enum class Version { kThis, kBefore };
  FakeWorker(FakeServer* server, std::string name, std::string target = kTestTarget,
             Version version = Version::kThis);

  // Registers a new process, which knows that the one before it has ended.
  v1::RegisterResponse Register();
  // Registers the same process, with the leases that it holds.
  v1::RegisterResponse RegisterAgain();
  absl::StatusOr<v1::RegisterResponse> TryRegister(const v1::RegisterRequest& request);
  v1::RegisterRequest Registration() const;

  std::vector<v1::Assignment> Lease(uint32_t count, const std::string& device = "cpu");
  absl::StatusOr<v1::LeaseResponse> TryLease(uint32_t count, const std::string& device = "cpu");
  // With what it measured of its devices.
  absl::Status Beat(const std::map<std::string, v1::DeviceConstants>& constants = {});
  absl::Status Leave();
  // The candidate's result; its rivals', where there are some, are made up. OK when the server has answered;
  // reports that it ignored or refused are in `ignored`, and the answer is in `answer`.
  absl::Status Report(const v1::Assignment& assignment, const v1::MeasureResult& result);
  absl::Status ReportAll(const v1::Assignment& assignment, const std::vector<v1::MeasureResult>& results);
  absl::Status Report(const v1::Assignment& assignment) { return Report(assignment, FakeResult(assignment)); }
  // Leases and reports until the server has nothing more to give; returns how many trials, without final
  // rounds.
  int Work(uint32_t batch = 3);

  using LeaseKey = std::pair<std::string, uint32_t>;  // trial, attempt
  std::map<LeaseKey, v1::LeaseId> held;               // leased and not answered for
  std::vector<v1::DeviceOffer> devices;
  std::vector<std::string> ignored;
  v1::ReportAnswer answer;
  v1::Instructions instructions;
  std::string session;
  v1::HostState host;

 private:
  void Apply(const v1::Instructions& told);
  template <typename Request>
  Request Named() const;  // of this session, with what it holds

  FakeServer* const server_;
  const std::string name_;
  const Version version_;
  std::string instance_, replaces_;
};

}  // namespace mycc

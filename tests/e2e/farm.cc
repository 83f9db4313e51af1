#include "tests/e2e/farm.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "gtest/gtest.h"
#include "mycc_tune/tuning_client.h"
#include "proto/names.h"
#include "tests/e2e/recorded.h"

namespace mycc {
namespace {

constexpr char kFarmTarget[] = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1";
constexpr auto kLook = std::chrono::milliseconds(20);

bool WaitUntil(double seconds, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

std::string PlaceOf(const Trial& trial) {
  return absl::StrCat(trial.task, "/", trial.generation, "/", trial.index);
}

// The parent of a process, and the words of its command; none for one that has gone.
std::pair<pid_t, std::vector<std::string>> ProcessAt(pid_t pid) {
  const std::string stat = ReadAll(absl::StrCat("/proc/", pid, "/stat")),
                    line = ReadAll(absl::StrCat("/proc/", pid, "/cmdline"));
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {0, {}};
  std::istringstream rest(stat.substr(name_end + 2));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  std::vector<std::string> words;
  std::istringstream all(line);
  for (std::string word; std::getline(all, word, '\0');) words.push_back(word);
  return {state == "Z" ? 0 : parent, words};
}

}  // namespace

Farm::Farm(FarmOptions options) : options_(std::move(options)) {
  workers_.resize(static_cast<size_t>(options_.workers));
  if (options_.connects_by_proxy) proxy_ = std::make_unique<Proxy>(folder_.Path("socket"));
}

std::unique_ptr<Background> Farm::Begin(const std::vector<std::string>& arguments,
                                        std::vector<std::string> variables) const {
  variables.insert(variables.end(), options_.environment.begin(), options_.environment.end());
  variables.push_back(absl::StrCat(kRecordedRuns, "=", runs_));
  std::vector<std::string> words = std::move(variables);
  words.emplace_back(RECORDED);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return std::make_unique<Background>("/usr/bin/env", words, output_);
}

void Farm::StartServer() {
  if (server_ != nullptr) return;
  server_ = Begin(
      {"serve", "--listen", address_, "--log", log_, "--lease-seconds", absl::StrCat(options_.lease_seconds)},
      {});
}

void Farm::StartWorker(int index) {
  auto& worker = workers_[static_cast<size_t>(index)];
  if (worker != nullptr) return;
  // Locks of its own, as if it had a host for itself: recorded times are not disturbed.
  const std::string locks = folder_.Path(absl::StrCat("locks", index));
  std::filesystem::create_directory(locks);
  worker = Begin({"worker", "--server", proxy_ != nullptr ? proxy_->address() : address_, "--name",
                  absl::StrCat("w", index), "--builders", "1"},
                 {absl::StrCat("XDG_RUNTIME_DIR=", locks)});
}

void Farm::Start() {
  StartServer();
  for (int i = 0; i < options_.workers; ++i) StartWorker(i);
}

void Farm::KillServer() {
  server_->Kill9();
  server_.reset();
}

void Farm::KillWorker(int index) {
  auto& worker = workers_[static_cast<size_t>(index)];
  worker->Kill9();
  worker.reset();
}

v1::JobSpec Farm::Spec() const {
  v1::JobSpec spec = MakeSpec({kTestWorkload}, options_.trials, options_.seed);
  spec.set_target(kFarmTarget);
  return spec;
}

void Farm::Submit() {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = Spec();
  request.set_submission("the one");
  const bool submitted = WaitUntil(60, [&] {
    const auto client = TuningClient::Connect({.address = address_});
    const auto progress = client.ok() ? (*client)->Submit(request) : client.status();
    if (progress.ok()) job_ = progress->job();
    return progress.ok();
  });
  EXPECT_TRUE(submitted) << Said();
}

absl::StatusOr<v1::JobProgress> Farm::Progress() const {
  const auto client = TuningClient::Connect({.address = address_});
  return client.ok() ? (*client)->Watch(job_, 0, 0) : client.status();
}

bool Farm::WaitForTrials(int64_t trials, double seconds) const {
  return WaitUntil(seconds, [&] {
    const auto progress = Progress();
    if (!progress.ok()) return false;
    const bool runs =
        progress->state() == v1::JOB_STATE_RUNNING || progress->state() == v1::JOB_STATE_WAITING;
    return !runs || progress->trials() >= trials;
  });
}

bool Farm::WaitForEnd(double seconds) const {
  return WaitForTrials(std::numeric_limits<int64_t>::max(), seconds);
}

JobOutcome Farm::End() {
  const auto progress = Progress();
  EXPECT_TRUE(progress.ok()) << progress.status() << "\n" << Said();
  if (progress.ok()) {
    EXPECT_EQ(progress->state(), v1::JOB_STATE_DONE) << progress->message() << "\n" << Said();
  }
  for (auto& worker : workers_) {
    if (worker != nullptr) {
      EXPECT_EQ(worker->Terminate(), 0);
    }
    worker.reset();
  }
  if (server_ != nullptr) {
    EXPECT_EQ(server_->Terminate(), 0);
  }
  server_.reset();
  if (options_.has_one_clock) ExpectNoRunAfterItsRecord();
  return ReadOutcome();
}

JobOutcome Farm::ReadOutcome() const {
  JobOutcome outcome;
  const auto log = TuningLog::Open(log_, OpenMode::kRead);
  EXPECT_TRUE(log.ok()) << log.status();
  if (!log.ok()) return outcome;
  RecordFilter filter;
  filter.job = job_;
  const auto records = (*log)->List(filter);
  const auto trials = JobStore(log->get()).LoadTrials(job_, 0);
  EXPECT_TRUE(records.ok() && trials.ok());
  if (!records.ok() || !trials.ok()) return outcome;
  std::map<std::string, v1::Record> by_trial;
  for (const StoredRecord& stored : *records) {
    if (!stored.record.result().timing().final_round().empty()) continue;  // it is no trial's
    EXPECT_TRUE(by_trial.insert({stored.record.trial(), stored.record}).second)
        << stored.record.trial() << " has two records";
  }
  EXPECT_EQ(trials->size(), options_.trials);
  EXPECT_EQ(by_trial.size(), trials->size());
  for (const Trial& trial : *trials) {
    EXPECT_EQ(trial.state, TrialState::kFinished) << trial.name;
    const auto record = by_trial.find(trial.name);
    if (record == by_trial.end()) {
      ADD_FAILURE() << trial.name << " has no record";
      continue;
    }
    const v1::MeasureResult& result = record->second.result();
    outcome.given_up += IsInfrastructureFailure(result.status()) ? 1 : 0;
    outcome.trials[PlaceOf(trial)] =
        absl::StrCat(StatusName(result.status()), " ", result.timing().seconds(), "\n", trial.trace);
  }
  std::ofstream(folder_.Path("gemm.te")) << kTestWorkload;
  const Ran best =
      RunMyccTune({"best", folder_.Path("gemm.te"), "--log", log_, "--target", kFarmTarget, "--json"});
  EXPECT_EQ(best.exit_status, 0) << best.output;
  const auto record = nlohmann::json::parse(best.output, nullptr, /*allow_exceptions=*/false);
  outcome.best = record.is_object() ? record.dump() : best.output;
  if (record.is_object() && record.contains("trace")) outcome.best = record["trace"].dump();
  return outcome;
}

// Equal code of two trials may run twice: a run needs a trial of its code that is not recorded yet.
void Farm::ExpectNoRunAfterItsRecord() const {
  const auto log = TuningLog::Open(log_, OpenMode::kRead);
  ASSERT_TRUE(log.ok()) << log.status();
  RecordFilter filter;
  filter.job = job_;
  const auto records = (*log)->List(filter);
  ASSERT_TRUE(records.ok()) << records.status();
  std::map<std::string, int64_t> last_recorded;  // by digest
  for (const StoredRecord& stored : *records) {
    if (!stored.record.result().timing().final_round().empty()) continue;
    int64_t& last = last_recorded[stored.record.result().code_digest()];
    last = std::max(last, stored.record.recorded_unix_micros());
  }
  std::istringstream lines(ReadAll(runs_));
  int runs = 0;
  int64_t begun = 0;
  for (std::string digest; lines >> digest >> begun; ++runs) {
    if (digest == kRoundRun) continue;
    const auto last = last_recorded.find(digest);
    if (last == last_recorded.end()) continue;  // its trial was given up, or its code is of no record
    EXPECT_LE(begun, last->second) << digest << " was run again after its result was recorded";
  }
  EXPECT_GT(runs, 0) << "the runners wrote nothing to " << runs_;
}

const JobOutcome& Undisturbed(uint64_t seed, uint32_t trials) {
  static std::map<std::pair<uint64_t, uint32_t>, JobOutcome> known;
  const auto found = known.find({seed, trials});
  if (found != known.end()) return found->second;
  FarmOptions options;
  options.seed = seed;
  options.trials = trials;
  Farm farm(options);
  farm.Start();
  farm.Submit();
  EXPECT_TRUE(farm.WaitForEnd(300)) << farm.Said();
  return known[{seed, trials}] = farm.End();
}

void ExpectSame(const JobOutcome& disturbed, const JobOutcome& undisturbed) {
  EXPECT_EQ(disturbed.trials, undisturbed.trials);
  EXPECT_EQ(disturbed.best, undisturbed.best);
  EXPECT_NE(disturbed.best, "");
}

std::vector<pid_t> DescendantsOf(pid_t ancestor, const std::string& command) {
  std::multimap<pid_t, pid_t> children;
  std::map<pid_t, std::string> commands;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const auto [parent, words] = ProcessAt(pid);
    if (parent > 0) children.insert({parent, pid});
    if (words.size() > 1) commands[pid] = words[1];
  }
  std::vector<pid_t> open = {ancestor}, found;
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      open.push_back(child->second);
      if (commands[child->second] == command) found.push_back(child->second);
    }
  }
  return found;
}

}  // namespace mycc

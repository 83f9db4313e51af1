// The answers of a server with a log, without a network: each kind of page, who may read it, and what it
// costs.
#include "web/pages.h"

#include <unistd.h>

#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"
#include "web/gzip.h"
#include "web/prometheus_text.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kJob[] = "j000000000000000000000000000000ab";
constexpr char kTrace[] = "v1\nsketch tile a=4 b=2\nsplit(t1.a0, [4])\n";

v1::Record MakeTrial(int index, double seconds, const std::string& error = "") {
  v1::Record record;
  record.set_trial(TrialName({kJob, 0, static_cast<uint32_t>(index / 2), static_cast<uint32_t>(index % 2)}));
  record.set_workload(kOtherWorkload);
  record.set_workload_hash("0123abcd");
  record.set_shape_erased_hash("4567");
  record.set_workload_name("scale");
  record.set_target(kTestTarget);
  record.set_trace(absl::StrCat(kTrace, "# ", index));
  record.mutable_provenance()->set_job(kJob);
  v1::MeasureResult& result = *record.mutable_result();
  result.mutable_device()->set_worker("w");
  result.mutable_timing()->set_protocol(v1::TIMING_PROTOCOL_WARM);
  result.mutable_timing()->set_timer_version(1);
  if (error.empty()) {
    result.set_status(v1::MEASURE_STATUS_OK);
    result.mutable_timing()->set_seconds(seconds);
    result.mutable_timing()->add_samples_seconds(seconds);
    result.mutable_verification()->set_passed(true);
  } else {
    result.set_status(v1::MEASURE_STATUS_RUN_ERROR);
    result.set_error(error);
    result.set_reproduction("mycc-tune measure ...");
  }
  record.set_recorded_unix_micros(1'000'000 * (index + 1));
  return record;
}

// A log with one job that has ended, and the pages over it.
class PagesTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({}); }
  void TearDown() override {
    loop_->Stop();
    pages_.reset();
  }
  void Open(const AccessFileNames& names) {
    auto files = AccessFiles::Open(names, nullptr);
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kServe, [] { return int64_t{500}; });
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    Fill();
    loop_ = std::make_unique<ServerLoop>(ServerLoopOptions(), log_.get(), &SystemTime());
    ASSERT_TRUE(loop_->Start().ok());
    auto pages = Pages::Open(folder_.Path("test.db"), loop_.get(),
                             CallerAccess(files_.get(), [this](int) { return user_; }), &SystemTime());
    ASSERT_TRUE(pages.ok()) << pages.status();
    pages_ = *std::move(pages);
  }
  void Fill() {
    Job job{.id = kJob, .spec = v1::StoredJob().SerializeAsString(), .created_unix_micros = 500'000};
    Task task;
    task.key = {kOtherWorkload, "0123abcd", "4567", "scale", kTestTarget};
    JobStore store(log_.get());
    ASSERT_TRUE(store.CreateJob(job, {task}).ok());
    ASSERT_TRUE(store.SetJobState(kJob, JobState::kDone, "all trials are measured").ok());
    v1::JobProgress progress;
    progress.set_job(kJob);
    progress.set_state(v1::JOB_STATE_DONE);
    progress.set_trials(5);
    ASSERT_TRUE(store.SetSummary(kJob, progress.SerializeAsString()).ok());
    const std::vector<v1::Record> records = {MakeTrial(0, 3e-3), MakeTrial(1, 0, "signal 11 at 0x7f01\nmore"),
                                             MakeTrial(2, 4e-3), MakeTrial(3, 2e-3),
                                             MakeTrial(4, 0, "signal 11 at 0x7f99")};
    const auto appended = log_->Append(records);
    ASSERT_TRUE(appended.ok()) << appended.status();
  }
  HttpResponse Ask(HttpRequest request) {
    auto answer = std::make_shared<std::promise<HttpResponse>>();
    if (request.method.empty()) request.method = "GET";
    pages_->Answer(request, [answer](HttpResponse response) { answer->set_value(std::move(response)); });
    return answer->get_future().get();
  }
  HttpResponse Get(const std::string& path, std::map<std::string, std::string> query = {}) {
    return Ask({.path = path, .query = std::move(query), .headers = {{"host", "localhost:1"}}});
  }
  nlohmann::json Read(const std::string& path, std::map<std::string, std::string> query = {}) {
    const HttpResponse response = Get("/api/v1/" + path, std::move(query));
    EXPECT_EQ(response.status, 200) << response.body;
    return nlohmann::json::parse(response.body);
  }
  static std::string HeaderOf(const HttpResponse& response, const std::string& name) {
    for (const auto& [header, value] : response.headers)
      if (header == name) return value;
    return "";
  }

  const TestFolder folder_ = TestFolder::InMemory();
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<AccessFiles> files_;
  absl::StatusOr<uid_t> user_ = geteuid();  // at the other end
  std::unique_ptr<Pages> pages_;
};

TEST_F(PagesTest, HealthAndReadinessNeedNoCredentials) {
  EXPECT_EQ(Ask({.path = "/healthz"}).body, "ok\n");
  const HttpResponse ready = Ask({.path = "/readyz"});
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, "ready\n");
}

TEST_F(PagesTest, AServerThatIsStoppingIsNotReady) {
  loop_->Stop();
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/api/v1/jobs").status, 503);
}

TEST_F(PagesTest, ListsJobs) {
  EXPECT_EQ(Get("/api/v1/jobs").body,
            absl::StrCat(R"({"jobs":[{"job":")", kJob, R"(","state":"done","trials":5}]})"));
}

TEST_F(PagesTest, AJobHasItsConvergence) {
  EXPECT_EQ(
      Get(absl::StrCat("/api/v1/jobs/", kJob)).body,
      absl::StrCat(R"({"job":{"job":")", kJob, R"(","state":"done","trials":5},"convergence":[{"trials":5,)",
                   R"("last_unix_micros":5000000,"points":[[1,1000000,0.003],[4,4000000,0.002]]}]})"));
  EXPECT_EQ(Get("/api/v1/jobs/j000000000000000000000000000000ff").status, 404);
}

TEST_F(PagesTest, CandidatesHaveTheirDecisions) {
  const std::string page =
      Get(absl::StrCat("/api/v1/jobs/", kJob, "/candidates"), {{"after", "3"}, {"limit", "1"}, {"task", "0"}})
          .body;
  EXPECT_EQ(page, absl::StrCat(R"({"candidates":[{"id":4,"trial":")", kJob,
                               R"(/0/1/1","task":0,"generation":1,"index":1,"status":"ok","seconds":0.002,)",
                               R"("recorded_unix_micros":4000000,"worker":"w","sketch":"tile",)",
                               R"("decisions":{"a":4,"b":2}}]})"));
}

TEST_F(PagesTest, CandidatesComeByPagesFromBothEnds) {
  const auto ids = [this](std::map<std::string, std::string> query) {
    std::vector<int> found;
    const nlohmann::json page = Read(absl::StrCat("jobs/", kJob, "/candidates"), std::move(query));
    for (const nlohmann::json& row : page["candidates"]) found.push_back(row["id"]);
    return found;
  };
  EXPECT_THAT(ids({{"limit", "2"}}), ElementsAre(4, 5));  // the newest
  EXPECT_THAT(ids({{"limit", "2"}, {"before", "4"}}), ElementsAre(2, 3));
  EXPECT_THAT(ids({{"limit", "2"}, {"after", "0"}}), ElementsAre(1, 2));
  EXPECT_THAT(ids({{"after", "5"}}), ElementsAre());
  EXPECT_EQ(Get(absl::StrCat("/api/v1/jobs/", kJob, "/candidates"), {{"task", "1"}}).status, 404);
  EXPECT_EQ(Get(absl::StrCat("/api/v1/jobs/", kJob, "/candidates"), {{"limit", "x"}}).status, 400);
}

TEST_F(PagesTest, FailuresThatDifferInNumbersAreOneKind) {
  const nlohmann::json failures = Read("failures");
  EXPECT_EQ(failures["failures"], 2);
  ASSERT_EQ(failures["kinds"].size(), 1u);
  const nlohmann::json& kind = failures["kinds"][0];
  EXPECT_EQ(kind["count"], 2);
  EXPECT_EQ(kind["status"], "run_error");
  EXPECT_EQ(kind["newest"]["error"], "signal 11 at 0x7f99");
  EXPECT_EQ(kind["newest"]["reproduction"], "mycc-tune measure ...");
  EXPECT_EQ(Read("failures", {{"job", "j000000000000000000000000000000ff"}})["failures"], 0);
}

TEST_F(PagesTest, TheBestScheduleOfEachKey) {
  const nlohmann::json keys = Read("best")["keys"];
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0]["workload_name"], "scale");
  ASSERT_EQ(keys[0]["best"].size(), 1u);
  EXPECT_EQ(keys[0]["best"][0]["seconds"], 2e-3);
  EXPECT_EQ(keys[0]["best"][0]["sketch"], "tile a=4 b=2");
  EXPECT_EQ(Read("best", {{"text", "no such name"}})["keys"].size(), 0u);
  EXPECT_EQ(Read("best", {{"limit", "1"}})["before"], 1);
}

TEST_F(PagesTest, ARecordIsWhole) {
  EXPECT_THAT(std::string(Read("records/4")["record"]["trace"]), StartsWith(kTrace));
  EXPECT_EQ(Get("/api/v1/records/99").status, 404);
  EXPECT_EQ(Get("/api/v1/records/x").status, 400);
}

TEST_F(PagesTest, QueueDevicesAndStatusOfAnIdleServer) {
  EXPECT_EQ(Get("/api/v1/queue").body, R"({"waiting":0,"leased":0,"lines":[],"leases":[]})");
  EXPECT_EQ(Get("/api/v1/devices").body, R"({"devices":[]})");
  const nlohmann::json status = Read("status");
  EXPECT_EQ(status["jobs"]["done"], 1);
  EXPECT_EQ(status["log"]["name"], "test.db");
  EXPECT_EQ(status["log"]["records"], 5);
  EXPECT_EQ(status["log"]["trouble"], "");
}

TEST_F(PagesTest, MetricsOfAnIdleServer) {
  const HttpResponse metrics = Get("/metrics");
  EXPECT_EQ(metrics.type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line : {"mycc_tune_jobs{state=\"done\"} 1\n", "mycc_tune_trials_total{status=\"ok\"} 0\n",
                           "mycc_tune_log_records_total 5\n", "mycc_tune_log_writable 1\n",
                           "mycc_tune_lease_duration_seconds_bucket{le=\"+Inf\"} 0\n"})
    EXPECT_THAT(metrics.body, HasSubstr(line));
}

TEST_F(PagesTest, UnknownPathsAndMethodsAreRefusedInWords) {
  const HttpResponse unknown = Get("/api/v1/nothing");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, StartsWith(R"({"error":"there is nothing at /api/v1/nothing)"));
  EXPECT_EQ(Get("/etc/passwd").status, 404);
  EXPECT_EQ(Ask({.method = "POST", .path = "/api/v1/jobs"}).status, 405);
}

TEST_F(PagesTest, ThePageLoadsNothingFromElsewhere) {
  const HttpResponse page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<title>mycc-tune</title>"));
  EXPECT_THAT(page.body, Not(HasSubstr("https://")));
  EXPECT_THAT(HeaderOf(page, "Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self'"));
  EXPECT_EQ(HeaderOf(page, "X-Content-Type-Options"), "nosniff");
  const size_t begin = page.body.find("/assets/app-");
  const std::string script = page.body.substr(begin, page.body.find('"', begin) - begin);
  HttpRequest packed{.path = script, .headers = {{"accept-encoding", "gzip, br"}}};
  const HttpResponse file = Ask(packed);
  EXPECT_EQ(HeaderOf(file, "Content-Encoding"), "gzip");
  EXPECT_THAT(HeaderOf(file, "Cache-Control"), HasSubstr("immutable"));
  EXPECT_EQ(Gunzip(file.body), Get(script).body);
  packed.headers["if-none-match"] = HeaderOf(file, "ETag");
  EXPECT_EQ(Ask(packed).status, 304);
}

TEST_F(PagesTest, AnAnswerThatIsTheSameIsNotSentAgain) {
  const std::string tag = HeaderOf(Get("/api/v1/jobs"), "ETag");
  const HttpResponse again =
      Ask({.path = "/api/v1/jobs", .headers = {{"host", "[::1]:80"}, {"if-none-match", tag}}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
}

TEST_F(PagesTest, APageOfAnotherSiteIsRefusedOnLoopback) {
  for (const char* host :
       {"localhost:50918", "127.0.0.1:50918", "127.0.0.1", "[::1]:50918", "[::1]", "localhost"})
    EXPECT_EQ(Ask({.path = "/api/v1/jobs", .headers = {{"host", host}}}).status, 200) << host;
  for (const char* host : {"evil.example", "evil.example:50918", "127.0.0.1.evil.example:80", "unix:50918"})
    EXPECT_EQ(Ask({.path = "/api/v1/jobs", .headers = {{"host", host}}}).status, 403) << host;
}

TEST_F(PagesTest, OtherUsersOfTheHostAreRefusedWhereNobodyIsAskedForAnything) {
  user_ = geteuid() + 1000;
  const HttpResponse refused = Get("/metrics");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("mycc-tune auth add NAME --uid"));
}

class GuardedPagesTest : public PagesTest {
 protected:
  void SetUp() override {
    std::ofstream(folder_.Path("access.json")) << absl::StrCat(
        R"({"version": 1, "principals": [{"name": "ann", "roles": ["read"], "tokens": [{"sha256": ")",
        Sha256Hex("secret"), R"("}]}, {"name": "rig", "roles": ["work"], "tokens": [{"sha256": ")",
        Sha256Hex("worker"), R"("}]}, {"name": "bob", "roles": ["submit"], "uids": [4321]}]})");
    Open({.access_file = folder_.Path("access.json")});
  }
};

TEST_F(GuardedPagesTest, AWorkersTokenDoesNotOpenThePage) {
  const HttpResponse refused = Ask({.path = "/api/v1/jobs", .headers = {{"authorization", "Bearer worker"}}});
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("read"));
}

TEST_F(GuardedPagesTest, UsersOfTheHostAreLetInByTheirIdsWhereTheyAreNamed) {
  EXPECT_EQ(Get("/api/v1/jobs").status, 401);  // the server's own user is asked as well
  user_ = 4321;
  EXPECT_EQ(Get("/api/v1/jobs").status, 200);
  EXPECT_EQ(Ask({.path = "/api/v1/jobs", .headers = {{"host", "evil.example"}}}).status, 403);
  user_ = absl::FailedPreconditionError("not on this host");
  EXPECT_EQ(Get("/api/v1/jobs").status, 401);
}

TEST_F(GuardedPagesTest, TheTokenOpensEverythingThatShowsSomething) {
  for (const char* path : {"/metrics", "/api/v1/status", "/api/v1/jobs", "/api/v1/records/1"}) {
    const HttpResponse refused = Get(path);
    EXPECT_EQ(refused.status, 401) << path;
    EXPECT_THAT(refused.body, HasSubstr("no token was shown; expected `Authorization: Bearer TOKEN`"))
        << path;
    EXPECT_EQ(HeaderOf(refused, "WWW-Authenticate"), "Bearer realm=\"mycc-tune\"");
    EXPECT_EQ(Ask({.path = path, .headers = {{"authorization", "Bearer wrong!"}}}).status, 401) << path;
    EXPECT_EQ(Ask({.path = path, .headers = {{"authorization", "Bearer secret"}}}).status, 200) << path;
  }
  EXPECT_EQ(Get("/").status, 200);  // it asks for the token
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST(PrometheusTextTest, LabelsAreQuotedAndBucketsAddUp) {
  PrometheusText text;
  text.Gauge("a_b", "Help.");
  text.Sample({{"x", "a\"b\\c\nd"}, {"y", ""}}, 0.1);
  Latency latency;
  latency.Add(0.0001);
  latency.Add(0.3);
  latency.Add(100);
  text.Histogram("h_seconds", "Time.", latency.counts());
  EXPECT_THAT(text.text(),
              StartsWith("# HELP a_b Help.\n# TYPE a_b gauge\na_b{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 0.1\n"));
  EXPECT_THAT(text.text(), HasSubstr("h_seconds_bucket{le=\"0.25\"} 1\nh_seconds_bucket{le=\"0.5\"} 2\n"));
  EXPECT_THAT(text.text(), HasSubstr("h_seconds_bucket{le=\"60\"} 2\nh_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text.text(), HasSubstr("h_seconds_sum 100.3001\nh_seconds_count 3\n"));
}

TEST(ConvergenceTest, FinalRoundsAndFailuresDoNotImprove) {
  Convergence convergence({7, 9});
  CandidateRow row{.id = 1, .key = 9, .status = v1::MEASURE_STATUS_OK, .verified = true, .seconds = 2};
  convergence.Add(row);
  row.id = 2;
  row.seconds = 1;
  row.is_final = true;
  convergence.Add(row);
  row.is_final = false;
  row.verified = false;
  convergence.Add(row);
  row.key = 8;  // of no task
  convergence.Add(row);
  EXPECT_EQ(convergence.tasks()[0].trials, 0);
  EXPECT_EQ(convergence.tasks()[1].trials, 2);
  ASSERT_EQ(convergence.tasks()[1].points.size(), 1u);
  EXPECT_EQ(convergence.tasks()[1].points[0].seconds, 2);
}

TEST(SharedReadTest, ThoseWhoAskTogetherShareARead) {
  FakeTime time;
  std::vector<Reply<int>> reads;
  SharedRead<int> shared([&reads](Reply<int> reply) { reads.push_back(std::move(reply)); }, 1, &time);
  std::vector<int> got;
  const auto take = [&got](const SharedRead<int>::Result& result) {
    got.push_back(result.ok() ? **result : -1);
  };
  shared.Get(take);
  shared.Get(take);
  ASSERT_EQ(reads.size(), 1u);
  reads[0](7);
  EXPECT_THAT(got, ElementsAre(7, 7));
  shared.Get(take);  // fresh
  EXPECT_THAT(got, ElementsAre(7, 7, 7));
  time.Advance(1);
  shared.Get(take);
  ASSERT_EQ(reads.size(), 2u);
  reads[1](absl::UnavailableError("gone"));
  EXPECT_THAT(got, ElementsAre(7, 7, 7, -1));
  shared.Get(take);  // an error is not kept
  EXPECT_EQ(reads.size(), 3u);
}

}  // namespace
}  // namespace mycc

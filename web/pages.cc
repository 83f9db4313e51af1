#include "web/pages.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "web/answers.h"
#include "web/metrics.h"

namespace mycc {
namespace {

constexpr int kReaders = 2;
constexpr double kOverviewSeconds = 0.5;  // what several open pages share
constexpr double kHistorySeconds = 5;
constexpr double kFactsSeconds = 2;
constexpr double kDeafSeconds = 5;              // the loop ends several turns a second
constexpr int64_t kFailuresLookedAt = 100'000;  // the newest records, where no job is named
constexpr char kApi[] = "/api/v1/";

constexpr v1::MeasureStatus kFailures[] = {
    v1::MEASURE_STATUS_BUILD_ERROR, v1::MEASURE_STATUS_BUILD_TIMEOUT, v1::MEASURE_STATUS_RUN_ERROR,
    v1::MEASURE_STATUS_RUN_TIMEOUT, v1::MEASURE_STATUS_WRONG_RESULT,  v1::MEASURE_STATUS_OUT_OF_MEMORY,
    v1::MEASURE_STATUS_DEVICE_LOST, v1::MEASURE_STATUS_WORKER_LOST,   v1::MEASURE_STATUS_WORKER_UNFIT};
constexpr v1::TimingProtocol kProtocols[] = {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD,
                                             v1::TIMING_PROTOCOL_MODEL};

// A number of the query, at most `most`; InvalidArgument for a word that is none.
absl::StatusOr<int64_t> NumberOf(const HttpRequest& request, const std::string& name, int64_t usual,
                                 int64_t most) {
  const std::string word = request.Query(name);
  int64_t number = usual;
  if (!word.empty() && (!absl::SimpleAtoi(word, &number) || number < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", word, "\" is no ", name, "; expected a whole number from 0"));
  }
  return std::min(number, most);
}

absl::Status NoSuchPath(const std::string& path) {
  return absl::NotFoundError(
      absl::StrCat("there is nothing at ", path, "; docs/monitoring.md lists the paths"));
}

absl::StatusOr<Json> ReadCandidatesView(const TuningLog& log, CandidatePage page, const std::string& task) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> keys, ReadTaskKeys(log, page.job));
  if (!task.empty()) {
    size_t number = 0;
    if (!absl::SimpleAtoi(task, &number) || number >= keys.size()) {
      return absl::NotFoundError(
          absl::StrCat("job ", page.job, " has no task ", task, "; expected one below ", keys.size()));
    }
    page.key = keys[number];
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<CandidateRow> rows, ReadCandidates(log, page));
  return CandidatesJson(rows, keys);
}

absl::StatusOr<Json> ReadFailuresView(const TuningLog& log, const std::string& job, int64_t limit) {
  RecordFilter filter;
  filter.statuses.assign(std::begin(kFailures), std::end(kFailures));
  filter.job = job;
  filter.newest_first = true;
  filter.limit = limit;
  if (job.empty()) {
    MYCC_ASSIGN_OR_RETURN(const LogFacts facts, ReadLogFacts(log));
    filter.min_id = std::max<int64_t>(1, facts.newest_record - kFailuresLookedAt);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log.List(filter));
  return FailuresJson(records);
}

absl::StatusOr<Json> ReadBestView(const TuningLog& log, int64_t before, const std::string& text,
                                  int64_t limit) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<KeyRow> keys, ReadKeys(log, before, text, limit));
  std::vector<KeyBest> rows;
  for (const KeyRow& key : keys) {
    KeyBest& row = rows.emplace_back(KeyBest{key, {}});
    for (const v1::TimingProtocol protocol : kProtocols) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> best, log.TopK(key.key, protocol, 1));
      row.best.insert(row.best.end(), best.begin(), best.end());
    }
  }
  return BestJson(rows, limit);
}

}  // namespace

Pages::Pages(const std::string& log_path, ServerLoop* loop, std::unique_ptr<HttpAccess> access,
             const TimeSource* time)
    : log_path_(log_path),
      loop_(loop),
      access_(std::move(access)),
      time_(time),
      started_unix_micros_(time->UnixMicros()),
      overview_([this](Reply<Overview> reply) { loop_->GetOverview(Beside(std::move(reply))); },
                kOverviewSeconds, time),
      history_([this](Reply<DeviceHistory> reply) { loop_->GetDeviceHistory(Beside(std::move(reply))); },
               kHistorySeconds, time),
      facts_(
          [this](Reply<LogFacts> reply) {
            ReadLog([this](LogRead read,
                           std::function<void()> done) { readers_->Add(std::move(read), std::move(done)); },
                    [](TuningLog* log) { return ReadLogFacts(*log); }, std::move(reply));
          },
          kFactsSeconds, time) {}

absl::StatusOr<std::unique_ptr<Pages>> Pages::Open(const std::string& log_path, ServerLoop* loop,
                                                   std::unique_ptr<HttpAccess> access,
                                                   const TimeSource* time) {
  std::unique_ptr<Pages> pages(new Pages(log_path, loop, std::move(access), time));
  // A read's answer is given on the reader's own thread.
  const LogReaders::Deliver here = [](const std::function<void()>& answer) { answer(); };
  // Damaged records are passed over; the loop's readers speak of them.
  const DamageListener unheard = [](int64_t, const absl::Status&) {};
  MYCC_ASSIGN_OR_RETURN(pages->readers_, LogReaders::Open(log_path, kReaders, here, unheard));
  return pages;
}

void Pages::Answer(const HttpRequest& request, const HttpReply& reply) {
  const HttpReply protected_reply = [reply](HttpResponse response) { reply(Protected(std::move(response))); };
  if (request.method != "GET" && request.method != "HEAD")
    return protected_reply(ErrorAnswer(405, "this server is read alone; expected GET or HEAD"));
  if (request.path == "/healthz") return protected_reply({.body = "ok\n"});
  if (request.path == "/readyz") return Ready(protected_reply);
  if (const std::optional<HttpResponse> asset = AssetAnswer(request)) return protected_reply(*asset);
  absl::string_view path = request.path;
  const bool is_api = absl::ConsumePrefix(&path, kApi);
  if (!is_api && request.path != "/metrics") return protected_reply(StatusAnswer(NoSuchPath(request.path)));
  if (const absl::Status may = access_->MayRead(request); !may.ok())
    return protected_reply(StatusAnswer(may));
  if (!is_api) return Metrics(protected_reply);
  AnswerApi(std::string(path), request, [request, protected_reply](const View& view) {
    protected_reply(view.ok() ? JsonAnswer(request, DumpJson(*view)) : StatusAnswer(view.status()));
  });
}

void Pages::AnswerApi(const std::string& path, const HttpRequest& request, const ViewReply& reply) {
  absl::string_view rest = path;
  if (path == "status") return Status(reply);
  if (path == "jobs") return Jobs(request, reply);
  if (path == "failures") return Failures(request, reply);
  if (path == "devices") return Devices(reply);
  if (path == "best") return Best(request, reply);
  if (path == "queue") {
    return overview_.Get([reply](const SharedRead<Overview>::Result& overview) {
      reply(overview.ok() ? View(QueueJson(**overview)) : overview.status());
    });
  }
  if (absl::ConsumePrefix(&rest, "records/")) return Record(std::string(rest), reply);
  if (absl::ConsumePrefix(&rest, "jobs/")) {
    if (absl::ConsumeSuffix(&rest, "/candidates")) return Candidates(std::string(rest), request, reply);
    return Job(std::string(rest), reply);
  }
  reply(NoSuchPath(request.path));
}

template <typename Value>
Reply<Value> Pages::Beside(Reply<Value> reply) {
  return [this, reply = std::move(reply)](absl::StatusOr<Value> answer) {
    auto kept = std::make_shared<absl::StatusOr<Value>>(std::move(answer));
    readers_->Add([](TuningLog*) {}, [reply, kept] { reply(std::move(*kept)); });
  };
}

template <typename Look>
void Pages::Read(Look look, const ViewReply& reply) {
  auto found = std::make_shared<View>(absl::UnknownError(""));
  readers_->Add([found, look = std::move(look)](TuningLog* log) { *found = look(*log); },
                [found, reply] { reply(std::move(*found)); });
}

void Pages::Ready(const HttpReply& reply) {
  if (loop_->SecondsSinceTurn() > kDeafSeconds)
    return reply({.status = 503, .body = "the deciding thread is busy\n"});
  overview_.Get([reply](const SharedRead<Overview>::Result& overview) {
    if (!overview.ok())
      return reply({.status = 503, .body = absl::StrCat(overview.status().message(), "\n")});
    if (!(*overview)->trouble.empty()) return reply({.status = 503, .body = "the log cannot be written\n"});
    reply({.body = "ready\n"});
  });
}

void Pages::Metrics(const HttpReply& reply) {
  overview_.Get([this, reply](const SharedRead<Overview>::Result& overview) {
    facts_.Get([this, reply, overview](const SharedRead<LogFacts>::Result& facts) {
      absl::Status status = overview.status();
      status.Update(facts.status());
      if (!status.ok()) return reply(StatusAnswer(status));
      reply({.type = "text/plain; version=0.0.4; charset=utf-8",
             .body = MetricsText(**overview, **facts, loop_->latencies(),
                                 ReadProcessFacts(started_unix_micros_))});
    });
  });
}

void Pages::Status(const ViewReply& reply) {
  overview_.Get([this, reply](const SharedRead<Overview>::Result& overview) {
    facts_.Get([this, reply, overview](const SharedRead<LogFacts>::Result& facts) {
      absl::Status status = overview.status();
      status.Update(facts.status());
      if (!status.ok()) return reply(status);
      const ServerFacts server{std::filesystem::path(log_path_).filename(), started_unix_micros_,
                               time_->UnixMicros()};
      reply(StatusJson(**overview, **facts, server));
    });
  });
}

void Pages::Jobs(const HttpRequest& request, const ViewReply& reply) {
  const absl::StatusOr<int64_t> limit = NumberOf(request, "limit", 100, 1000);
  if (!limit.ok()) return reply(limit.status());
  v1::ListJobsRequest list;
  list.set_limit(static_cast<uint32_t>(std::max<int64_t>(1, *limit)));  // 0 would be all
  loop_->ListJobs(list,
                  Beside<v1::ListJobsResponse>([reply](const absl::StatusOr<v1::ListJobsResponse>& jobs) {
                    reply(jobs.ok() ? View(JobsJson(*jobs)) : jobs.status());
                  }));
}

void Pages::Job(const std::string& id, const ViewReply& reply) {
  v1::WatchJobRequest watch;
  watch.set_job(id);
  loop_->WatchJob(
      watch, [] { return true; },
      [this, id, reply](const absl::StatusOr<v1::WatchJobResponse>& watched) {
        if (!watched.ok()) return reply(watched.status());
        Read(
            [this, id, job = watched->progress()](const TuningLog& log) -> View {
              MYCC_ASSIGN_OR_RETURN(const std::vector<TaskConvergence> tasks, convergences_.Read(log, id));
              return JobJson(job, tasks);
            },
            reply);
      });
}

void Pages::Candidates(const std::string& job, const HttpRequest& request, const ViewReply& reply) {
  CandidatePage page{.job = job};
  for (const auto& [name, field, usual, most] : {std::tuple("after", &page.after, int64_t{0}, INT64_MAX),
                                                 {"before", &page.before, 0, INT64_MAX},
                                                 {"limit", &page.limit, 1000, 5000}}) {
    const absl::StatusOr<int64_t> number = NumberOf(request, name, usual, most);
    if (!number.ok()) return reply(number.status());
    *field = *number;
  }
  page.newest = request.Query("after").empty();
  Read([page,
        task = request.Query("task")](const TuningLog& log) { return ReadCandidatesView(log, page, task); },
       reply);
}

void Pages::Failures(const HttpRequest& request, const ViewReply& reply) {
  const absl::StatusOr<int64_t> limit = NumberOf(request, "limit", 500, 2000);
  if (!limit.ok()) return reply(limit.status());
  Read([job = request.Query("job"), limit = std::max<int64_t>(1, *limit)](
           const TuningLog& log) { return ReadFailuresView(log, job, limit); },
       reply);
}

void Pages::Record(const std::string& id, const ViewReply& reply) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(id, &number))
    return reply(absl::InvalidArgumentError(absl::StrCat("\"", id, "\" is no record; expected its number")));
  Read(
      [number](const TuningLog& log) -> View {
        MYCC_ASSIGN_OR_RETURN(const StoredRecord record, log.Get(number));
        return RecordJson(record);
      },
      reply);
}

void Pages::Devices(const ViewReply& reply) {
  overview_.Get([this, reply](const SharedRead<Overview>::Result& overview) {
    history_.Get([reply, overview](const SharedRead<DeviceHistory>::Result& history) {
      absl::Status status = overview.status();
      status.Update(history.status());
      reply(status.ok() ? View(DevicesJson(**overview, **history)) : status);
    });
  });
}

void Pages::Best(const HttpRequest& request, const ViewReply& reply) {
  const absl::StatusOr<int64_t> limit = NumberOf(request, "limit", 100, 500);
  const absl::StatusOr<int64_t> before = NumberOf(request, "before", 0, INT64_MAX);
  absl::Status status = limit.status();
  status.Update(before.status());
  if (!status.ok()) return reply(status);
  Read([limit = std::max<int64_t>(1, *limit), before = *before, text = request.Query("text")](
           const TuningLog& log) { return ReadBestView(log, before, text, limit); },
       reply);
}

}  // namespace mycc

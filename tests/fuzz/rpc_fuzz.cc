// Any sequence of calls, of several workers and clients, under a fake clock, with restarts, a log that cannot
// be written and callers that go away. No handler fails a check; each call is answered once, with an error
// that is meant; a lease is given once, and an older one changes nothing; a result that was said to be kept
// is one record in the log, also after a restart.
//
// A call is one row of kRpcs.
#include <fuzzer/FuzzedDataProvider.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "google/protobuf/stubs/logging.h"
#include "server/call_limits.h"
#include "tests/fuzz/request_maker.h"
#include "tests/fuzz/scripted_search.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

constexpr int kMostCalls = 80;

// Errors by which a server says what is wrong with a call, or that it cannot do it now.
bool IsMeant(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted: return true;
    default: return false;
  }
}

class World;
struct FuzzedRpc {
  const char* name;
  void (*call)(World*);
};

class World {
 public:
  explicit World(FuzzedDataProvider* bytes)
      : bytes_(bytes), maker_(bytes), server_(FakeServer::DefaultOptions(), StartScriptedSearch) {}

  void Run();

  // Sends a request, made of the bytes, to `handle`; an answer goes to `note`.
  template <typename Request, typename Response>
  void Call(const char* name,
            void (*handle)(Coordinator&, const Request&, const IsAlive&, const Reply<Response>&),
            void (World::*note)(const Request&, const Response&)) {
    Request request;
    maker_.Fill(&request);
    // Over the wire: a text that is none ends here.
    std::string wire;
    if (!request.SerializeToString(&wire) || !request.ParseFromString(wire)) return;
    if (!CheckMessageLimits(request).ok()) return;
    auto answers = std::make_shared<int>(0);
    auto alive = std::make_shared<bool>(true);
    open_.push_back({name, answers, alive});
    handle(
        *server_, request, [alive] { return *alive; },
        [this, name, answers, alive, request, note](absl::StatusOr<Response> response) {
          MYCC_CHECK(++*answers == 1) << name << " is answered twice";
          // Nobody hears the answer to a caller that is gone.
          const bool tells_nobody = absl::IsCancelled(response.status()) && !*alive;
          MYCC_CHECK(IsMeant(response.status()) || tells_nobody) << name << ": " << response.status();
          if (response.ok() && note != nullptr) (this->*note)(request, *response);
        });
  }

  void OnRegistered(const v1::RegisterRequest&, const v1::RegisterResponse& response) {
    MYCC_CHECK(sessions_.insert(response.session()).second) << response.session();
    maker_.sessions.push_back(response.session());
  }
  void OnLeased(const v1::LeaseRequest& request, const v1::LeaseResponse& response) {
    for (const v1::Assignment& assignment : response.assignments()) {
      const v1::LeaseId& lease = assignment.lease();
      const bool is_new = given_.insert({lease.trial(), lease.attempt()}).second;
      MYCC_CHECK(is_new) << lease.trial() << " is given twice as attempt " << lease.attempt();
      uint32_t& latest = latest_[lease.trial()];
      MYCC_CHECK(lease.attempt() > latest) << lease.trial() << " has an older attempt than before";
      MYCC_CHECK(!kept_.contains(lease.trial())) << lease.trial() << " is over, and given again";
      latest = lease.attempt();
      if (assignment.rivals_size() > 0) rounds_.insert(lease.trial());
      maker_.leases.push_back({request.session(), assignment});
    }
  }
  void OnReported(const v1::ReportRequest& request, const v1::ReportResponse& response) {
    for (const v1::ReportAnswer& answer : response.answers()) {
      if (answer.kind() != v1::ReportAnswer::KEPT) continue;
      const v1::LeaseId& lease = answer.lease();
      bool is_reported = false, is_finished = false;
      for (const v1::Report& report : request.reports()) {
        const bool is_it =
            report.lease().trial() == lease.trial() && report.lease().attempt() == lease.attempt();
        is_reported |= is_it;
        // A failure may be tried once more elsewhere.
        is_finished |= is_it && report.result().status() == v1::MEASURE_STATUS_OK;
      }
      MYCC_CHECK(is_reported) << lease.trial() << " is kept, and was not reported";
      if (!latest_.contains(lease.trial())) continue;  // of a grant whose answer a restart has lost
      MYCC_CHECK(lease.attempt() == latest_[lease.trial()]) << lease.trial() << ": an older attempt is kept";
      if (is_finished && !rounds_.contains(lease.trial())) kept_.insert(lease.trial());
    }
  }
  void OnSubmitted(const v1::SubmitJobRequest&, const v1::SubmitJobResponse& response) {
    maker_.jobs.push_back(response.progress().job());
    jobs_.insert(response.progress().job());
  }

 private:
  struct Open {
    const char* name;
    std::shared_ptr<int> answers;
    std::shared_ptr<bool> alive;
  };

  void Disturb();
  void Restart();
  void End();

  FuzzedDataProvider* const bytes_;
  RequestMaker maker_;
  std::vector<Open> open_;  // since the last restart
  std::set<std::string> sessions_, jobs_, kept_;
  std::set<std::string> rounds_;  // final rounds, whose results are other records
  std::set<std::pair<std::string, uint32_t>> given_;
  std::map<std::string, uint32_t> latest_;  // attempt of a trial
  FakeServer server_;
};

template <typename Response>
JobReply AsProgress(const Reply<Response>& reply) {
  return [reply](absl::StatusOr<v1::JobProgress> progress) {
    if (!progress.ok()) return reply(progress.status());
    Response response;
    *response.mutable_progress() = *std::move(progress);
    reply(std::move(response));
  };
}

// The calls of ServerLoop.
constexpr FuzzedRpc kRpcs[] = {
    {"Register",
     [](World* world) {
       world->Call<v1::RegisterRequest, v1::RegisterResponse>(
           "Register",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.workers().Register(request, reply);
           },
           &World::OnRegistered);
     }},
    {"Lease",
     [](World* world) {
       world->Call<v1::LeaseRequest, v1::LeaseResponse>(
           "Lease",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             server.workers().Lease(request, alive, reply);
           },
           &World::OnLeased);
     }},
    {"Report",
     [](World* world) {
       world->Call<v1::ReportRequest, v1::ReportResponse>(
           "Report",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.workers().Report(request, reply);
           },
           &World::OnReported);
     }},
    {"Heartbeat",
     [](World* world) {
       world->Call<v1::HeartbeatRequest, v1::HeartbeatResponse>(
           "Heartbeat",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.workers().Heartbeat(request, reply);
           },
           nullptr);
     }},
    {"Leave",
     [](World* world) {
       world->Call<v1::LeaveRequest, v1::LeaveResponse>(
           "Leave",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.workers().Leave(request, reply);
           },
           nullptr);
     }},
    {"SubmitJob",
     [](World* world) {
       world->Call<v1::SubmitJobRequest, v1::SubmitJobResponse>(
           "SubmitJob",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.Submit(request, AsProgress(reply));
           },
           &World::OnSubmitted);
     }},
    {"ListJobs",
     [](World* world) {
       world->Call<v1::ListJobsRequest, v1::ListJobsResponse>(
           "ListJobs",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.jobs().listing().List(request.limit(), reply);
           },
           nullptr);
     }},
    {"WatchJob",
     [](World* world) {
       world->Call<v1::WatchJobRequest, v1::WatchJobResponse>(
           "WatchJob",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             const absl::Status heard =
                 server.jobs().Renew(request.job(), request.client(), request.wait_seconds());
             if (!heard.ok()) return reply(heard);
             server.Show(request.job(), AsProgress(reply));
           },
           nullptr);
     }},
    {"CancelJob",
     [](World* world) {
       world->Call<v1::CancelJobRequest, v1::CancelJobResponse>(
           "CancelJob",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.jobs().Cancel(request, AsProgress(reply));
           },
           nullptr);
     }},
    {"LeaveJob",
     [](World* world) {
       world->Call<v1::LeaveJobRequest, v1::LeaveJobResponse>(
           "LeaveJob",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.jobs().Leave(request, AsProgress(reply));
           },
           nullptr);
     }},
    {"LeaseBuilds",
     [](World* world) {
       world->Call<v1::LeaseBuildsRequest, v1::LeaseBuildsResponse>(
           "LeaseBuilds",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             (void)request, (void)alive;
             server.workers().LeaseBuilds(request, alive, reply);
           },
           nullptr);
     }},
    {"ReportBuilds",
     [](World* world) {
       world->Call<v1::ReportBuildsRequest, v1::ReportBuildsResponse>(
           "ReportBuilds",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             (void)request, (void)alive;
             server.workers().ReportBuilds(request, reply);
           },
           nullptr);
     }},
    {"FetchArtifact",
     [](World* world) {
       world->Call<v1::FetchArtifactRequest, v1::FetchArtifactResponse>(
           "FetchArtifact",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             (void)request, (void)alive;
             server.workers().FetchArtifact(request, reply);
           },
           nullptr);
     }},
    {"UpdateJob",
     [](World* world) {
       world->Call<v1::UpdateJobRequest, v1::UpdateJobResponse>(
           "UpdateJob",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             (void)request, (void)alive;
             server.Update(request, AsProgress(reply));
           },
           nullptr);
     }},
    {"ListOwners",
     [](World* world) {
       world->Call<v1::ListOwnersRequest, v1::ListOwnersResponse>(
           "ListOwners",
           [](auto& server, const auto& request, const auto& alive, const auto& reply) {
             (void)request, (void)alive;
             reply(server.jobs().ListOwners());
           },
           nullptr);
     }},
    {"ListDevices",
     [](World* world) {
       world->Call<v1::ListDevicesRequest, v1::ListDevicesResponse>(
           "ListDevices",
           [](auto& server, const auto&, const auto&, const auto& reply) {
             v1::ListDevicesResponse response;
             for (const v1::DeviceStatus& device : server.workers().Devices())
               *response.add_devices() = device;
             reply(std::move(response));
           },
           nullptr);
     }},
    {"Best",
     [](World* world) {
       world->Call<v1::BestRequest, v1::BestResponse>(
           "Best",
           [](auto& server, const auto& request, const auto&, const auto& reply) {
             server.Best(request, reply);
           },
           nullptr);
     }},
};

// The accidents beside calls.
void World::Disturb() {
  switch (bytes_->ConsumeIntegralInRange<int>(0, 9)) {
    case 0: server_.HoldWrites(true); break;
    case 1: server_.HoldWrites(false); break;
    case 2: server_.HoldReadEnds(true); break;
    case 3: server_.HoldReadEnds(false); break;
    case 4: server_.FailWrites(absl::ResourceExhaustedError("the disk is full")); break;
    case 5: server_.FailWrites(absl::OkStatus()); break;
    case 6: Restart(); break;
    case 7:
      if (!open_.empty()) *open_[bytes_->ConsumeIntegralInRange<size_t>(0, open_.size() - 1)].alive = false;
      break;
    case 8: server_.Commit(); break;
    default: server_.Wait(bytes_->ConsumeIntegralInRange<int>(1, 400) / 10.0);
  }
}

// Answers that were not given are lost, as those of a process that was killed.
void World::Restart() {
  server_.HoldWrites(false);
  server_.HoldReadEnds(false);
  server_.FailWrites(absl::OkStatus());
  open_.clear();
  server_.Restart();
}

void World::End() {
  server_.HoldWrites(false);
  server_.HoldReadEnds(false);
  server_.FailWrites(absl::OkStatus());
  for (int i = 0; i < 8; ++i) server_.Wait(10);
  server_->jobs().RefuseWaiting(absl::UnavailableError("the server is stopping"));
  server_->workers().RefuseWaiting(absl::UnavailableError("the server is stopping"));
  server_.Commit();
  for (const Open& open : open_) MYCC_CHECK(*open.answers == 1) << open.name << " has no answer";
  std::set<std::string> recorded;
  for (const std::string& job : jobs_) {
    for (const auto& [trial, trace] : server_.TracesOf(job)) recorded.insert(trial);
  }
  for (const std::string& trial : kept_)
    MYCC_CHECK(recorded.contains(trial)) << trial << " was kept, and is lost";
}

void World::Run() {
  for (int i = 0; i < kMostCalls && bytes_->remaining_bytes() > 0; ++i) {
    const auto row = bytes_->ConsumeIntegralInRange<size_t>(0, std::size(kRpcs) + 3);
    if (row < std::size(kRpcs)) {
      kRpcs[row].call(this);
      if (bytes_->ConsumeBool()) server_.Commit();
    } else if (row == std::size(kRpcs)) {
      Disturb();
    } else {
      server_.Wait(0.1);
    }
  }
  End();
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  testing::InitGoogleTest(argc, *argv);
  google::protobuf::SetLogHandler(nullptr);  // of texts that are none
  GTEST_FLAG_SET(break_on_failure, true);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  mycc::World(&bytes).Run();
  return 0;
}

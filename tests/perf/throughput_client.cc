#include "tests/perf/throughput_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/time_source.h"
#include "tests/perf/throughput_process.h"
#include "tests/perf/throughput_search.h"

namespace mycc {
namespace {

constexpr char kCommand[] = "best";
constexpr auto kPause = std::chrono::milliseconds(1);  // of a person, between two calls
constexpr auto kCallTime = std::chrono::seconds(60);

// The client's preface of HTTP/2, and an empty SETTINGS frame.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

template <typename Request, typename Response>
Response Call(v1::TuningService::Stub* stub,
              grpc::Status (v1::TuningService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
              const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTime);
  Response response;
  const grpc::Status status = (stub->*method)(&context, request, &response);
  MYCC_CHECK(status.ok()) << status.error_message();
  return response;
}

}  // namespace

TuningUser::TuningUser(const std::string& address)
    : stub_(v1::TuningService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

std::string TuningUser::Submit(const v1::JobSpec& spec) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  return Call(stub_.get(), &v1::TuningService::Stub::SubmitJob, request).progress().job();
}

v1::JobProgress TuningUser::Show(const std::string& job) {
  v1::WatchJobRequest request;
  request.set_job(job);
  return Call(stub_.get(), &v1::TuningService::Stub::WatchJob, request).progress();
}

void TuningUser::Cancel(const std::string& job) {
  v1::CancelJobRequest request;
  request.set_job(job);
  Call(stub_.get(), &v1::TuningService::Stub::CancelJob, request);
}

double TuningUser::SecondsOfBest(const std::string& workload_hash, const std::string& target, bool* found) {
  v1::BestRequest request;
  request.set_workload_hash(workload_hash);
  request.set_target(target);
  request.set_top(1);
  const double begun = SystemTime().Seconds();
  const v1::BestResponse best = Call(stub_.get(), &v1::TuningService::Stub::Best, request);
  *found = best.records_size() > 0;
  return SystemTime().Seconds() - begun;
}

std::optional<int> RunLookups(int argc, char** argv) {
  int calls = 0;
  if (argc < 5 || argv[1] != std::string(kCommand) || !absl::SimpleAtoi(argv[3], &calls)) return std::nullopt;
  TuningUser user(argv[2]);
  std::vector<std::string> hashes;
  for (int i = 4; i < argc; ++i) {
    const absl::StatusOr<Workload> workload = ParseWorkload(BenchWorkload(std::atoi(argv[i])), "bench");
    hashes.push_back(WorkloadHash(workload.value()));
  }
  for (int i = 0; i < calls; ++i) {
    bool found = false;
    const std::string& hash = hashes[static_cast<size_t>(i) % hashes.size()];
    const double seconds = user.SecondsOfBest(hash, kBenchTarget, &found);
    MYCC_CHECK(found) << "no record of the workload with hash " << hash;
    std::printf("%.9f\n", seconds);
    std::this_thread::sleep_for(kPause);
  }
  return 0;
}

std::vector<double> SecondsOfLookups(const std::string& address, int calls, const std::vector<int>& shapes) {
  std::vector<std::string> arguments = {kCommand, address, absl::StrCat(calls)};
  for (const int shape : shapes) arguments.push_back(absl::StrCat(shape));
  PartProcess process(arguments);
  std::vector<double> seconds;
  for (double one = 0; absl::SimpleAtod(process.ReadLine(), &one);) seconds.push_back(one);
  MYCC_CHECK(static_cast<int>(seconds.size()) == calls) << "look-ups failed";
  return seconds;
}

SilentConnections::SilentConnections(int count, int port) {
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<uint16_t>(port));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < count; ++i) {
    const int connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MYCC_CHECK(connected >= 0 &&
               connect(connected, reinterpret_cast<const sockaddr*>(&server), sizeof(server)) == 0)
        << "connection " << i << ": " << strerror(errno);
    MYCC_CHECK(send(connected, kPreface, sizeof(kPreface) - 1, MSG_NOSIGNAL) > 0);
    sockets_.push_back(connected);
  }
}

SilentConnections::~SilentConnections() {
  for (const int socket : sockets_) close(socket);
}

}  // namespace mycc

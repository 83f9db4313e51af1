#include "tests/perf/throughput_server.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/grpc_server.h"
#include "server/server_loop.h"
#include "tests/perf/throughput_search.h"

namespace mycc {
namespace {

constexpr char kCommand[] = "serve";

int Serve(const std::string& path, const std::string& address) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // in all threads: it is waited for below
  auto log = TuningLog::Open(path, OpenMode::kServe);
  MYCC_CHECK(log.ok()) << log.status();
  ServerLoopOptions options;
  options.start_search = StartScriptedSearch;
  auto loop = std::make_unique<ServerLoop>(options, log->get(), &SystemTime());
  const absl::Status started = loop->Start();
  MYCC_CHECK(started.ok()) << started;
  ListenOptions listen;
  listen.address = address;
  auto grpc = GrpcServer::Start(listen, loop.get());
  MYCC_CHECK(grpc.ok()) << grpc.status();
  std::printf("%s\n", (*grpc)->address().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  grpc->reset();
  loop.reset();
  return (*log)->Close().ok() ? 0 : 1;
}

}  // namespace

std::optional<int> RunServer(int argc, char** argv) {
  if (argc != 4 || std::string(argv[1]) != kCommand) return std::nullopt;
  return Serve(argv[2], argv[3]);
}

ServerProcess::ServerProcess(const std::string& log, int port)
    : process_({kCommand, log, absl::StrCat("127.0.0.1:", port)}), address_(process_.ReadLine()) {
  const size_t colon = address_.rfind(':');
  MYCC_CHECK(colon != std::string::npos && absl::SimpleAtoi(address_.substr(colon + 1), &port_))
      << "the server did not start";
}

void ServerProcess::Stop() { process_.End(SIGTERM); }
void ServerProcess::Kill() { process_.End(SIGKILL); }

double ServerProcess::resident_mb() const {
  std::ifstream status(absl::StrCat("/proc/", process_.pid(), "/status"));
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes / 1000;
  }
  return 0;
}

double ServerProcess::cpu_seconds() const {
  std::ifstream stat(absl::StrCat("/proc/", process_.pid(), "/stat"));
  std::string word;
  constexpr int kUserTicks = 14,
                kSystemTicks = 15;  // the fields' numbers; the name of this program is one word
  double ticks = 0;
  for (int field = 1; field <= kSystemTicks && stat >> word; ++field) {
    double number = 0;
    if (field >= kUserTicks && absl::SimpleAtod(word, &number)) ticks += number;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace mycc

// The commands of mycc-tune, without their command lines (main.cc). A command prints its results to `out` and
// returns a one-line error.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "command/model.h"
#include "mycc_tune/default_log.h"
#include "mycc_tune/embedded.h"
#include "mycc_tune/event_writer.h"
#include "proto/channel.h"
#include "server/grpc_server.h"
#include "worker/local_worker.h"

namespace mycc {

struct ServeOptions {
  std::string log = kDefaultLog;
  ListenOptions listen;
  std::string credentials;  // a folder (credential_folder.h); empty: files are named by themselves
  std::string http;         // "HOST:PORT" of the web page; empty: none
  double lease_seconds = 20;
  double search_memory_gib = 2;  // of each job's search, beside 64 MiB for each of its tasks
  int most_searches = 64;        // processes
  LogFormat log_format = LogFormat::kText;
  std::string quotas;  // a file; empty: no limits
};
// Until SIGINT or SIGTERM.
absl::Status ServeCommand(const ServeOptions& options, std::ostream& out);

// Until SIGINT or SIGTERM: measurements under way are finished and reported, the rest goes back.
absl::Status WorkerCommand(LocalWorkerOptions options, LogFormat log_format, std::ostream& out);

struct TuneOptions {
  std::vector<std::string> files;
  ModelSource model;                    // the options of the models among the files; its file is empty
  std::optional<ServerAddress> server;  // none: one of its own
  std::string log = kDefaultLog;
  std::vector<std::string> targets = {"host"};  // each workload is tuned for each
  uint32_t trials = 0;                          // of the job; 0: as the budget allows
  std::string budget;                           // "8m"
  std::string min_gain;  // "0.5%", of the next minute or as many trials again; empty: whatever they gain
  std::optional<uint64_t> seed;
  std::string cache;  // "warm" or "cold"; empty: the usual one of the target
  std::string strategy = "evolutionary";
  int priority = 0;
  std::string deadline;  // "18:00", "2h"; empty: none
  bool only_when_idle = false;
  bool measures_constants = true;  // of the devices of this host, where the log lacks them
  bool fresh = false;
  bool detach = false;  // from the server, which goes on without this command
  bool json = false;
  bool quiet = false;  // the result alone, without the progress
};
// An interrupt leaves the job, which the same command continues; another one ends the process at once.
absl::Status TuneCommand(const TuneOptions& options, std::ostream& out);

struct JobOptions {
  ServerAddress server;
  std::string job;
  uint32_t limit = 20;
  std::string owner;  // of `jobs` and `quota`: of this owner alone
  bool mine = false;  // of the user who asks
  bool json = false;
  bool quiet = false;  // of watch: the result alone, without the progress
};
struct SetOptions {
  ServerAddress server;
  std::string job;
  std::optional<int> priority;
  std::string deadline;  // "18:00", "2h", "none"; empty: as it is
  bool json = false;
};
// Changes the terms of a job that has not ended.
absl::Status SetCommand(const SetOptions& options, std::ostream& out);
// The use and the limits of owners.
absl::Status QuotaCommand(const JobOptions& options, std::ostream& out);
absl::Status JobsCommand(const JobOptions& options, std::ostream& out);
absl::Status WatchCommand(const JobOptions& options, std::ostream& out);
absl::Status CancelCommand(const JobOptions& options, std::ostream& out);
absl::Status DevicesCommand(const JobOptions& options, std::ostream& out);

struct BestOptions {
  ModelSource model;
  std::optional<ServerAddress> server;
  std::string log = kDefaultLog;
  std::string target = "host";
  std::string cache;  // "warm" or "cold"; empty: the usual one of the target
  uint32_t top = 1;
  bool json = false;
};
absl::Status BestCommand(const BestOptions& options, std::ostream& out);

struct MeasureOptions {
  std::string file;
  std::string trace;  // a file
  std::string target = "host";
  std::string cache;  // "warm" or "cold"; empty: the usual one of the target
  uint64_t seed = 0;
  bool json = false;
};
// One candidate, here: built, verified and timed as a worker would. FailedPrecondition when it is not OK.
absl::Status MeasureCommand(const MeasureOptions& options, std::ostream& out);

// The word of --cache; UNSPECIFIED for none. Misuse for another.
absl::StatusOr<v1::TimingProtocol> ReadProtocol(const std::string& word);

// A duration: "90s", "8m", "1h30m", or seconds as a plain number. Misuse otherwise.
absl::StatusOr<double> ParseBudget(const std::string& text);

// A share: "0.5%" or 0.005. Misuse unless it is between 0 and 1.
absl::StatusOr<double> ParseMinGain(const std::string& text);

}  // namespace mycc

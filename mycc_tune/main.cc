// Parses the command line of mycc-tune; commands.h does the work.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "command/choices.h"
#include "command/command_line.h"
#include "command/misuse.h"
#include "command/model_options.h"
#include "command/numbers.h"
#include "mycc_tune/auth_cli.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/doctor_cli.h"
#include "mycc_tune/interrupt.h"
#include "mycc_tune/knowledge_cli.h"
#include "mycc_tune/log_cli.h"
#include "mycc_tune/program.h"
#include "mycc_tune/simulate_cli.h"
#include "process/confine.h"
#include "server/job_terms.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

// CLI11's check of an address: the error of a word that is none, or nothing.
std::string AddressTrouble(const std::string& word) { return std::string(CheckAddress(word).message()); }

void AddServerAddress(CLI::App* app, ServerAddress* server) {
  app->add_option("--server", server->address, "the server: HOST:PORT or unix:/PATH")
      ->check(AddressTrouble)
      ->capture_default_str();
  app->add_option("--tls-ca", server->tls_ca_file,
                  "certificates to trust (PEM), or `system`; without this option, no encryption")
      ->type_name("FILE");
  app->add_option("--token-file", server->token_file, "a file with the server's token, or with one's own")
      ->type_name("FILE");
  app->add_option("--tls-cert", server->tls_cert_file,
                  "one's own certificate, for a server that asks for it (PEM)")
      ->type_name("FILE");
  app->add_option("--tls-key", server->tls_key_file, "its private key (PEM)")->type_name("FILE");
  app->add_option("--credentials", server->credentials,
                  "a folder with ca.pem and token, or cert.pem and key.pem, for options that are not given")
      ->type_name("DIR")
      ->envname("MYCC_TUNE_CREDENTIALS");
}

// The same where a server is optional: the callback tells whether it was named.
std::shared_ptr<ServerAddress> AddOptionalServer(CLI::App* app) {
  auto server = std::make_shared<ServerAddress>();
  server->address.clear();
  AddServerAddress(app, server.get());
  return server;
}
std::optional<ServerAddress> Named(const ServerAddress& server) {
  return server.address.empty() ? std::nullopt : std::make_optional(server);
}

// CLI11's option for a word, which FormatOf reads.
void AddLogFormat(CLI::App* app, std::string* word) {
  app->add_option("--log-format", *word, "what is printed: text for people, or json, one event a line")
      ->check(OneOf({"text", "json"}))
      ->capture_default_str();
}
LogFormat FormatOf(const std::string& word) { return word == "json" ? LogFormat::kJson : LogFormat::kText; }

void AddServe(CLI::App* app, Command* command) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* sub = app->add_subcommand("serve", "run the server: jobs, workers and the tuning log");
  sub->add_option("--log", options->log, "the tuning log; made if there is none")
      ->type_name("FILE")
      ->capture_default_str();
  sub->add_option("--listen", options->listen.address, "HOST:PORT (port 0: any free one) or unix:/PATH")
      ->check(AddressTrouble)
      ->capture_default_str();
  sub->add_option("--credentials", options->credentials,
                  "a folder that `mycc-tune auth init` made: server/cert.pem, server/key.pem, ca.pem and "
                  "access.json in it "
                  "stand for the options that name them")
      ->type_name("DIR");
  sub->add_option("--tls-cert", options->listen.tls_cert_file, "the server's certificate chain (PEM)")
      ->type_name("FILE");
  sub->add_option("--tls-key", options->listen.tls_key_file, "its private key (PEM)")->type_name("FILE");
  sub->add_option("--token-file", options->listen.token_file,
                  "a file with the token that clients and workers must show")
      ->type_name("FILE");
  sub->add_option("--access", options->listen.access_file,
                  "the callers and what each may do: access.json, as `mycc-tune auth init` writes it")
      ->type_name("FILE");
  sub->add_option("--tls-client-ca", options->listen.tls_client_ca_file,
                  "the authority that signs the certificates of clients and workers (PEM)")
      ->type_name("FILE");
  sub->add_flag("--tls-require-client-cert", options->listen.tls_require_client_certificate,
                "refuse connections without such a certificate, also those with a token");
  sub->add_flag(
      "--insecure-allow-remote", options->listen.insecure_allow_remote,
      "accept other hosts without TLS and token: everybody who reaches the server runs code on the workers");
  sub->add_option("--http", options->http, "HOST:PORT of the web page, metrics and health; none if not given")
      ->type_name("ADDRESS")
      ->check(AddressTrouble);
  sub->add_option("--lease-seconds", options->lease_seconds,
                  "seconds of silence after which a worker's trials go to others")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str();
  sub->add_option(
         "--search-memory", options->search_memory_gib,
         "memory limit of a job's search, in GiB, to which each task adds 64 MiB; a job whose search "
         "needs more fails")
      ->check(CLI::Range(0.25, 1024.0))
      ->capture_default_str();
  sub->add_option(
         "--searches", options->most_searches,
         "processes that search; those of jobs at rest end where there are more, and begin again when "
         "they are needed")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_option("--quotas", options->quotas, "the limits of owners, as JSON; read again when it changes")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  auto format = std::make_shared<std::string>("text");
  AddLogFormat(sub, format.get());
  sub->callback([=] {
    options->log_format = FormatOf(*format);
    *command = [=] { return ServeCommand(*options, std::cout); };
  });
}

// The words of --role.
const std::map<std::string, v1::WorkerRole> kRoles = {
    {"both", v1::WORKER_ROLE_BOTH}, {"build", v1::WORKER_ROLE_BUILD}, {"measure", v1::WORKER_ROLE_MEASURE}};

void AddConfinement(CLI::App* app, ConfinementMode* mode) {
  auto* required = app->add_flag_callback(
      "--require-confinement", [mode] { *mode = ConfinementMode::kRequired; },
      "do not start where the kernel does not let candidates be confined fully");
  app->add_flag_callback(
         "--no-confinement", [mode] { *mode = ConfinementMode::kOff; },
         "run candidates with this user's network, files and processes")
      ->excludes(required);
}

void AddCalibration(CLI::App* app, bool* measures_constants) {
  app->add_flag_callback(
         "--no-calibration", [measures_constants] { *measures_constants = false; },
         "do not measure the device's peaks, bandwidths and latencies, which is done once for each device "
         "and "
         "log; predictions then use round numbers")
      ->envname("MYCC_TUNE_NO_CALIBRATION");
}

void AddWorker(CLI::App* app, Command* command) {
  auto options = std::make_shared<LocalWorkerOptions>();
  CLI::App* sub = app->add_subcommand("worker", "build and measure candidates for a server");
  auto role = std::make_shared<std::string>("both");
  options->server.address.clear();  // a worker is told for whom it works
  AddServerAddress(sub, &options->server);
  sub->get_option("--server")->required();
  sub->add_option("--device", options->devices, "a device to measure on: cpu, cuda:0; repeatable")
      ->capture_default_str();
  sub->add_option("--name", options->name, "the worker's name; made of host and process if not given");
  sub->add_option("--builders", options->builders,
                  "number of processes that build at once; one for each CPU if not given")
      ->check(CLI::Range(1, 1024));
  sub->add_option(
         "--role", *role,
         "build: build GPU candidates for other hosts, without a device; measure: leave that to them "
         "where there are some")
      ->check(OneOf({"both", "build", "measure"}))
      ->capture_default_str();
  sub->add_option("--target", options->build_targets,
                  "a GPU to build for with --role build: h200; repeatable; all known ones if not given")
      ->type_name("TARGET")
      ->excludes(sub->get_option("--device"));
  AddConfinement(sub, &options->confinement);
  AddCalibration(sub, &options->measures_constants);
  auto format = std::make_shared<std::string>("text");
  AddLogFormat(sub, format.get());
  sub->callback([=] {
    options->role = kRoles.at(*role);
    const bool builds = options->role == v1::WORKER_ROLE_BUILD;
    const bool names_device = sub->get_option("--device")->count() > 0;
    *command = [=]() -> absl::Status {
      if (builds && names_device)
        return Misuse(
            "a worker that builds for others has no device; expected --role build without --device");
      if (!builds && !options->build_targets.empty())
        return Misuse("--target names the GPUs that are built for; expected it with --role build");
      return WorkerCommand(*options, FormatOf(*format), std::cout);
    };
  });
}

template <typename Number>
void AddPriority(CLI::App* app, Number* priority) {
  app->add_option("--priority", *priority, "jobs of a higher priority have their trials first: -10 to 10")
      ->check(CLI::Range(-kMostPriority, kMostPriority));
}

void AddTune(CLI::App* app, Command* command) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* sub = app->add_subcommand("tune", "find the best schedules of workloads");
  sub->add_option("FILE", options->files, "workloads (.te) or models (.onnx)")->type_name("FILE")->required();
  AddModelOptions(sub, &options->model);
  auto server = AddOptionalServer(sub);
  auto* log = sub->add_option("--log", options->log, "the tuning log, when no server is named")
                  ->type_name("FILE")
                  ->capture_default_str();
  log->excludes(sub->get_option("--server"));
  sub->add_option("--target", options->targets,
                  "the target: host, cuda:0, a preset's name, or `v1 cpu mcpu=...`; repeatable")
      ->type_name("TARGET")
      ->take_all()
      ->allow_extra_args(false)
      ->capture_default_str();
  sub->add_option(
         "--trials", options->trials,
         "number of candidates to measure in all, where they gain most; 128 for each workload and target if "
         "there is no --budget, no --deadline and no model")
      ->check(CLI::Range(1, 1 << 24));
  sub->add_option("--budget", options->budget,
                  "time limit of the job with its final rounds: 90s, 8m, 1h30m; "
                  "10m, and --min-gain 0.5%, for a model without --trials");
  sub->add_option("--min-gain", options->min_gain,
                  "end when the next minute, or without a time limit as many trials again, is expected to "
                  "gain a smaller "
                  "share of the latency: 0.5%, 0.005")
      ->type_name("SHARE");
  sub->add_option("--deadline", options->deadline,
                  "end the job then, with its best so far: 18:00, 2026-12-01T18:00, or in 2h")
      ->type_name("TIME");
  AddPriority(sub, &options->priority);
  sub->add_flag("--only-when-idle", options->only_when_idle,
                "measure only on devices that have nothing else to do");
  sub->add_option("--seed", options->seed, "seed of the search")->check(NotWhole);
  sub->add_option("--cache", options->cache,
                  "time with warm or cold caches, or as in a model; if not given, cold on a GPU, model for a "
                  "model on a CPU, else warm")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--strategy", options->strategy, "of the search")
      ->check(OneOf(StrategyNames()))
      ->type_name("NAME")
      ->capture_default_str();
  auto* quiet = sub->add_flag("-q,--quiet", options->quiet, "print only the result, without progress");
  AddCalibration(sub, &options->measures_constants);
  sub->add_flag("--fresh", options->fresh, "search again although the log has the result already");
  sub->add_flag("--detach", options->detach, "submit to the server, and do not wait for the end")
      ->needs(sub->get_option("--server"));
  sub->add_flag("--json", options->json, "print JSON lines")->excludes(quiet);
  sub->callback([=] {
    options->server = Named(*server);
    *command = [=] { return TuneCommand(*options, std::cout); };
  });
}

using JobCommand = absl::Status (*)(const JobOptions&, std::ostream&);
void AddJobCommand(CLI::App* app, Command* command, const std::string& name, const std::string& what,
                   bool needs_job, JobCommand work) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* sub = app->add_subcommand(name, what);
  if (needs_job) sub->add_option("JOB", options->job, "the job's id")->required();
  if (name == "jobs")
    sub->add_option("--limit", options->limit, "number of jobs to list, the newest first; 0 for all")
        ->check(NotWhole)
        ->capture_default_str();
  if (name == "jobs" || name == "quota") {
    auto* owner = sub->add_option("--owner", options->owner, "of this owner alone");
    sub->add_flag("--mine", options->mine, "of you alone")->excludes(owner);
  }
  AddServerAddress(sub, &options->server);
  auto* json = sub->add_flag("--json", options->json, "print JSON lines");
  if (name == "watch") {
    sub->add_flag("-q,--quiet", options->quiet, "print the result alone, without the progress")
        ->excludes(json);
  }
  sub->callback([=] { *command = [=] { return work(*options, std::cout); }; });
}

void AddSet(CLI::App* app, Command* command) {
  auto options = std::make_shared<SetOptions>();
  CLI::App* sub = app->add_subcommand("set", "change the priority or the deadline of a job");
  sub->add_option("JOB", options->job, "the job's id")->required();
  AddPriority(sub, &options->priority);
  sub->add_option("--deadline", options->deadline,
                  "end the job then: 18:00, 2026-12-01T18:00, or in 2h; none: without a deadline")
      ->type_name("TIME");
  AddServerAddress(sub, &options->server);
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([=] { *command = [=] { return SetCommand(*options, std::cout); }; });
}

void AddBest(CLI::App* app, Command* command) {
  auto options = std::make_shared<BestOptions>();
  CLI::App* sub = app->add_subcommand("best", "show the best schedules that are known");
  sub->add_option("FILE", options->model.file, "workloads (.te) or a model (.onnx)")
      ->type_name("FILE")
      ->required();
  AddModelOptions(sub, &options->model);
  auto server = AddOptionalServer(sub);
  auto* log = sub->add_option("--log", options->log, "the tuning log, when no server is named")
                  ->type_name("FILE")
                  ->capture_default_str();
  log->excludes(sub->get_option("--server"));
  sub->add_option("--target", options->target, "host, cuda:0, a preset's name, or `v1 cpu mcpu=...`")
      ->type_name("TARGET")
      ->capture_default_str();
  sub->add_option(
         "--cache", options->cache,
         "timed with warm or cold caches, or as in a model; if not given, the usual ones, the best first")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--top", options->top, "number of schedules for each workload")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print JSON lines");
  sub->callback([=] {
    options->server = Named(*server);
    *command = [=] { return BestCommand(*options, std::cout); };
  });
}

void AddMeasure(CLI::App* app, Command* command) {
  auto options = std::make_shared<MeasureOptions>();
  CLI::App* sub = app->add_subcommand("measure", "build, verify and time one schedule on this machine");
  sub->add_option("FILE", options->file, "one workload (.te)")->type_name("FILE")->required();
  sub->add_option("--trace", options->trace, "a file with the schedule")->type_name("FILE")->required();
  sub->add_option("--target", options->target, "host, cuda:0, a preset's name, or `v1 cpu mcpu=...`")
      ->type_name("TARGET")
      ->capture_default_str();
  sub->add_option("--cache", options->cache,
                  "time with warm or cold caches, or as in a model; if not given, cold on a GPU, model for a "
                  "model on a CPU, else warm")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--seed", options->seed, "seed of the random inputs")
      ->check(NotWhole)
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([=] { *command = [=] { return MeasureCommand(*options, std::cout); }; });
}

}  // namespace

int RunProgram(int argc, char** argv) {
  CLI::App app("mycc-tune: finds the best schedules of tensor computations, and keeps them", "mycc-tune");
  app.require_subcommand(1);
  Command command;
  AddTune(&app, &command);
  AddServe(&app, &command);
  AddWorker(&app, &command);
  AddJobCommand(&app, &command, "jobs", "list a server's jobs", false, JobsCommand);
  AddJobCommand(&app, &command, "watch", "follow a job to its end", true, WatchCommand);
  AddJobCommand(&app, &command, "cancel", "end a job; its results are kept", true, CancelCommand);
  AddSet(&app, &command);
  AddJobCommand(&app, &command, "quota", "show what owners have used, and their limits", false, QuotaCommand);
  AddJobCommand(&app, &command, "devices", "list a server's workers and their devices", false,
                DevicesCommand);
  AddBest(&app, &command);
  AddMeasure(&app, &command);
  AddKnowledgeCommands(&app, &command, AddServerAddress);
  AddLogCommands(&app, &command);
  AddAuthCommands(&app, &command);
  AddDoctor(&app, &command, AddOptionalServer);
  AddSimulate(&app, &command);
  return RunCommandLine(&app, argc, argv, [&] {
    EndOnInterrupts();
    return command();
  });
}

}  // namespace mycc

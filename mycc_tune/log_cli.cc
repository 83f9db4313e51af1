#include "mycc_tune/log_cli.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "command/choices.h"
#include "command/misuse.h"
#include "command/numbers.h"
#include "command/sources.h"
#include "mycc_tune/job_report.h"
#include "mycc_tune/log_commands.h"
#include "mycc_tune/log_devices.h"
#include "mycc_tune/log_diff.h"
#include "mycc_tune/model_commands.h"
#include "mycc_tune/pack_commands.h"
#include "proto/names.h"
#include "worker/local_worker.h"

namespace mycc {
namespace {

constexpr double kSecondsADay = 86400;
constexpr double kMostDays = 36500;

// A subcommand whose arguments are `Args`, which live as long as the command.
template <typename Args>
struct Sub {
  CLI::App* app;
  std::shared_ptr<Args> args;
};

template <typename Args>
Sub<Args> AddSub(CLI::App* log, const std::string& name, const std::string& what) {
  Sub<Args> sub{log->add_subcommand(name, what), std::make_shared<Args>()};
  sub.app->add_option("--log", sub.args->log, "the tuning log")->type_name("FILE")->capture_default_str();
  return sub;
}

template <typename Args>
void Does(const Sub<Args>& sub, Command* command, absl::Status (*work)(const Args&, std::ostream&)) {
  sub.app->callback(
      [command, work, args = sub.args] { *command = [work, args] { return work(*args, std::cout); }; });
}

std::vector<std::string> StatusWords() {
  std::vector<std::string> words;
  for (int status = v1::MEASURE_STATUS_UNSPECIFIED + 1; v1::MeasureStatus_IsValid(status); ++status)
    words.push_back(StatusName(static_cast<v1::MeasureStatus>(status)));
  return words;
}

struct FilterWords {
  std::vector<std::string> statuses;
  std::string cache;
};

absl::Status ReadWords(const FilterWords& words, RecordFilter* filter) {
  for (const std::string& word : words.statuses) {
    MYCC_ASSIGN_OR_RETURN(filter->statuses.emplace_back(), ParseStatusName(word));
  }
  if (!filter->target.empty()) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(filter->target));
    filter->target = PrintTarget(target);
  }
  if (words.cache.empty()) return absl::OkStatus();
  const absl::StatusOr<v1::TimingProtocol> protocol = ParseProtocolName(words.cache);
  if (!protocol.ok()) return Misuse(absl::StrCat("--cache: ", protocol.status().message()));
  filter->protocol = *protocol;
  return absl::OkStatus();
}

std::shared_ptr<FilterWords> AddFilter(CLI::App* app, RecordFilter* filter) {
  auto words = std::make_shared<FilterWords>();
  app->add_option("--workload", filter->workload_name, "only records of workloads with this name");
  app->add_option("--hash", filter->workload_hash,
                  "only records of the workload with this hash, or beginning of a hash");
  app->add_option("--target", filter->target,
                  "only records for this target: host, cuda:0, a preset's name, or `v1 cpu mcpu=...`")
      ->type_name("TARGET");
  app->add_option("--job", filter->job, "only records of this job");
  app->add_option("--worker", filter->worker, "only records measured by this worker");
  app->add_option("--status", words->statuses, "only records with this status; repeatable")
      ->check(OneOf(StatusWords()));
  app->add_option("--cache", words->cache, "only records timed with warm or cold caches, or as in a model")
      ->check(OneOf({"warm", "cold", "model"}));
  return words;
}

// Like Does, after the words of the filter are read.
template <typename Args>
void DoesFiltered(const Sub<Args>& sub, const std::shared_ptr<FilterWords>& words, Command* command,
                  std::function<absl::Status(const Args&)> work) {
  sub.app->callback([command, work, words, args = sub.args] {
    *command = [work, words, args] {
      const absl::Status read = ReadWords(*words, &args->filter);
      return read.ok() ? work(*args) : read;
    };
  });
}

// Measures records again on this host.
absl::Status VerifyHere(const LogVerifyArgs& args) {
  LocalMeasurer measurer;
  std::random_device random;
  const Remeasure remeasure = [&](const v1::Record& record) -> absl::StatusOr<v1::MeasureResult> {
    v1::Assignment assignment;
    assignment.set_workload(record.workload());
    assignment.set_target(record.target());
    assignment.set_trace(record.trace());
    assignment.set_protocol(record.result().timing().protocol());
    assignment.set_seed((uint64_t{random()} << 32) | random());  // other inputs than before
    return measurer.Measure(assignment);
  };
  return LogVerifyCommand(args, remeasure, std::cout);
}

void AddReaders(CLI::App* log, Command* command) {
  const auto stats = AddSub<LogStatsArgs>(log, "stats", "count what the log holds");
  stats.app->add_flag("--json", stats.args->json, "print JSON");
  Does(stats, command, LogStatsCommand);

  const auto list = AddSub<LogListArgs>(log, "list", "list records, one line each");
  const auto words = AddFilter(list.app, &list.args->filter);
  list.app->add_option("--limit", list.args->filter.limit, "number of records, at most")->check(NotPositive);
  list.app->add_flag("--newest", list.args->filter.newest_first, "the newest first");
  list.app->add_flag("--current", list.args->filter.only_current, "leave out superseded records");
  list.app->add_flag("--foreign", list.args->foreign,
                     "the records of others, from signed packs, in place of the log's own");
  list.app->add_flag("--json", list.args->json, "print JSON lines");
  DoesFiltered<LogListArgs>(list, words, command,
                            [](const LogListArgs& args) { return LogListCommand(args, std::cout); });

  const auto devices = AddSub<LogDevicesArgs>(
      log, "devices", "show the devices' peaks, bandwidths and latencies, as their workers measured them");
  auto* lines = devices.app->add_flag("--json", devices.args->json, "print JSON lines");
  devices.app
      ->add_flag("--forget", devices.args->forget,
                 "forget them, so that workers measure them again when they start")
      ->excludes(lines);
  Does(devices, command, LogDevicesCommand);

  auto compared = std::make_shared<LogDiffArgs>();
  CLI::App* diff =
      log->add_subcommand("diff", "show what changed between two logs: the best records of each");
  diff->add_option("A", compared->first, "a log")->type_name("FILE")->required();
  diff->add_option("B", compared->second, "another one, such as a later backup")
      ->type_name("FILE")
      ->required();
  diff->add_flag("--json", compared->json, "print JSON lines");
  diff->callback(
      [command, compared] { *command = [compared] { return LogDiffCommand(*compared, std::cout); }; });

  const auto show =
      AddSub<LogShowArgs>(log, "show", "print everything about one record, or a job's generations");
  show.app->add_option("RECORD", show.args->record, "its id, its trial's name, or a job's id")->required();
  show.app->add_flag("--json", show.args->json, "print JSON");
  Does(show, command, LogShowCommand);

  const auto report = AddSub<LogReportArgs>(log, "report", "write a job's report, an HTML file by itself");
  report.app->add_option(
      "JOB", report.args->job,
      "the job's id; if not given, the newest with results. A log's jobs are named when JOB "
      "is none of them");
  report.app
      ->add_option("-o,--output", report.args->output,
                   "the file; report.html if not given, - for the standard output")
      ->type_name("FILE");
  report.app->add_flag("--json", report.args->json, "write the report's data alone, as JSON");
  Does(report, command, LogReportCommand);
}

void AddMovers(CLI::App* log, Command* command) {
  const auto exported =
      AddSub<LogExportArgs>(log, "export", "write records as JSON lines, or in the T4 format");
  const auto words = AddFilter(exported.app, &exported.args->filter);
  exported.app->add_option("--format", exported.args->format, "jsonl or t4")
      ->check(OneOf({"jsonl", "t4"}))
      ->capture_default_str();
  auto* sign = exported.app
                   ->add_option("--sign", exported.args->sign,
                                "sign the records that may be served as a pack, with this private key")
                   ->type_name("KEY")
                   ->excludes(exported.app->get_option("--format"));
  exported.app->add_option("--signer", exported.args->signer, "the name in the pack; USER@HOST if not given")
      ->type_name("NAME")
      ->needs(sign);
  exported.app
      ->add_option("-o,--output", exported.args->output, "the file; the standard output if not given or -")
      ->type_name("FILE");
  DoesFiltered<LogExportArgs>(exported, words, command,
                              [](const LogExportArgs& args) { return LogExportCommand(args, std::cout); });

  const auto imported = AddSub<LogImportArgs>(log, "import", "add records from JSON lines");
  imported.app->add_option("FILE", imported.args->inputs, "files that `log export` wrote")
      ->type_name("FILE")
      ->required();
  imported.app
      ->add_option(
          "--verify", imported.args->verify,
          "a file of public keys (PEM): FILEs are signed packs, and their records count when they were "
          "measured here")
      ->type_name("KEYS");
  Does(imported, command, LogImportCommand);

  auto made = std::make_shared<LogKeygenArgs>();
  CLI::App* keygen = log->add_subcommand("keygen", "make a pair of keys for signed packs");
  keygen->add_option("-o,--output", made->output, "the private key, a new file; the public one is NAME.pub")
      ->type_name("NAME")
      ->required();
  keygen->callback([command, made] { *command = [made] { return LogKeygenCommand(*made, std::cout); }; });

  const auto merged = AddSub<LogMergeArgs>(log, "merge", "add the records of other logs");
  merged.app->add_option("LOG", merged.args->inputs, "other logs")->type_name("FILE")->required();
  Does(merged, command, LogMergeCommand);

  const auto backup = AddSub<LogBackupArgs>(log, "backup", "copy the log, also while it is served");
  backup.app->add_option("-o,--output", backup.args->output, "a new file")->type_name("FILE")->required();
  Does(backup, command, LogBackupCommand);
}

void AddOverride(CLI::App* log, Command* command, OverrideKind kind, const std::string& name,
                 const std::string& what) {
  const auto sub = AddSub<LogOverrideArgs>(log, name, what);
  sub.args->kind = kind;
  sub.app->add_option("RECORD", sub.args->record, "its id, or its trial's name")->required();
  auto* reason = sub.app->add_option("--reason", sub.args->reason, "the reason, for later readers");
  sub.app->add_flag("--clear", sub.args->clear, absl::StrCat("take the ", name, " back"))->excludes(reason);
  sub.app->callback([command, name, args = sub.args] {
    *command = [name, args] {
      if (args->reason.empty() && !args->clear) {
        return Misuse(absl::StrCat("log ", name, ": expected --reason, for later readers"));
      }
      return LogOverrideCommand(*args, std::cout);
    };
  });
}

void AddModelCommands(CLI::App* log, Command* command) {
  CLI::App* model =
      log->add_subcommand("model", "show and move the cost models, one for each class of device");
  model->require_subcommand(1);
  const auto show =
      AddSub<ModelShowArgs>(model, "show", "what each model has learned from, how well, and what matters");
  show.app->add_option("--features", show.args->features, "number of features, at most")
      ->check(NotPositive)
      ->capture_default_str();
  show.app->add_flag("--json", show.args->json, "print JSON");
  Does(show, command, ModelShowCommand);

  const auto exported = AddSub<ModelExportArgs>(
      model, "export", "write a model into a file, for `mycc compile --model` or another log");
  exported.app->add_option("--kind", exported.args->kind,
                           "which one, where the log has several, such as cost-avx2");
  exported.app->add_option("-o,--output", exported.args->output, "the file; - for the standard output")
      ->type_name("FILE")
      ->required();
  Does(exported, command, ModelExportCommand);

  const auto imported = AddSub<ModelImportArgs>(model, "import", "add a model: the next jobs begin from it");
  imported.app->add_option("FILE", imported.args->input, "a file that `log model export` wrote")
      ->type_name("FILE")
      ->required();
  Does(imported, command, ModelImportCommand);
}

void AddMenders(CLI::App* log, Command* command) {
  const auto verify =
      AddSub<LogVerifyArgs>(log, "verify", "measure the best record of each workload again, on this machine");
  const auto words = AddFilter(verify.app, &verify.args->filter);
  DoesFiltered<LogVerifyArgs>(verify, words, command, VerifyHere);

  AddOverride(log, command, OverrideKind::kPin, "pin", "always use this record's schedule");
  AddOverride(log, command, OverrideKind::kBan, "ban", "never use this record's schedule");

  const auto gc = AddSub<LogGcArgs>(log, "gc", "delete search states and, if asked, records");
  auto days = std::make_shared<double>(30);
  auto failures = std::make_shared<double>(-1);
  gc.app
      ->add_option("--jobs-after-days", *days,
                   "delete the search state of jobs that ended this many days ago")
      ->check(CLI::Range(0.0, kMostDays))
      ->capture_default_str();
  gc.app
      ->add_option("--failures-after-days", *failures,
                   "delete failures and superseded results older than this; none if not given")
      ->check(CLI::Range(0.0, kMostDays));
  gc.app
      ->add_option("--keep-best", gc.args->policy.keep_best,
                   "keep this many records of each workload, target, protocol and timer version, with their "
                   "earlier times; "
                   "all if not given")
      ->check(NotPositive);
  gc.app->add_flag("--dry-run", gc.args->policy.dry_run, "delete nothing, and print the counts");
  gc.app->callback([command, args = gc.args, days, failures] {
    args->policy.ended_jobs_after_seconds = static_cast<int64_t>(*days * kSecondsADay);
    if (*failures >= 0) args->policy.failures_after_seconds = static_cast<int64_t>(*failures * kSecondsADay);
    *command = [args] { return LogGcCommand(*args, std::cout); };
  });
}

}  // namespace

void AddLogCommands(CLI::App* app, Command* command) {
  CLI::App* log = app->add_subcommand("log", "show, move and repair a tuning log");
  log->require_subcommand(1);
  AddReaders(log, command);
  AddMovers(log, command);
  AddModelCommands(log, command);
  AddMenders(log, command);
}

}  // namespace mycc

#include "mycc_tune/knowledge_cli.h"

#include <iostream>
#include <memory>
#include <string>

#include "base/status.h"
#include "codegen/target/target.h"
#include "command/choices.h"
#include "command/numbers.h"
#include "command/sources.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/reverify.h"

namespace mycc {
namespace {

// The options of a command that measures, through a server or on this host.
std::shared_ptr<ServerAddress> AddMeasuring(CLI::App* app, MeasuringOptions* options,
                                            const AddServerOptions& add_server) {
  auto server = std::make_shared<ServerAddress>();
  server->address.clear();
  add_server(app, server.get());
  app->add_option("--log", options->log, "the tuning log")->type_name("FILE")->capture_default_str();
  app->add_flag("--only-when-idle", options->only_when_idle,
                "measure on devices that have nothing else to do, and let all other work go first");
  app->add_flag("--detach", options->detach, "submit to the server, and do not wait for the end")
      ->needs(app->get_option("--server"));
  auto* quiet = app->add_flag("-q,--quiet", options->quiet, "print only the result, without progress");
  app->add_flag("--json", options->json, "print JSON lines")->excludes(quiet);
  return server;
}

void NameServer(const ServerAddress& server, MeasuringOptions* options) {
  if (!server.address.empty()) options->server = server;
}

void AddReverify(CLI::App* app, Command* command, const AddServerOptions& add_server) {
  auto options = std::make_shared<ReverifyOptions>();
  CLI::App* sub = app->add_subcommand("reverify", "measure schedules of others, or of other builds, again");
  const auto server = AddMeasuring(sub, &options->measuring, add_server);
  auto* stale =
      sub->add_flag("--stale", options->stale, "the best records of --log whose code this build changes");
  const std::string foreign = "the records of others that wait, as without an option";
  sub->add_flag("--foreign", foreign)->excludes(stale);
  sub->add_option("--workload", options->workloads, "only workloads with this name; repeatable");
  sub->add_option("--target", options->target,
                  "a device's target: host, cuda:0, a preset's name, or `v1 cpu mcpu=...`; if not given, all "
                  "devices of the server, or this host's CPU")
      ->type_name("TARGET");
  sub->add_option("--cache", options->cache,
                  "only records timed with warm or cold caches, or as in a model; if not given, all")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--top", options->top, "number of schedules of each workload, the fastest first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->callback([=] {
    NameServer(*server, &options->measuring);
    *command = [=] { return ReverifyCommand(*options, std::cout); };
  });
}

void AddUpgradeCheck(CLI::App* app, Command* command, const AddServerOptions& add_server) {
  struct Words {
    std::string target, cache;
    bool reverify = false;
  };
  auto args = std::make_shared<UpgradeCheckArgs>();
  auto measuring = std::make_shared<MeasuringOptions>();
  auto words = std::make_shared<Words>();
  CLI::App* sub = app->add_subcommand(
      "upgrade-check", "count the best records whose code this build changes, and measure these again");
  const auto server = AddMeasuring(sub, measuring.get(), add_server);
  sub->add_flag("--reverify", words->reverify, "measure the records again whose code changed");
  sub->add_option("--workload", args->filter.workload_name, "only workloads with this name");
  sub->add_option("--hash", args->filter.workload_hash,
                  "only the workload with this hash, or beginning of a hash");
  sub->add_option("--target", words->target,
                  "only records for this target: host, cuda:0, a preset's name, or `v1 cpu mcpu=...`")
      ->type_name("TARGET");
  sub->add_option("--cache", words->cache, "only records timed with warm or cold caches, or as in a model")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--top", args->top, "number of records of each workload, target and protocol")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  for (const char* option : {"--server", "--only-when-idle", "--detach"})
    sub->get_option(option)->needs(sub->get_option("--reverify"));
  sub->callback([=] {
    NameServer(*server, measuring.get());
    args->log = measuring->log;
    args->json = measuring->json;
    *command = [=]() -> absl::Status {
      MYCC_ASSIGN_OR_RETURN(args->filter.protocol, ReadProtocol(words->cache));
      if (!words->target.empty()) {
        MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(words->target));
        args->filter.target = PrintTarget(target);
      }
      return UpgradeCheckCommand(*args, words->reverify, *measuring, std::cout);
    };
  });
}

}  // namespace

void AddKnowledgeCommands(CLI::App* app, Command* command, const AddServerOptions& add_server) {
  AddReverify(app, command, add_server);
  AddUpgradeCheck(app, command, add_server);
}

}  // namespace mycc

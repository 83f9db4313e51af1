#include "mycc_tune/simulate_cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "command/choices.h"
#include "command/numbers.h"
#include "command/terminal.h"
#include "mycc_tune/simulate_command.h"
#include "mycc_tune/simulation_view.h"

namespace mycc {
namespace {

void AddInputs(CLI::App* sub, SimulateOptions* options) {
  sub->add_option("RESULT", options->results,
                  "what other tuners measured: T4 files or Kernel Tuner's cache files, plain or packed; with "
                  "--workload, tuning logs")
      ->type_name("FILE");
  sub->add_option("--space", options->space,
                  "a T1 file with the parameters and constraints of the results' space; alone, its valid "
                  "configurations are counted")
      ->type_name("FILE");
  sub->add_option("--workload", options->workload, "the workload of the tuning logs: a hash or a name");
  sub->add_option("--target", options->target, "the target in the tuning logs, where they have several")
      ->type_name("TARGET");
  sub->add_option("--cache", options->cache, "the timing in the tuning logs, where they have several")
      ->check(OneOf({"warm", "cold", "model"}));
  sub->add_option("--warm", options->warm,
                  "results of other devices in the same space: each search once more, warm started from them")
      ->type_name("FILE")
      ->delimiter(',');
  sub->add_flag("--leave-one-device-out", options->leave_one_out,
                "the same for each RESULT, from the other RESULTs of its space");
}

// With its progress, where somebody sits at a terminal.
absl::Status SimulateWatched(const SimulateOptions& options) {
  if (isatty(STDERR_FILENO) == 0) return SimulateCommand(options, std::cout);
  SimulationView view(&std::cerr, TerminalWidth(STDERR_FILENO), [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  });
  return SimulateCommand(options, std::cout, &view);
}

}  // namespace

void AddSimulate(CLI::App* app, std::function<absl::Status()>* command) {
  auto options = std::make_shared<SimulateOptions>();
  SimulationConfig* const config = &options->config;
  config->threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App* sub =
      app->add_subcommand("simulate", "replay recorded tuning spaces, to compare search strategies");
  AddInputs(sub, options.get());
  sub->add_option("--strategy", config->strategies, "strategies to compare, or all")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  sub->add_option("--budgets", config->budgets, "the budgets to report, in evaluations")
      ->delimiter(',')
      ->type_name("N,...")
      ->capture_default_str();
  sub->add_option("--seconds", config->budgets_seconds,
                  "the budgets to report, in simulated seconds; if not given, the mean cost of as many "
                  "evaluations as --budgets has")
      ->delimiter(',')
      ->type_name("S,...");
  sub->add_option("--seeds", config->seeds, "searches of each strategy")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  sub->add_option("--seed", config->first_seed, "the first seed")->check(NotWhole)->capture_default_str();
  sub->add_option("--generation", config->generation_size, "evaluations that are chosen at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  sub->add_option("--in-flight", config->lag, "generations still unseen when the next one is chosen")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  sub->add_option("--reach", config->target, "the fraction of the optimum to count evaluations to")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  sub->add_flag(
      "--noise", config->noise,
      "each search once more, with one recorded repetition, drawn at random, as an evaluation's time");
  sub->add_flag_callback(
      "--no-model", [config] { config->model = false; }, "the default strategy without its learned scorer");
  sub->add_option("--threads", config->threads, "searches that run at once; one for each CPU if not given")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--plot", options->plot, "draw the curves with their bands into an SVG file")
      ->type_name("FILE");
  sub->add_flag("--json", options->json, "print all numbers as JSON");
  sub->callback([=] { *command = [=] { return SimulateWatched(*options); }; });
}

}  // namespace mycc

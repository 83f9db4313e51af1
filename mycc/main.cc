// mycc: a tensor compiler. Parses the command line; commands.h does the work.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "base/status.h"
#include "command/choices.h"
#include "command/command_line.h"
#include "command/model_options.h"
#include "command/numbers.h"
#include "mycc/commands.h"
#include "mycc/debug_variables.h"

namespace mycc {
namespace {

using Command = std::function<absl::Status()>;

void AddSource(CLI::App* app, KernelSource* source) {
  app->add_option("FILE", source->model.file, "workloads (.te) or a model (.onnx)")
      ->type_name("FILE")
      ->required();
  AddModelOptions(app, &source->model);
  app->add_option("--target", source->target,
                  "the target: host, cuda:0, a preset's name, or `v1 cpu mcpu=...`")
      ->type_name("TARGET")
      ->capture_default_str();
  auto* log = app->add_option("--tuning-log", source->tuning_log, "the log with the measured schedules")
                  ->type_name("FILE");
  auto* model =
      app->add_option("--model", source->cost_model,
                      "choose by this learned model (of `mycc-tune log model export`) where nothing "
                      "was measured")
          ->type_name("FILE");
  app->add_option("--trace", source->trace, "a file with the schedule of the only workload in FILE")
      ->type_name("FILE")
      ->excludes(log)
      ->excludes(model);
}

// An option that has its name already and no function yet.
void AddReserved(CLI::App* app, const std::string& name, const std::string& why) {
  app->add_option_function<std::string>(name,
                                        [=](const std::string&) { throw CLI::ValidationError(name, why); })
      ->group("");
}

void AddCompile(CLI::App* app, Command* command) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* sub =
      app->add_subcommand("compile", "compile workloads to NAME.so, NAME.h, NAME.json and dlpack.h");
  AddSource(sub, &options->source);
  sub->add_option("-o,--output-dir", options->output_dir, "the folder to write to; made if it is missing")
      ->type_name("FOLDER")
      ->capture_default_str();
  sub->add_option("--name", options->module, "the module's name, a C identifier; after FILE if not given");
  sub->add_flag("--profile", options->profile,
                "the library of a model also tells the time of each launch, which `bench` prints");
  sub->add_option(
         "--check", options->check,
         "with --dtype: compare with the model in f32 on this input, NAME=FILE.npy, repeatable; other "
         "inputs are random")
      ->type_name("INPUT")
      ->needs(sub->get_option("--dtype"));
  sub->add_flag("--check-random", options->check_random, "with --dtype: the same on random inputs alone")
      ->needs(sub->get_option("--dtype"));
  sub->add_option("--write-lock", options->write_lock,
                  "also write what this build used: workload and code digests, schedules, toolchain")
      ->type_name("FILE");
  sub->add_option(
         "--lock", options->source.lock,
         "build the same bytes again from a file of --write-lock, without a log, or say what differs")
      ->type_name("FILE")
      ->excludes(sub->get_option("--tuning-log"))
      ->excludes(sub->get_option("--model"))
      ->excludes(sub->get_option("--trace"));
  auto* quiet = sub->add_flag("-q,--quiet", options->quiet, "print nothing but warnings");
  sub->add_flag("--json", options->json, "print JSON")->excludes(quiet);
  sub->add_flag("--strict", options->strict, "fail unless the log has a verified schedule for every kernel");
  AddReserved(sub, "--tuning-server",
              "the log of a running server is not yet asked over the network; expected --tuning-log with its "
              "file, which may be read while it is served");
  sub->callback([=] { *command = [=] { return CompileCommand(*options, std::cout); }; });
}

void AddExplain(CLI::App* app, Command* command) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub =
      app->add_subcommand("explain", "print each kernel's loop nest, and which record or rule gave it");
  AddSource(sub, &options->source);
  sub->get_option("FILE")->required(false);
  sub->add_option("--diff", options->diff,
                  "compare two records of --tuning-log instead: their times, code, decisions and steps")
      ->type_name("RECORD")
      ->expected(2)
      ->excludes(sub->get_option("--target"))
      ->excludes(sub->get_option("--model"))
      ->excludes(sub->get_option("--trace"));
  sub->add_option("--emit", options->emit,
                  "print lower code instead: ir; llvm or asm for a CPU; cuda or ptx for a GPU")
      ->check(OneOf({"ir", "llvm", "asm", "cuda", "ptx"}))
      ->excludes(sub->get_option("--diff"));
  sub->add_flag(
         "--why", options->why,
         "say why each kernel's record was chosen instead: its rival, the margin, what matters to the model")
      ->needs(sub->get_option("--tuning-log"))
      ->excludes(sub->get_option("--diff"))
      ->excludes(sub->get_option("--emit"));
  sub->add_flag("--dot", options->dot, "draw a model's kernels and tensors in Graphviz's language instead")
      ->excludes(sub->get_option("--why"))
      ->excludes(sub->get_option("--emit"));
  sub->callback([=] { *command = [=] { return ExplainCommand(*options, std::cout); }; });
}

void AddTasks(CLI::App* app, Command* command) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* sub = app->add_subcommand("tasks", "list the distinct workloads with their counts and sizes");
  sub->add_option("FILE", options->model.file, "workloads (.te) or a model (.onnx)")
      ->type_name("FILE")
      ->required();
  AddModelOptions(sub, &options->model);
  sub->add_option("--target", options->target, "the target, for which a model is cut into workloads")
      ->type_name("TARGET")
      ->capture_default_str();
  sub->add_option("-o,--output", options->output,
                  "also write them to this .te file; - for the standard output, and nothing else")
      ->type_name("FILE");
  sub->add_flag("--json", options->json, "print JSON lines");
  sub->callback([=] { *command = [=] { return TasksCommand(*options, std::cout); }; });
}

void AddRun(CLI::App* app, Command* command) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* sub = app->add_subcommand("run", "call a function of a compiled library");
  sub->add_option("LIB", options->library, "a library that mycc compiled (.so)")
      ->type_name("FILE")
      ->required();
  sub->add_option("--function", options->function,
                  "the function to call; not needed when the library has one");
  sub->add_option("--device", options->device, "number of the GPU, for a library of a GPU")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  sub->add_option("--input", options->inputs, "NAME=FILE.npy, repeatable; other inputs are random");
  sub->add_option("--output-dir", options->output_dir, "write each output to NAME.npy here")
      ->type_name("FOLDER");
  sub->add_option("--seed", options->seed, "seed of the random inputs")
      ->check(NotWhole)
      ->capture_default_str();
  sub->callback([=] { *command = [=] { return RunCommand(*options, std::cout); }; });
}

void AddBench(CLI::App* app, Command* command) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* sub = app->add_subcommand(
      "bench",
      "time the functions of a compiled library on random inputs, or those of two libraries in turn");
  sub->add_option("LIB", options->library, "a library that mycc compiled (.so)")
      ->type_name("FILE")
      ->required();
  sub->add_option("OTHER", options->other, "a second library, timed in turn with the first")
      ->type_name("FILE");
  sub->add_option("--function", options->function, "only this function");
  sub->add_option("--device", options->device, "number of the GPU, for a library of a GPU")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  sub->add_option("--threads", options->threads, "number of OpenMP threads; OpenMP decides if not given")
      ->check(CLI::Range(1, 4096));
  sub->add_option("--repeat", options->repeats,
                  "number of samples; until the median is known to 1 % if not given")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--seconds", options->seconds, "seconds for each function, at most")
      ->check(CLI::Range(1e-3, 3600.0))
      ->capture_default_str();
  sub->add_flag("--cold", options->cold, "take the arguments out of all caches before each call");
  sub->add_option("--seed", options->seed, "seed of the random inputs")
      ->check(NotWhole)
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([=] { *command = [=] { return BenchCommand(*options, std::cout); }; });
}

int Main(int argc, char** argv) {
  CLI::App app("mycc: compiles tensor computations to shared libraries", "mycc");
  app.require_subcommand(1);
  Command command;
  AddCompile(&app, &command);
  AddRun(&app, &command);
  AddBench(&app, &command);
  AddExplain(&app, &command);
  AddTasks(&app, &command);
  return RunCommandLine(&app, argc, argv, [&]() -> absl::Status {
    MYCC_ASSIGN_OR_RETURN(const PassDebug debug, ReadDebugVariables(std::getenv));
    SetPassDebug(debug);
    return command();
  });
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) { return mycc::Main(argc, argv); }

#include "command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "codegen/target/presets.h"
#include "command/choices.h"
#include "command/colour.h"
#include "command/completion.h"
#include "command/misuse.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// The error of a first word that is no command, empty when it is one; the library would only ask for a
// command.
std::string UnknownCommand(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (argc < 2 || argv[1][0] == '-' || std::count(names.begin(), names.end(), argv[1]) > 0) return "";
  return absl::StrCat("unknown command `", argv[1], "`; expected one of ", absl::StrJoin(names, ", "),
                      DidYouMean(argv[1], names));
}

// The targets that have a name.
std::vector<std::string> TargetWords() {
  std::vector<std::string> words = {"host", "cuda:0"};
  for (const std::string& preset : PresetNames()) words.push_back(preset);
  return words;
}

// The standard library throws where the system gives no thread or no memory.
absl::Status RunToTheEnd(const std::function<absl::Status()>& run) {
  try {
    return run();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no more threads or files: ", error.what(), "; see ulimit -a"));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the system gives no more memory; see ulimit -a");
  }
}

// An option of the program that may stand anywhere.
void AddColour(CLI::App* app, std::string* choice) {
  app->add_option("--color", *choice,
                  "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  for (CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
    command->fallthrough();
    for (CLI::App* part : command->get_subcommands([](const CLI::App*) { return true; })) part->fallthrough();
  }
}

// The command that was being called: "mycc-tune log list".
std::string CalledCommand(const CLI::App& app) {
  std::string called = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    absl::StrAppend(&called, " ", at->get_name());
  }
  return called;
}

// Errors are one line, whatever they quote, after the problems that they count.
int Report(const std::string& program, const absl::Status& status) {
  if (status.ok()) return 0;
  std::string message = Printable(std::string(status.message()));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << ListingOf(status) << Painted(program + ":", Tone::kError, Stream::kError) << " " << message
            << "\n";
  return ExitStatus(status);
}

}  // namespace

int RunCommandLine(CLI::App* app, int argc, char** argv, const std::function<absl::Status()>& run) {
  const std::string program = app->get_name();
  app->set_version_flag("--version", absl::StrCat(program, " ", MYCC_VERSION), "print the version and exit");
  std::string colour = "auto", shell;
  CLI::App* const completion = app->add_subcommand(
      "completion", "print a script with which a shell completes this program's commands");
  completion->add_option("SHELL", shell, "the shell")->check(OneOf({"bash", "zsh", "fish"}))->required();
  AddColour(app, &colour);
  ChooseColour(colour);
  try {
    app->parse(argc, argv);
    ChooseColour(colour);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // --help
    const std::string unknown = UnknownCommand(*app, argc, argv);
    return Report(program, Misuse(absl::StrCat(unknown.empty() ? error.what() : unknown, "; see ",
                                               CalledCommand(*app), " --help")));
  }
  // A write beyond the file size that the shell allows is an error like any other. Children begin with the
  // signal's default: it ends one that builds too large a library.
  std::signal(SIGXFSZ, SIG_IGN);
  absl::Status status;
  if (completion->parsed()) {
    std::cout << CompletionScript(shell, program, ReadCommands(*app, TargetWords()));
  } else {
    status = RunToTheEnd(run);
  }
  std::cout.flush();
  if (status.ok() && !std::cout)
    return Report(program, absl::ResourceExhaustedError("cannot write the result to the standard output"));
  return Report(program, status);
}

}  // namespace mycc

#include "command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/version.h"
#include "codegen/target/presets.h"
#include "command/choices.h"
#include "command/colour.h"
#include "command/completion.h"
#include "command/misuse.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

const auto kEveryCommand = [](const CLI::App*) { return true; };

// The command's own commands; empty for one that does something.
std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(kEveryCommand)) names.push_back(command->get_name());
  return names;
}

// The error of a command line that ends before a command, or has another word in its place: "" when its words
// lead to one. The library would only ask for a command.
std::string CommandProblem(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string stranger;
  for (int i = 1; i < argc && stranger.empty(); ++i) {
    const std::string word = argv[i];
    const std::vector<std::string> names = CommandsOf(*at);
    if (names.empty()) return "";
    if (word == "--color") ++i;  // its value is no command
    if (word[0] == '-') continue;
    if (std::ranges::count(names, word) > 0) {
      at = at->get_subcommand(word);
    } else {
      stranger = word;
    }
  }
  const std::vector<std::string> names = CommandsOf(*at);
  if (names.empty()) return "";
  return absl::StrCat(
      stranger.empty() ? "a command is required" : absl::StrCat("unknown command `", stranger, "`"),
      "; expected one of ", absl::StrJoin(names, ", "), DidYouMean(stranger, names));
}

// The command among `words` that takes an option which stands before it, as in `log --log FILE list`; nullptr
// when there is none.
const CLI::App* TakerOf(const std::string& option, const CLI::App& app,
                        const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const std::vector<std::string> names = CommandsOf(*at);
    if (std::ranges::count(names, word) == 0) continue;
    at = at->get_subcommand(word);
    if (at->get_option_no_throw(option) != nullptr) return at;
  }
  return nullptr;
}

// The error of an unknown option before a command; "" when there is none.
std::string EarlyOptionProblem(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], option = word.substr(0, word.find('='));
    const std::vector<std::string> names = CommandsOf(*at);
    if (names.empty()) return "";
    if (word == "--color") ++i;  // its value is no command
    if (std::ranges::count(names, word) > 0) {
      at = at->get_subcommand(word);
    } else if (word[0] != '-') {
      return "";  // an unknown command
    } else if (at->get_option_no_throw(option) == nullptr && app.get_option_no_throw(option) == nullptr) {
      const CLI::App* const taker = TakerOf(option, *at, {argv + i + 1, argv + argc});
      return taker == nullptr
                 ? absl::StrCat("unknown option `", option, "` before a command; expected one of ",
                                absl::StrJoin(names, ", "))
                 : absl::StrCat("unknown option `", option, "` here; it stands after `", taker->get_name(),
                                "`");
    }
  }
  return "";
}

// The error of a word that no option or argument of `called` takes.
std::string StrangerProblem(const CLI::App& app, const CLI::App& called) {
  const std::vector<std::string> strangers = app.remaining(/*recurse=*/true);
  const std::string word = strangers.empty() ? "" : strangers.front();
  if (word[0] != '-') return absl::StrCat("unexpected argument `", word, "`");
  std::vector<std::string> names;
  for (const CLI::App* at : {&called, &app}) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return absl::StrCat("unknown option `", word, "`", DidYouMean(word.substr(0, word.find('=')), names));
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

// The help of a command and its commands, which also take the options of the program.
void SetCommonWords(CLI::App* app) {
  app->set_help_flag("-h,--help", "print this help and exit");
  for (CLI::App* command : app->get_subcommands(kEveryCommand)) {
    command->fallthrough();
    SetCommonWords(command);
  }
}

// --color, which may stand anywhere, and the words of --help.
void AddCommonOptions(CLI::App* app, std::string* choice) {
  app->add_option("--color", *choice,
                  "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  SetCommonWords(app);
}

// The innermost command that was called, and its words: "mycc-tune log list".
const CLI::App& InnermostCalled(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}
std::string CalledCommand(const CLI::App& app) {
  std::string called = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    absl::StrAppend(&called, " ", at->get_name());
  }
  return called;
}

// A wrong call names the help that has the right one.
absl::Status WithHelp(const CLI::App& app, const absl::Status& status) {
  const std::string message(status.message());
  if (ExitStatus(status) != kMisuseExitStatus || absl::StrContains(message, " --help")) return status;
  return Misuse(absl::StrCat(message, "; see ", CalledCommand(app), " --help"));
}

// 0.010000 as 0.01, and 1.000000 as 1.
std::string WithoutZeros(std::string number) {
  if (!absl::StrContains(number, ".")) return number;
  while (number.back() == '0') number.pop_back();
  if (number.back() == '.') number.pop_back();
  return number;
}

// The library's errors of a number, `--trials: Value 0 not in range 1 to 8` and `Could not convert: --budgets
// = many`, in the words of ours; any other as it is.
std::string InOurWords(const std::string& error) {
  static const std::regex* const outside = new std::regex("(.*: )Value (.*) not in range (\\S+) to (\\S+)");
  static const std::regex* const unread = new std::regex("Could not convert: (\\S+) = (.*)");
  std::smatch parts;
  if (std::regex_match(error, parts, *outside)) {
    return absl::StrCat(parts.str(1), "`", parts.str(2), "`; expected a number from ",
                        WithoutZeros(parts.str(3)), " to ", WithoutZeros(parts.str(4)));
  }
  if (std::regex_match(error, parts, *unread))
    return absl::StrCat(parts.str(1), ": `", parts.str(2), "`; expected a number");
  return error;
}

absl::Status ParseProblem(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string problem = EarlyOptionProblem(app, argc, argv);
  if (problem.empty()) problem = CommandProblem(app, argc, argv);
  if (problem.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    problem = StrangerProblem(app, InnermostCalled(app));
  return WithHelp(app, Misuse(problem.empty() ? InOurWords(error.what()) : problem));
}

// Errors are one line, whatever they quote, after the problems that they count.
int Report(const std::string& program, const absl::Status& status) {
  if (status.ok()) return 0;
  std::string message = Printable(std::string(status.message()));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::ranges::replace(message, '\n', ' ');
  std::cerr << ListingOf(status) << Painted(program + ":", Tone::kError, Stream::kError) << " " << message
            << "\n";
  return ExitStatus(status);
}

}  // namespace

int RunCommandLine(CLI::App* app, int argc, char** argv, const std::function<absl::Status()>& run) {
  const std::string program = app->get_name();
  app->set_version_flag("--version", absl::StrCat(program, " ", ProgramVersion()),
                        "print the version and exit");
  std::string colour = "auto", shell;
  CLI::App* const completion = app->add_subcommand(
      "completion", "print a script with which a shell completes this program's commands");
  completion->add_option("SHELL", shell, "the shell")->check(OneOf({"bash", "zsh", "fish"}))->required();
  AddCommonOptions(app, &colour);
  ChooseColour(colour);
  try {
    app->parse(argc, argv);
    ChooseColour(colour);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // --help
    return Report(program, ParseProblem(*app, error, argc, argv));
  }
  // A write beyond the file size that the shell allows is an error like any other. Children begin with the
  // signal's default: it ends one that builds too large a library.
  std::signal(SIGXFSZ, SIG_IGN);
  absl::Status status;
  if (completion->parsed()) {
    std::cout << CompletionScript(shell, program, ReadCommands(*app, TargetWords()));
  } else {
    status = WithHelp(*app, RunToTheEnd(run));
  }
  std::cout.flush();
  if (status.ok() && !std::cout)
    return Report(program, absl::ResourceExhaustedError("cannot write the result to the standard output"));
  return Report(program, status);
}

}  // namespace mycc

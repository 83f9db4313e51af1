// Completion of a program's command line by a shell: a script made of the options that the program knows, so
// that it never lags behind them. Pure.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mycc {

// The words or files that a shell offers where a value is expected.
struct CompletionValues {
  enum class Kind { kNone, kFree /* nothing is known */, kWords, kFiles, kFolders };
  Kind kind = Kind::kNone;
  std::vector<std::string> words;
};

struct CompletionOption {
  std::vector<std::string> names;  // "--json", "-q"
  std::string description;
  CompletionValues values;  // kNone: it takes none
  int count = 1;            // of values
};

struct CompletionCommand {
  std::vector<std::string> path;  // {"log", "list"}; empty: the program itself
  std::string description;
  std::vector<CompletionOption> options;
  CompletionValues arguments;
  std::vector<std::string> parts;  // the names of its subcommands
};

// The program and all its commands, each before its subcommands. An option's or argument's type_name() says
// what its values are: FILE, FOLDER, TARGET (those are `targets`); OneOf's words are known.
std::vector<CompletionCommand> ReadCommands(const CLI::App& app, const std::vector<std::string>& targets);

// A script for "bash", "zsh" or "fish". REQUIRES: one of them.
std::string CompletionScript(const std::string& shell, const std::string& program,
                             const std::vector<CompletionCommand>& commands);

}  // namespace mycc

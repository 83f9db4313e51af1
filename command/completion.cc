// Reads the commands of a CLI11 program: their options, and the values that each option takes. The scripts
// are written in completion_scripts.cc.
#include "command/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mycc {
namespace {

CompletionValues ValuesOf(const CLI::Option& option, const std::vector<std::string>& targets) {
  using Kind = CompletionValues::Kind;
  if (option.get_items_expected_max() == 0) return {Kind::kNone, {}};
  const std::string type = option.get_type_name();  // "FILE", "TEXT:{a,b}"
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && open < close)
    return {Kind::kWords, absl::StrSplit(type.substr(open + 1, close - open - 1), ',')};
  if (type == "FILE") return {Kind::kFiles, {}};
  if (type == "FOLDER") return {Kind::kFolders, {}};
  if (type == "TARGET") return {Kind::kWords, targets};
  return {Kind::kFree, {}};
}

void AddOptions(const CLI::App& app, const std::vector<std::string>& targets, CompletionCommand* command) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command->arguments = ValuesOf(*option, targets);
      continue;
    }
    if (option->get_group().empty()) continue;  // hidden
    CompletionOption known{{},
                           option->get_description(),
                           ValuesOf(*option, targets),
                           std::max(1, option->get_items_expected_min())};
    for (const std::string& name : option->get_snames()) known.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) known.names.push_back("--" + name);
    command->options.push_back(std::move(known));
  }
}

void ReadInto(const CLI::App& app, const CLI::App& root, const std::vector<std::string>& path,
              const std::vector<std::string>& targets, std::vector<CompletionCommand>* commands) {
  CompletionCommand command;
  command.path = path;
  command.description = app.get_description();
  AddOptions(app, targets, &command);
  if (&app != &root) {
    // An option of the program may stand after its commands too.
    CompletionCommand program;
    AddOptions(root, targets, &program);
    for (const CompletionOption& option : program.options) {
      if (option.values.kind != CompletionValues::Kind::kNone) command.options.push_back(option);
    }
  }
  const auto parts = app.get_subcommands([](const CLI::App* part) { return !part->get_group().empty(); });
  for (const CLI::App* part : parts) command.parts.push_back(part->get_name());
  commands->push_back(std::move(command));
  for (const CLI::App* part : parts) {
    std::vector<std::string> inner = path;
    inner.push_back(part->get_name());
    ReadInto(*part, root, inner, targets, commands);
  }
}

}  // namespace

std::vector<CompletionCommand> ReadCommands(const CLI::App& app, const std::vector<std::string>& targets) {
  std::vector<CompletionCommand> commands;
  ReadInto(app, app, {}, targets, &commands);
  return commands;
}

}  // namespace mycc

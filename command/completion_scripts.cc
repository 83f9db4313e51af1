// The scripts of the shells. Each shell has its own language, and its own words for what a value may be.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "command/completion.h"

namespace mycc {
namespace {

using Kind = CompletionValues::Kind;

// "_mycc_tune": a name that all shells take for a function.
std::string FunctionOf(const std::string& program) {
  return absl::StrCat("_", absl::StrReplaceAll(program, {{"-", "_"}}));
}

std::string Opening(const std::string& program, const std::string& shell) {
  return absl::StrCat("# Completion of ", program, " for ", shell, ", printed by `", program, " completion ",
                      shell, "`.\n");
}

const CompletionCommand* Find(const std::vector<CompletionCommand>& commands, std::vector<std::string> path,
                              const std::string& part) {
  path.push_back(part);
  const auto it =
      std::ranges::find_if(commands, [&](const CompletionCommand& command) { return command.path == path; });
  return it == commands.end() ? nullptr : &*it;
}

// The values in bash's script: words, or a mark that no word begins with.
std::string BashValues(const CompletionValues& values) {
  switch (values.kind) {
    case Kind::kNone: return "";
    case Kind::kFree: return "@free";
    case Kind::kWords: return absl::StrJoin(values.words, " ");
    case Kind::kFiles: return "@files";
    case Kind::kFolders: return "@folders";
  }
  return "";
}

// Passes over the values of an option. A later value than the first is completed like the first.
std::string BashStep(const std::string& name, int count) {
  if (count == 1) return "((++i))";
  return absl::StrCat("((i += ", count, ")); ((i < COMP_CWORD)) || prev=", name);
}

constexpr char kBash[] = R"($FUNCTION() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= values= options= words= i
  # `--name=value` is three words.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
$STEPS    esac
  done
  case "$command $prev" in
$VALUES  esac
  if [[ -z $values ]]; then
    case $command in
$COMMANDS    esac
    if [[ $cur == -* ]]; then values=$options; else values=$words; fi
  fi
  COMPREPLY=()
  case $values in
    '' | @free) ;;
    @files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    @folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur") ;;
  esac
}
complete -F $FUNCTION $PROGRAM
)";

std::string BashScript(const std::string& program, const std::vector<CompletionCommand>& commands) {
  std::string steps, values, words;
  for (const CompletionCommand& command : commands) {
    const std::string path = absl::StrJoin(command.path, " ");
    std::string names;
    for (const std::string& part : command.parts)
      absl::StrAppend(&steps, "      '", path, " ", part, "') command='", path, path.empty() ? "" : " ", part,
                      "' ;;\n");
    for (const CompletionOption& option : command.options) {
      absl::StrAppend(&names, names.empty() ? "" : " ", absl::StrJoin(option.names, " "));
      if (option.values.kind == Kind::kNone) continue;
      for (const std::string& name : option.names) {
        absl::StrAppend(&steps, "      '", path, " ", name, "') ", BashStep(name, option.count), " ;;\n");
        absl::StrAppend(&values, "    '", path, " ", name, "') values='", BashValues(option.values),
                        "' ;;\n");
      }
    }
    const std::string others =
        command.parts.empty() ? BashValues(command.arguments) : absl::StrJoin(command.parts, " ");
    absl::StrAppend(&words, "      '", path, "') options='", names, "' words='", others, "' ;;\n");
  }
  return Opening(program, "bash") +
         absl::StrReplaceAll(kBash, {{"$FUNCTION", FunctionOf(program) + "_complete"},
                                     {"$PROGRAM", program},
                                     {"$STEPS", steps},
                                     {"$VALUES", values},
                                     {"$COMMANDS", words}});
}

// A text inside single quotes.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// A description inside `[...]` or after `:`.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshAction(const CompletionValues& values) {
  switch (values.kind) {
    case Kind::kNone: return "";
    case Kind::kFree: return ":value: ";
    case Kind::kWords:
      return absl::StrCat(":value:(", absl::StrReplaceAll(absl::StrJoin(values.words, " "), {{":", "\\:"}}),
                          ")");
    case Kind::kFiles: return ":file:_files";
    case Kind::kFolders: return ":folder:_files -/";
  }
  return "";
}

std::string ZshFunction(const std::string& program, const CompletionCommand& command) {
  std::string name = FunctionOf(program);
  for (const std::string& part : command.path) absl::StrAppend(&name, "_", part);
  return name;
}

// The words that _arguments takes for a command's options.
std::string ZshOptions(const CompletionCommand& command) {
  std::string words;
  for (const CompletionOption& option : command.options) {
    const std::vector<std::string> actions(option.count, ZshAction(option.values));
    for (const std::string& name : option.names) {
      const bool takes_value = option.values.kind != Kind::kNone;
      const std::string sign = !takes_value ? "" : name.size() == 2 ? "+" : "=";
      absl::StrAppend(&words, " \\\n    ",
                      Quoted(absl::StrCat("*", name, sign, "[", ZshText(option.description), "]",
                                          absl::StrJoin(actions, ""))));
    }
  }
  return words;
}

std::string ZshCommand(const std::string& program, const CompletionCommand& command,
                       const std::vector<CompletionCommand>& commands) {
  const std::string function = ZshFunction(program, command);
  if (command.parts.empty()) {
    const bool has_arguments = command.arguments.kind != Kind::kNone;
    return absl::StrCat(
        function, "() {\n  _arguments", ZshOptions(command),
        has_arguments ? " \\\n    " + Quoted(absl::StrCat("*", ZshAction(command.arguments))) : "", "\n}\n");
  }
  std::string names, cases;
  for (const std::string& part : command.parts) {
    const CompletionCommand* inner = Find(commands, command.path, part);
    absl::StrAppend(&names, "\n      ", Quoted(absl::StrCat(part, ":", ZshText(inner->description))));
    absl::StrAppend(&cases, "      ", part, ") ", ZshFunction(program, *inner), " ;;\n");
  }
  return absl::StrCat(
      function, "() {\n  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C",
      ZshOptions(command), " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n    command)\n",
      "      local -a commands\n      commands=(", names, ")\n      _describe command commands ;;\n",
      "    rest) case $line[1] in\n", cases, "      esac ;;\n  esac\n}\n");
}

std::string ZshScript(const std::string& program, const std::vector<CompletionCommand>& commands) {
  const std::string function = FunctionOf(program);
  std::string script = absl::StrCat("#compdef ", program, "\n", Opening(program, "zsh"));
  for (const CompletionCommand& command : commands) script += ZshCommand(program, command, commands);
  // As a file of $fpath it is called; when it is read by `source` it registers itself.
  return absl::StrCat(script, "if [[ $funcstack[1] == ", "_", program, " ]]; then\n  ", function,
                      " \"$@\"\nelse\n  compdef ", function, " ", program, "\nfi\n");
}

std::string FishValues(const CompletionValues& values) {
  switch (values.kind) {
    case Kind::kNone: return "";
    case Kind::kFree: return " -x";
    case Kind::kWords: return absl::StrCat(" -x -a ", Quoted(absl::StrJoin(values.words, " ")));
    case Kind::kFiles: return " -r -F";
    case Kind::kFolders: return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

std::string FishText(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// The condition that the word is no second value of an option.
std::string FishNoValue(const CompletionCommand& command) {
  std::string condition;
  for (const CompletionOption& option : command.options) {
    if (option.count > 1)
      absl::StrAppend(&condition, "; and not contains -- (commandline -opc)[-2] ",
                      absl::StrJoin(option.names, " "));
  }
  return condition;
}

std::string FishScript(const std::string& program, const std::vector<CompletionCommand>& commands) {
  std::string script = absl::StrCat(Opening(program, "fish"), "complete -c ", program, " -f\n");
  for (const CompletionCommand& command : commands) {
    std::string condition = command.path.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& part : command.path)
      absl::StrAppend(&condition, condition.empty() ? "" : "; and ", "__fish_seen_subcommand_from ", part);
    if (!command.path.empty() && !command.parts.empty())
      absl::StrAppend(&condition, "; and not __fish_seen_subcommand_from ",
                      absl::StrJoin(command.parts, " "));
    const std::string begin = absl::StrCat("complete -c ", program, " -n ", FishText(condition));
    for (const std::string& part : command.parts)
      absl::StrAppend(&script, begin, " -a ", part, " -d ",
                      FishText(Find(commands, command.path, part)->description), "\n");
    for (const CompletionOption& option : command.options) {
      script += begin;
      for (const std::string& name : option.names)
        absl::StrAppend(&script, name.size() == 2 ? " -s " : " -l ", name.substr(name.size() == 2 ? 1 : 2));
      absl::StrAppend(&script, FishValues(option.values), " -d ", FishText(option.description), "\n");
    }
    const std::string argument =
        absl::StrCat("complete -c ", program, " -n ", FishText(condition + FishNoValue(command)));
    if (command.arguments.kind == Kind::kFiles) absl::StrAppend(&script, argument, " -F\n");
    if (command.arguments.kind == Kind::kWords)
      absl::StrAppend(&script, argument, " -a ", Quoted(absl::StrJoin(command.arguments.words, " ")), "\n");
  }
  return script;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const std::string& program,
                             const std::vector<CompletionCommand>& commands) {
  return shell == "bash"  ? BashScript(program, commands)
         : shell == "zsh" ? ZshScript(program, commands)
                          : FishScript(program, commands);
}

}  // namespace mycc

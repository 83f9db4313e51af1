#include "codegen/schedule/trace.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/trace_names.h"

namespace mycc {
namespace {

// One line of a trace, read from left to right. Columns count from 1.
class LineReader {
 public:
  LineReader(absl::string_view line, int number) : line_(line), number_(number) {}

  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(number_, ":", at_ + 1, ": ", what));
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == line_.size();
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(char c) {
    return Take(c) ? absl::OkStatus()
                   : Error(absl::StrCat("expected '", std::string(1, c), "', found ", Rest()));
  }
  // A name, a number or a layout component: everything up to a separator.
  absl::StatusOr<std::string> Word() {
    SkipSpace();
    const size_t start = at_;
    while (at_ < line_.size() && IsWordChar(line_[at_])) ++at_;
    if (at_ == start) return Error(absl::StrCat("expected a name or a number, found ", Rest()));
    return std::string(line_.substr(start, at_ - start));
  }
  absl::StatusOr<int64_t> Int() {
    MYCC_ASSIGN_OR_RETURN(const std::string word, Word());
    int64_t value = 0;
    if (absl::SimpleAtoi(word, &value)) return value;
    return Error(absl::StrCat("expected an integer, found '", word, "'"));
  }

 private:
  static bool IsWordChar(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_.+-/%").find(c) != absl::string_view::npos;
  }
  void SkipSpace() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  std::string Rest() const {
    return at_ == line_.size() ? "the end of the line" : absl::StrCat("'", line_.substr(at_, 20), "'");
  }

  absl::string_view line_;
  int number_;
  size_t at_ = 0;
};

template <typename Value>
absl::StatusOr<StepArg> ParseList(LineReader& reader, absl::StatusOr<Value> (LineReader::*next)()) {
  MYCC_RETURN_IF_ERROR(reader.Expect('['));
  std::vector<Value> values;
  if (reader.Take(']')) return StepArg{values};
  do {
    MYCC_ASSIGN_OR_RETURN(Value value, (reader.*next)());
    values.push_back(std::move(value));
  } while (reader.Take(','));
  MYCC_RETURN_IF_ERROR(reader.Expect(']'));
  return StepArg{std::move(values)};
}

absl::StatusOr<StepArg> ParseArg(LineReader& reader, char kind) {
  if (kind == 'N') return ParseList(reader, &LineReader::Word);
  if (kind == 'I') return ParseList(reader, &LineReader::Int);
  if (kind == 'i') {
    MYCC_ASSIGN_OR_RETURN(const int64_t value, reader.Int());
    return StepArg{value};
  }
  MYCC_ASSIGN_OR_RETURN(std::string word, reader.Word());
  return StepArg{std::move(word)};
}

absl::StatusOr<Step> ParseStep(LineReader& reader) {
  Step step;
  MYCC_ASSIGN_OR_RETURN(const std::string word, reader.Word());
  step.primitive = CurrentPrimitive(word);
  const PrimitiveInfo* info = FindPrimitive(step.primitive);
  if (info == nullptr) return reader.Error(UnknownPrimitive(step.primitive));
  MYCC_RETURN_IF_ERROR(reader.Expect('('));
  for (size_t i = 0; i < info->signature.size(); ++i) {
    if (i > 0 && !reader.Take(',')) return reader.Error(absl::StrCat("expected ", std::string(info->usage)));
    MYCC_ASSIGN_OR_RETURN(StepArg arg, ParseArg(reader, info->signature[i]));
    step.args.push_back(std::move(arg));
  }
  if (!reader.Take(')') || !reader.AtEnd())
    return reader.Error(absl::StrCat("expected ", std::string(info->usage)));
  return step;
}

// The rest of "sketch NAME key=value ..." after the word `sketch`.
absl::Status ParseSketch(LineReader& reader, Trace* trace) {
  MYCC_ASSIGN_OR_RETURN(trace->sketch, reader.Word());
  while (!reader.AtEnd()) {
    MYCC_ASSIGN_OR_RETURN(std::string key, reader.Word());
    MYCC_RETURN_IF_ERROR(reader.Expect('='));
    MYCC_ASSIGN_OR_RETURN(const int64_t value, reader.Int());
    trace->decisions.emplace_back(std::move(key), value);
  }
  return absl::OkStatus();
}

void AppendArg(std::string* text, const StepArg& arg) {
  if (const auto* name = std::get_if<std::string>(&arg.value)) {
    text->append(*name);
  } else if (const auto* value = std::get_if<int64_t>(&arg.value)) {
    absl::StrAppend(text, *value);
  } else if (const auto* names = std::get_if<StepArg::Names>(&arg.value)) {
    absl::StrAppend(text, "[", absl::StrJoin(*names, ", "), "]");
  } else {
    absl::StrAppend(text, "[", absl::StrJoin(std::get<StepArg::Ints>(arg.value), ", "), "]");
  }
}

}  // namespace

std::string PrintStep(const Step& step) {
  return absl::StrCat(step.primitive, "(", absl::StrJoin(step.args, ", ", AppendArg), ")");
}

std::string PrintSteps(const Trace& trace) {
  std::string text = "v1\n";
  for (const Step& step : trace.steps) absl::StrAppend(&text, PrintStep(step), "\n");
  return text;
}

std::string PrintSketch(const Trace& trace) {
  std::string text = trace.sketch;
  for (const auto& [key, value] : trace.decisions) absl::StrAppend(&text, " ", key, "=", value);
  return text;
}

std::string PrintTrace(const Trace& trace) {
  std::string text = PrintSteps(trace);
  if (!trace.sketch.empty())
    text.insert(text.find('\n') + 1, absl::StrCat("sketch ", PrintSketch(trace), "\n"));
  return text;
}

absl::StatusOr<Trace> ParseTrace(const std::string& text) {
  Trace trace;
  bool versioned = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line.substr(0, line.find('#')));
    LineReader reader(line, number);
    if (reader.AtEnd()) continue;
    if (!versioned) {
      if (absl::StripAsciiWhitespace(line) != "v1") {
        return reader.Error(
            absl::StrCat("a trace begins with its version; expected v1, found '", line.substr(0, 20), "'"));
      }
      versioned = true;
      continue;
    }
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "sketch ") && trace.sketch.empty() &&
        trace.steps.empty()) {
      MYCC_RETURN_IF_ERROR(reader.Word().status());
      MYCC_RETURN_IF_ERROR(ParseSketch(reader, &trace));
      continue;
    }
    MYCC_ASSIGN_OR_RETURN(Step step, ParseStep(reader));
    trace.steps.push_back(std::move(step));
  }
  if (!versioned)
    return absl::InvalidArgumentError("1:1: the trace is empty; expected v1 and then one step a line");
  return trace;
}

}  // namespace mycc

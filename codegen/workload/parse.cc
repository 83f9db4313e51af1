// A recursive-descent parser for workloads, inputs, outputs and stages; parse_type.cc parses the types and
// extents, and parse_expr.cc the expressions.
#include "codegen/workload/parse.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/workload/check.h"
#include "codegen/workload/limits.h"
#include "codegen/workload/operators.h"
#include "codegen/workload/parse_expr.h"
#include "codegen/workload/parse_recovery.h"
#include "codegen/workload/parse_type.h"
#include "codegen/workload/spellings.h"
#include "codegen/workload/validate.h"

namespace mycc {
namespace {

// The grammar of docs/language.md from `file` down to `stage`, one function for each rule. A rule that fails
// has reported its problem; parsing goes on with the next argument, stage or workload, and problems that
// follow from the first are not reported.
class WorkloadParser {
 public:
  explicit WorkloadParser(TokenStream tokens) : tokens_(std::move(tokens)) {}

  // All workloads; empty when there is a problem.
  std::vector<Workload> ParseFile();

 private:
  absl::Status ParseWorkload();
  absl::Status ParseVersion();
  absl::StatusOr<int64_t> CountBefore(int line);
  absl::Status ParseInputs();
  absl::Status ParseInput(const Token& name);
  absl::Status ParseOutputs();
  absl::Status ParseOutput(const Token& name);
  // One entry of a signature, up to the `,` or `)` after it.
  absl::Status ParseArgument(const std::string& what, absl::Status (WorkloadParser::*parse)(const Token&));
  absl::Status ParseStages();
  absl::Status ParseStage();
  absl::Status ParseStageOf(const Token& name);
  absl::StatusOr<Buffer> ParseStageTensor(const Token& name, size_t rank);
  absl::Status ParseStageBody(const std::vector<Token>& axes, const Buffer& tensor);
  absl::Status ParseStageValue(const Buffer& tensor);
  absl::Status ParseReduction(const Buffer& tensor);
  absl::Status ParseReduceAxes();
  absl::Status DefineAxis(const Token& name, int64_t extent, std::vector<Var>* axes);
  absl::Status CheckStageAt(Position value);
  absl::Status CheckWorkload(const Token& name);
  absl::StatusOr<Token> ParseNewName(const std::string& what);
  absl::Status ClaimTensor(const Token& name);

  TokenStream tokens_;
  std::vector<Workload> workloads_;
  std::set<std::string> workload_names_;

  // The workload being read:
  Workload workload_;
  bool is_refused_ = false;  // a part of it has a problem
  std::set<std::string> tensor_names_;
  std::map<std::string, Buffer> unwritten_;  // outputs without a stage so far
  BufferSet readable_;
  // The stage being read:
  ExprScope scope_;
  Stage stage_;
  std::unique_ptr<ExprParser> expressions_;
};

std::vector<Workload> WorkloadParser::ParseFile() {
  if (tokens_.AtEnd()) tokens_.Unexpected("`workload`").IgnoreError();
  while (!tokens_.AtEnd()) {
    const size_t begin = tokens_.at();
    if (!ParseWorkload().ok()) SkipToWorkload(begin, &tokens_);
  }
  if (tokens_.diagnostics().count() > 0) return {};
  return std::move(workloads_);
}

absl::Status WorkloadParser::ParseWorkload() {
  workload_ = Workload();
  scope_ = ExprScope();
  tensor_names_.clear();
  unwritten_.clear();
  readable_.clear();
  is_refused_ = false;
  const int line = tokens_.Peek().position.line;
  MYCC_RETURN_IF_ERROR(ParseVersion());
  MYCC_RETURN_IF_ERROR(
      tokens_.Expect("workload", "at the beginning of a workload", SpellingOfName(tokens_.Peek().text)));
  const absl::StatusOr<int64_t> count = CountBefore(line);
  is_refused_ |= !count.ok();
  workload_.count = count.value_or(1);
  MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("a workload"));
  workload_.name = name.text;
  if (!workload_names_.insert(name.text).second) {
    tokens_
        .Error(name.position, absl::StrCat("a second workload ", Describe(name), "; expected distinct names"))
        .IgnoreError();
  }
  if (tokens_.Peek().Is("[")) {
    return tokens_.Error(
        tokens_.Peek().position,
        "symbolic extents such as [N in 1..512] are not yet supported; expected `(` and numbers for extents");
  }
  MYCC_RETURN_IF_ERROR(ParseInputs());
  MYCC_RETURN_IF_ERROR(tokens_.Expect("->", "and the outputs"));
  MYCC_RETURN_IF_ERROR(ParseOutputs());
  MYCC_RETURN_IF_ERROR(tokens_.Expect("{", "and the stages"));
  MYCC_RETURN_IF_ERROR(ParseStages());
  tokens_.Next();
  return CheckWorkload(name);
}

// Parses stages up to the `}` after them.
absl::Status WorkloadParser::ParseStages() {
  for (int stages = 0; !tokens_.Peek().Is("}"); ++stages) {
    if (tokens_.AtEnd() || AtWorkload(tokens_))
      return tokens_.Unexpected("a stage, as in `y[i] = ...`, or `}`");
    if (stages == kMaxStages) {
      return tokens_.Error(tokens_.Peek().position,
                           absl::StrCat("more than ", kMaxStages, " stages; expected several workloads"));
    }
    const size_t begin = tokens_.at(), problems = tokens_.diagnostics().count();
    if (ParseStage().ok()) continue;
    is_refused_ = true;
    SkipToStage(begin, &tokens_);
    // A stage that is refused for an earlier problem has not been read to its end.
    if (tokens_.diagnostics().count() == problems) tokens_.CheckBrackets(begin).IgnoreError();
  }
  if (unwritten_.empty() || scope_.has_lost_names) return absl::OkStatus();
  return tokens_.Error(tokens_.Peek().position,
                       absl::StrCat("the output `", unwritten_.begin()->first,
                                    "` is not written; expected its stage before `}`"));
}

// Checks the rules of the whole workload. Its parts must be right for that.
absl::Status WorkloadParser::CheckWorkload(const Token& name) {
  if (is_refused_) return absl::OkStatus();
  if (const std::string problem = WorkloadProblem(workload_); !problem.empty())
    return tokens_.Error(name.position, problem);
  workloads_.push_back(std::move(workload_));
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseVersion() {
  if (!AtVersion(tokens_)) return absl::OkStatus();
  const Token token = tokens_.Next();
  if (token.text == "v1") return absl::OkStatus();
  return tokens_.Error(token.position, absl::StrCat("a workload of version ", token.text,
                                                    "; expected v1, the version this build reads"));
}

// N of a comment line `# count N` directly before the workload; 1 when there is none.
absl::StatusOr<int64_t> WorkloadParser::CountBefore(int line) {
  const std::vector<Comment>& comments = tokens_.comments();
  auto comment = std::ranges::lower_bound(comments, line, {}, &Comment::line);
  while (comment != comments.begin() && std::prev(comment)->line == line - 1) {
    --comment;
    --line;
    const std::vector<std::string> words =
        absl::StrSplit(comment->text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.size() != 2 || words[0] != "count") continue;
    int64_t count = 0;
    if (absl::SimpleAtoi(words[1], &count) && count >= 1) return count;
    return tokens_.Error({comment->line, 1}, absl::StrCat("the count `", words[1],
                                                          "` of a workload; expected a whole number from 1"));
  }
  return 1;
}

absl::StatusOr<Token> WorkloadParser::ParseNewName(const std::string& what) {
  const Token& token = tokens_.Peek();
  if (token.kind != Token::Kind::kName) return tokens_.Unexpected(absl::StrCat("a name for ", what));
  if (const std::string problem = NameProblem(token.text); !problem.empty())
    return tokens_.Error(token.position, problem);
  return tokens_.Next();
}

absl::Status WorkloadParser::ClaimTensor(const Token& name) {
  if (tensor_names_.insert(name.text).second) return absl::OkStatus();
  return tokens_.Error(name.position,
                       absl::StrCat("a second tensor ", Describe(name), "; expected distinct names"));
}

absl::Status WorkloadParser::ParseInputs() {
  MYCC_RETURN_IF_ERROR(tokens_.Expect("(", "and the inputs"));
  for (bool first = true; !tokens_.Peek().Is(")"); first = false) {
    if (!first) MYCC_RETURN_IF_ERROR(tokens_.Expect(",", "or `)` after an input"));
    MYCC_RETURN_IF_ERROR(ParseArgument("an input", &WorkloadParser::ParseInput));
  }
  tokens_.Next();
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseOutputs() {
  MYCC_RETURN_IF_ERROR(tokens_.Expect("(", "and the outputs"));
  do {
    MYCC_RETURN_IF_ERROR(ParseArgument("an output", &WorkloadParser::ParseOutput));
  } while (tokens_.Accept(","));
  return tokens_.Expect(")", "or `,` after an output");
}

absl::Status WorkloadParser::ParseArgument(const std::string& what,
                                           absl::Status (WorkloadParser::*parse)(const Token&)) {
  const size_t begin = tokens_.at();
  const absl::StatusOr<Token> name = ParseNewName(what);
  scope_.has_lost_names |= !name.ok();
  if (name.ok()) {
    if ((this->*parse)(*name).ok()) return absl::OkStatus();
    scope_.broken.insert(name->text);
  }
  is_refused_ = true;
  return SkipArgument(begin, &tokens_);
}

absl::Status WorkloadParser::ParseInput(const Token& name) {
  MYCC_RETURN_IF_ERROR(ClaimTensor(name));
  MYCC_RETURN_IF_ERROR(tokens_.Expect(":", "and the type of the input"));
  const bool is_const = tokens_.Accept("const");
  MYCC_ASSIGN_OR_RETURN(Buffer tensor, ParseType(name.text, &tokens_));
  readable_.insert(tensor.get());
  scope_.tensors[name.text] = tensor;
  workload_.inputs.push_back({std::move(tensor), is_const});
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseOutput(const Token& name) {
  MYCC_RETURN_IF_ERROR(ClaimTensor(name));
  MYCC_RETURN_IF_ERROR(tokens_.Expect(":", "and the type of the output"));
  MYCC_ASSIGN_OR_RETURN(Buffer tensor, ParseType(name.text, &tokens_));
  unwritten_[name.text] = tensor;
  workload_.outputs.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseStage() {
  if (tokens_.Peek().kind != Token::Kind::kName) {
    scope_.has_lost_names = true;
    return tokens_.Unexpected("a stage, as in `y[i] = ...`, or `}`");
  }
  const absl::StatusOr<Token> name = ParseNewName("a stage");
  scope_.has_lost_names |= !name.ok();
  MYCC_RETURN_IF_ERROR(name.status());
  const absl::Status status = ParseStageOf(*name);
  if (status.ok()) return status;
  unwritten_.erase(name->text);
  if (scope_.tensors.count(name->text) == 0) scope_.broken.insert(name->text);
  return status;
}

absl::Status WorkloadParser::ParseStageOf(const Token& name) {
  MYCC_RETURN_IF_ERROR(tokens_.Expect("[", "and the axes of the stage", SpellingOfName(name.text)));
  std::vector<Token> axes;
  while (!tokens_.Peek().Is("]")) {
    if (!axes.empty()) MYCC_RETURN_IF_ERROR(tokens_.Expect(",", "or `]` after an axis"));
    MYCC_ASSIGN_OR_RETURN(axes.emplace_back(), ParseNewName("an axis"));
  }
  tokens_.Next();
  MYCC_ASSIGN_OR_RETURN(const Buffer tensor, ParseStageTensor(name, axes.size()));
  const absl::Status body = ParseStageBody(axes, tensor);
  // Later stages may read the tensor even if its value has a problem.
  readable_.insert(tensor.get());
  scope_.tensors[name.text] = tensor;
  MYCC_RETURN_IF_ERROR(body);
  workload_.stages.push_back(std::move(stage_));
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseStageBody(const std::vector<Token>& axes, const Buffer& tensor) {
  stage_ = Stage();
  stage_.output = tensor;
  scope_.axes.clear();
  for (size_t d = 0; d < axes.size(); ++d)
    MYCC_RETURN_IF_ERROR(DefineAxis(axes[d], tensor->shape[d], &stage_.axes));
  const Token& sign = tokens_.Peek();
  MYCC_RETURN_IF_ERROR(tokens_.Expect("=", "and the value of the stage",
                                      tokens_.Peek(1).Is("=") ? SpellingOfSigns(sign.text, "=") : ""));
  expressions_ = std::make_unique<ExprParser>(&tokens_, &scope_);
  const Position value = tokens_.Peek().position;
  MYCC_RETURN_IF_ERROR(ParseStageValue(tensor));
  return CheckStageAt(value);
}

// The tensor that a stage writes: an output, with its type in the signature, or a new tensor, with its type
// here.
absl::StatusOr<Buffer> WorkloadParser::ParseStageTensor(const Token& name, size_t rank) {
  const auto output = unwritten_.find(name.text);
  const bool is_output = output != unwritten_.end();
  // The output's type in the signature has a problem, so only a type here could give it.
  if (!is_output && scope_.broken.count(name.text) > 0 && !tokens_.Peek().Is(":")) return tokens_.Follows();
  if (!is_output && scope_.broken.count(name.text) == 0) MYCC_RETURN_IF_ERROR(ClaimTensor(name));
  Buffer tensor = is_output ? output->second : nullptr;
  const Token colon = tokens_.Peek();
  if (!is_output || colon.Is(":")) {
    MYCC_RETURN_IF_ERROR(
        tokens_.Expect(":", absl::StrCat("and the type of ", Describe(name), ", which is no output")));
    MYCC_ASSIGN_OR_RETURN(Buffer declared, ParseType(name.text, &tokens_));
    if (is_output && (declared->dtype != tensor->dtype || declared->shape != tensor->shape)) {
      return tokens_.Error(colon.position,
                           absl::StrCat("the type of the output ", Describe(name),
                                        " is not the one in the signature; expected the same"));
    }
    if (!is_output) tensor = std::move(declared);
  }
  if (is_output) unwritten_.erase(output);
  if (tensor->rank() == static_cast<int>(rank)) return tensor;
  return tokens_.Error(name.position, absl::StrCat(Describe(name), " has ", rank, " axes; expected ",
                                                   tensor->rank(), ", one for each dimension of its type"));
}

absl::Status WorkloadParser::DefineAxis(const Token& name, int64_t extent, std::vector<Var>* axes) {
  axes->push_back(MakeVar(name.text, extent));
  if (scope_.axes.emplace(name.text, axes->back()).second) return absl::OkStatus();
  return tokens_.Error(name.position,
                       absl::StrCat("a second axis ", Describe(name), "; expected distinct names"));
}

absl::Status WorkloadParser::ParseStageValue(const Buffer& tensor) {
  if (ParseReduceOp(tokens_.Peek().text) != ReduceOp::kNone && tokens_.Peek(1).Is("["))
    return ParseReduction(tensor);
  MYCC_ASSIGN_OR_RETURN(stage_.value, expressions_->Parse(tensor->dtype));
  const Token& next = tokens_.Peek();
  if (next.kind == Token::Kind::kName || next.Is("}")) return absl::OkStatus();
  return tokens_.Unexpected("an operator, the next stage or `}`", SpellingInExpression(next.text));
}

absl::Status WorkloadParser::ParseReduction(const Buffer& tensor) {
  stage_.reduce = ParseReduceOp(tokens_.Next().text);
  MYCC_RETURN_IF_ERROR(ParseReduceAxes());
  MYCC_RETURN_IF_ERROR(tokens_.Expect("(", "and the operand of the reduction"));
  const bool is_arg = stage_.reduce == ReduceOp::kArgMax || stage_.reduce == ReduceOp::kArgMin;
  MYCC_ASSIGN_OR_RETURN(stage_.value,
                        expressions_->Parse(is_arg ? std::nullopt : std::optional<DType>(tensor->dtype)));
  MYCC_RETURN_IF_ERROR(tokens_.Expect(")", "or an operator in the operand of the reduction"));
  const Token& next = tokens_.Peek();
  if (next.kind == Token::Kind::kName || next.Is("}")) return absl::OkStatus();
  return tokens_.Unexpected("the next stage or `}`, for a reduction stands alone at the top of a stage");
}

absl::Status WorkloadParser::ParseReduceAxes() {
  tokens_.Next();
  do {
    MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("a reduction axis"));
    MYCC_RETURN_IF_ERROR(tokens_.Expect(":", "and the extent of the reduction axis"));
    const Position position = tokens_.Peek().position;
    MYCC_ASSIGN_OR_RETURN(const int64_t extent, ParseExtent(&tokens_));
    if (extent < 0)
      return tokens_.Error(position, absl::StrCat("an extent of ", extent, "; expected 0 or more"));
    MYCC_RETURN_IF_ERROR(DefineAxis(name, extent, &stage_.reduce_axes));
  } while (tokens_.Accept(","));
  return tokens_.Expect("]", "or `,` after a reduction axis");
}

absl::Status WorkloadParser::CheckStageAt(Position value) {
  const auto problem = CheckStage(stage_, readable_);
  if (!problem) return absl::OkStatus();
  Position position = value;
  if (const std::vector<Position>* places = expressions_->PlacesOf(problem->read))
    position = (*places)[problem->dimension + 1];
  return tokens_.Error(position, problem->message);
}

}  // namespace

ParsedText ParseText(const std::string& text) {
  Diagnostics diagnostics;
  TokenizedText tokens = Tokenize(text, &diagnostics);
  ParsedText parsed;
  parsed.workloads = WorkloadParser(TokenStream(std::move(tokens), &diagnostics)).ParseFile();
  parsed.problems = diagnostics.kept();
  parsed.left_out = diagnostics.count() - parsed.problems.size();
  return parsed;
}

absl::StatusOr<std::vector<Workload>> ParseWorkloads(const std::string& text, const std::string& origin) {
  ParsedText parsed = ParseText(text);
  if (parsed.problems.empty()) return std::move(parsed.workloads);
  return absl::InvalidArgumentError(OneLine(origin, parsed.problems[0]));
}

absl::StatusOr<Workload> ParseWorkload(const std::string& text, const std::string& origin) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Workload> workloads, ParseWorkloads(text, origin));
  if (workloads.size() == 1) return std::move(workloads[0]);
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", workloads.size(), " workloads; expected one"));
}

}  // namespace mycc

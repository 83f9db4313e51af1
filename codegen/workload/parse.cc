#include "codegen/workload/parse.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/workload/check.h"
#include "codegen/workload/limits.h"
#include "codegen/workload/operators.h"
#include "codegen/workload/parse_expr.h"
#include "codegen/workload/validate.h"

namespace mycc {
namespace {

// The grammar of docs/language.md from `file` down to `stage`: one function for each rule.
class WorkloadParser {
 public:
  explicit WorkloadParser(TokenStream tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<std::vector<Workload>> ParseFile();

 private:
  absl::Status ParseWorkload();
  absl::Status ParseVersion();
  absl::StatusOr<int64_t> CountBefore(int line) const;
  absl::Status ParseInputs();
  absl::Status ParseOutputs();
  absl::Status ParseStage();
  absl::StatusOr<Buffer> ParseStageTensor(const Token& name, size_t rank);
  absl::Status ParseStageValue(const Buffer& tensor);
  absl::Status ParseReduction(const Buffer& tensor);
  absl::Status ParseReduceAxes();
  absl::Status DefineAxis(const Token& name, int64_t extent, std::vector<Var>* axes);
  absl::Status CheckStageAt(Position value);
  absl::StatusOr<Token> ParseNewName(const std::string& what);
  absl::StatusOr<Buffer> ParseType(const std::string& name);
  absl::StatusOr<int64_t> ParseExtent(int nesting);
  absl::StatusOr<int64_t> ParseExtentProduct(int nesting);
  absl::StatusOr<int64_t> ParseExtentFactor(int nesting);
  absl::StatusOr<int64_t> Fold(const Token& op, int64_t a, int64_t b) const;
  absl::Status ClaimTensor(const Token& name);

  TokenStream tokens_;
  std::vector<Workload> workloads_;
  std::set<std::string> workload_names_;

  // The workload being read:
  Workload workload_;
  std::set<std::string> tensor_names_;
  std::map<std::string, Buffer> unwritten_;  // outputs whose stage has not come yet
  std::unordered_set<const BufferNode*> readable_;
  // The stage being read:
  ExprScope scope_;
  Stage stage_;
  std::unique_ptr<ExprParser> expressions_;
};

absl::StatusOr<std::vector<Workload>> WorkloadParser::ParseFile() {
  if (tokens_.AtEnd()) return tokens_.Unexpected("`workload`");
  while (!tokens_.AtEnd()) MYCC_RETURN_IF_ERROR(ParseWorkload());
  return std::move(workloads_);
}

absl::Status WorkloadParser::ParseWorkload() {
  workload_ = Workload();
  scope_ = ExprScope();
  tensor_names_.clear();
  unwritten_.clear();
  readable_.clear();
  const int line = tokens_.Peek().position.line;
  MYCC_RETURN_IF_ERROR(ParseVersion());
  MYCC_RETURN_IF_ERROR(tokens_.Expect("workload", "at the beginning of a workload"));
  MYCC_ASSIGN_OR_RETURN(workload_.count, CountBefore(line));
  MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("a workload"));
  workload_.name = name.text;
  if (!workload_names_.insert(name.text).second) {
    return tokens_.Error(name.position,
                         absl::StrCat("a second workload ", Describe(name), "; expected distinct names"));
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
  while (!tokens_.Peek().Is("}")) MYCC_RETURN_IF_ERROR(ParseStage());
  if (!unwritten_.empty()) {
    return tokens_.Error(tokens_.Peek().position,
                         absl::StrCat("the output `", unwritten_.begin()->first,
                                      "` is not written; expected its stage before `}`"));
  }
  tokens_.Next();
  if (const std::string problem = WorkloadProblem(workload_); !problem.empty())
    return tokens_.Error(name.position, problem);
  workloads_.push_back(std::move(workload_));
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseVersion() {
  const Token& token = tokens_.Peek();
  const bool version = token.kind == Token::Kind::kName && token.text.size() > 1 && token.text[0] == 'v' &&
                       token.text.find_first_not_of("0123456789", 1) == std::string::npos;
  if (!version) return absl::OkStatus();
  if (token.text != "v1") {
    return tokens_.Error(token.position, absl::StrCat("a workload of version ", token.text,
                                                      "; expected v1, the version this build reads"));
  }
  tokens_.Next();
  return absl::OkStatus();
}

// `# count N` in the lines of comment directly before the workload; 1 when there is none.
absl::StatusOr<int64_t> WorkloadParser::CountBefore(int line) const {
  const std::vector<Comment>& comments = tokens_.comments();
  auto comment = std::lower_bound(comments.begin(), comments.end(), line,
                                  [](const Comment& c, int l) { return c.line < l; });
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
  while (!tokens_.Peek().Is(")")) {
    if (!workload_.inputs.empty()) MYCC_RETURN_IF_ERROR(tokens_.Expect(",", "or `)` after an input"));
    MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("an input"));
    MYCC_RETURN_IF_ERROR(ClaimTensor(name));
    MYCC_RETURN_IF_ERROR(tokens_.Expect(":", "and the type of the input"));
    const bool is_const = tokens_.Accept("const");
    MYCC_ASSIGN_OR_RETURN(Buffer tensor, ParseType(name.text));
    readable_.insert(tensor.get());
    scope_.tensors[name.text] = tensor;
    workload_.inputs.push_back({std::move(tensor), is_const});
  }
  tokens_.Next();
  return absl::OkStatus();
}

absl::Status WorkloadParser::ParseOutputs() {
  MYCC_RETURN_IF_ERROR(tokens_.Expect("(", "and the outputs"));
  do {
    MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("an output"));
    MYCC_RETURN_IF_ERROR(ClaimTensor(name));
    MYCC_RETURN_IF_ERROR(tokens_.Expect(":", "and the type of the output"));
    MYCC_ASSIGN_OR_RETURN(Buffer tensor, ParseType(name.text));
    unwritten_[name.text] = tensor;
    workload_.outputs.push_back(std::move(tensor));
  } while (tokens_.Accept(","));
  return tokens_.Expect(")", "or `,` after an output");
}

absl::StatusOr<Buffer> WorkloadParser::ParseType(const std::string& name) {
  const Token& token = tokens_.Peek();
  const auto dtype = ParseDType(token.text);
  if (!dtype || token.kind != Token::Kind::kName)
    return tokens_.Unexpected("a type: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i8 u8 or bool");
  tokens_.Next();
  MYCC_RETURN_IF_ERROR(tokens_.Expect("[", "and the extents of the tensor (`[]` for a single number)"));
  std::vector<int64_t> shape;
  while (!tokens_.Peek().Is("]")) {
    if (!shape.empty()) MYCC_RETURN_IF_ERROR(tokens_.Expect(",", "or `]` after an extent"));
    MYCC_ASSIGN_OR_RETURN(const int64_t extent, ParseExtent(0));
    shape.push_back(extent);
  }
  tokens_.Next();
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return tokens_.Error(token.position, problem);
  return MakeBuffer(name, *dtype, std::move(shape));
}

absl::StatusOr<int64_t> WorkloadParser::ParseExtent(int nesting) {
  MYCC_ASSIGN_OR_RETURN(int64_t value, ParseExtentProduct(nesting));
  while (tokens_.Peek().Is("+") || tokens_.Peek().Is("-")) {
    const Token op = tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t right, ParseExtentProduct(nesting));
    MYCC_ASSIGN_OR_RETURN(value, Fold(op, value, right));
  }
  return value;
}

absl::StatusOr<int64_t> WorkloadParser::ParseExtentProduct(int nesting) {
  MYCC_ASSIGN_OR_RETURN(int64_t value, ParseExtentFactor(nesting));
  while (tokens_.Peek().Is("*") || tokens_.Peek().Is("//") || tokens_.Peek().Is("%")) {
    const Token op = tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t right, ParseExtentFactor(nesting));
    MYCC_ASSIGN_OR_RETURN(value, Fold(op, value, right));
  }
  return value;
}

absl::StatusOr<int64_t> WorkloadParser::ParseExtentFactor(int nesting) {
  const Token& token = tokens_.Peek();
  if (nesting > kMaxNesting)
    return tokens_.Error(token.position, absl::StrCat("more than ", kMaxNesting,
                                                      " brackets inside one another; expected a number"));
  if (token.Is("(")) {
    tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t value, ParseExtent(nesting + 1));
    MYCC_RETURN_IF_ERROR(tokens_.Expect(")", "or an operator in an extent"));
    return value;
  }
  if (token.kind == Token::Kind::kName && !IsReservedWord(token.text)) {
    return tokens_.Error(token.position, absl::StrCat("symbolic extents such as ", Describe(token),
                                                      " are not yet supported; expected a number"));
  }
  if (token.kind != Token::Kind::kInt)
    return tokens_.Unexpected("an extent (a whole number, or + - * // % of whole numbers)");
  if (token.int_value > static_cast<uint64_t>(kMaxElements)) {
    return tokens_.Error(token.position,
                         absl::StrCat(Describe(token), " in an extent; expected at most 2^40"));
  }
  return static_cast<int64_t>(tokens_.Next().int_value);
}

// Operands are at most 2^40 in magnitude, and so is every result; products are compared in 128 bits.
absl::StatusOr<int64_t> WorkloadParser::Fold(const Token& op, int64_t a, int64_t b) const {
  if ((op.Is("//") || op.Is("%")) && b <= 0)
    return tokens_.Error(op.position,
                         absl::StrCat("division by ", b, " in an extent; expected a positive divisor"));
  const int64_t quotient = b > 0 ? a / b - (a % b < 0) : 0;
  const __int128 result = op.Is("+")    ? static_cast<__int128>(a) + b
                          : op.Is("-")  ? static_cast<__int128>(a) - b
                          : op.Is("*")  ? static_cast<__int128>(a) * b
                          : op.Is("//") ? quotient
                                        : a - quotient * b;
  if (result <= kMaxElements && result >= -kMaxElements) return static_cast<int64_t>(result);
  return tokens_.Error(op.position, "an extent beyond 2^40; expected fewer elements");
}

absl::Status WorkloadParser::ParseStage() {
  if (workload_.stages.size() == kMaxStages) {
    return tokens_.Error(tokens_.Peek().position,
                         absl::StrCat("more than ", kMaxStages, " stages; expected several workloads"));
  }
  if (tokens_.Peek().kind != Token::Kind::kName)
    return tokens_.Unexpected("a stage, as in `y[i] = ...`, or `}`");
  MYCC_ASSIGN_OR_RETURN(const Token name, ParseNewName("a stage"));
  MYCC_RETURN_IF_ERROR(tokens_.Expect("[", "and the axes of the stage"));
  std::vector<Token> axes;
  while (!tokens_.Peek().Is("]")) {
    if (!axes.empty()) MYCC_RETURN_IF_ERROR(tokens_.Expect(",", "or `]` after an axis"));
    MYCC_ASSIGN_OR_RETURN(axes.emplace_back(), ParseNewName("an axis"));
  }
  tokens_.Next();
  MYCC_ASSIGN_OR_RETURN(const Buffer tensor, ParseStageTensor(name, axes.size()));
  stage_ = Stage();
  stage_.output = tensor;
  scope_.axes.clear();
  for (size_t d = 0; d < axes.size(); ++d)
    MYCC_RETURN_IF_ERROR(DefineAxis(axes[d], tensor->shape[d], &stage_.axes));
  MYCC_RETURN_IF_ERROR(tokens_.Expect("=", "and the value of the stage"));
  expressions_ = std::make_unique<ExprParser>(&tokens_, &scope_);
  const Position value = tokens_.Peek().position;
  MYCC_RETURN_IF_ERROR(ParseStageValue(tensor));
  MYCC_RETURN_IF_ERROR(CheckStageAt(value));
  readable_.insert(tensor.get());
  scope_.tensors[name.text] = tensor;
  workload_.stages.push_back(std::move(stage_));
  return absl::OkStatus();
}

// The tensor that a stage writes: an output, whose type the signature has, or a new one, whose type stands
// here.
absl::StatusOr<Buffer> WorkloadParser::ParseStageTensor(const Token& name, size_t rank) {
  const auto output = unwritten_.find(name.text);
  const bool is_output = output != unwritten_.end();
  if (!is_output) MYCC_RETURN_IF_ERROR(ClaimTensor(name));
  Buffer tensor = is_output ? output->second : nullptr;
  const Token colon = tokens_.Peek();
  if (!is_output || colon.Is(":")) {
    MYCC_RETURN_IF_ERROR(
        tokens_.Expect(":", absl::StrCat("and the type of ", Describe(name), ", which is no output")));
    MYCC_ASSIGN_OR_RETURN(Buffer declared, ParseType(name.text));
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
  return tokens_.Unexpected("an operator, the next stage or `}`");
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
    MYCC_ASSIGN_OR_RETURN(const int64_t extent, ParseExtent(0));
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

absl::StatusOr<std::vector<Workload>> ParseWorkloads(const std::string& text, const std::string& origin) {
  MYCC_ASSIGN_OR_RETURN(TokenizedText tokens, Tokenize(text, origin));
  return WorkloadParser(TokenStream(std::move(tokens), origin)).ParseFile();
}

absl::StatusOr<Workload> ParseWorkload(const std::string& text, const std::string& origin) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Workload> workloads, ParseWorkloads(text, origin));
  if (workloads.size() == 1) return std::move(workloads[0]);
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", workloads.size(), " workloads; expected one"));
}

}  // namespace mycc

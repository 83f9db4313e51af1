// A recursive-descent parser for expressions, with the type of each node; parse_literal.cc parses the
// literals.
#include "codegen/workload/parse_expr.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/status.h"
#include "codegen/workload/index.h"
#include "codegen/workload/limits.h"
#include "codegen/workload/operators.h"
#include "codegen/workload/spellings.h"

namespace mycc {
namespace {

struct InfixInfo {
  const char* text;
  int level;  // larger binds tighter
  Op op;
  bool swapped;  // `a > b` is `b < a`
};

constexpr int kCompareLevel = 2;
constexpr InfixInfo kInfix[] = {
    {"||", 0, Op::kOr, false},       {"&&", 1, Op::kAnd, false}, {"<", 2, Op::kLt, false},
    {"<=", 2, Op::kLe, false},       {">", 2, Op::kLt, true},    {">=", 2, Op::kLe, true},
    {"==", 2, Op::kEq, false},       {"!=", 2, Op::kNe, false},  {"+", 3, Op::kAdd, false},
    {"-", 3, Op::kSub, false},       {"*", 4, Op::kMul, false},  {"/", 4, Op::kDiv, false},
    {"//", 4, Op::kFloorDiv, false}, {"%", 4, Op::kMod, false},
};

const InfixInfo* FindInfix(const Token& token) {
  if (token.kind != Token::Kind::kPunctuation) return nullptr;
  for (const InfixInfo& infix : kInfix) {
    if (token.text == infix.text) return &infix;
  }
  return nullptr;
}

template <typename Map>
std::vector<std::string> NamesOf(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

// "a, b, c", with the number of names that are not shown.
template <typename Map>
std::string Names(const Map& map) {
  constexpr size_t kShown = 12;
  if (map.empty()) return "none";
  std::string shown;
  size_t count = 0;
  for (const auto& [name, value] : map) {
    if (count == kShown) return absl::StrCat(shown, " and ", map.size() - kShown, " more");
    absl::StrAppend(&shown, count++ == 0 ? "" : ", ", name);
  }
  return shown;
}

// Counts a level of recursion for as long as it lives.
class Nesting {
 public:
  explicit Nesting(int* depth) : depth_(depth) { ++*depth_; }
  ~Nesting() { --*depth_; }

 private:
  int* depth_;
};

}  // namespace

absl::StatusOr<Expr> ExprParser::Parse(std::optional<DType> wanted) {
  MYCC_ASSIGN_OR_RETURN(Operand operand, ParseInfix(0));
  MYCC_RETURN_IF_ERROR(ResolveLiteralType(&operand, wanted));
  return operand.expr;
}

const std::vector<Position>* ExprParser::PlacesOf(const ExprNode* load) const {
  const auto it = places_.find(load);
  return it == places_.end() ? nullptr : &it->second;
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseInfix(int min_level) {
  MYCC_ASSIGN_OR_RETURN(Operand left, ParseUnary());
  bool compared = false;
  while (const InfixInfo* infix = FindInfix(tokens_.Peek())) {
    if (infix->level < min_level) break;
    const Token& token = tokens_.Next();
    if (infix->level == kCompareLevel && compared) {
      return tokens_.Error(token.position,
                           absl::StrCat("comparisons do not chain, unexpected ", Describe(token),
                                        "; expected `&&` between them, as in 0 <= i && i < 8"));
    }
    compared = infix->level == kCompareLevel;
    MYCC_ASSIGN_OR_RETURN(Operand right, ParseInfix(infix->level + 1));
    std::vector<Operand> operands = {std::move(left), std::move(right)};
    if (infix->swapped) std::swap(operands[0], operands[1]);
    MYCC_ASSIGN_OR_RETURN(left, Combine(infix->op, Describe(token), token.position, std::move(operands)));
  }
  return left;
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseUnary() {
  const Nesting nesting(&nesting_);
  if (nesting_ > kMaxNesting) {
    return tokens_.Error(
        tokens_.Peek().position,
        absl::StrCat("more than ", kMaxNesting,
                     " brackets and signs inside one another; expected stages of their own"));
  }
  const Token& token = tokens_.Peek();
  if (!token.Is("-") && !token.Is("!")) return ParsePrimary();
  tokens_.Next();
  if (token.Is("-") && AtLiteral()) {
    MYCC_ASSIGN_OR_RETURN(Operand literal, ParseLiteral(/*negative=*/true, std::nullopt));
    literal.position = token.position;
    return literal;
  }
  MYCC_ASSIGN_OR_RETURN(Operand operand, ParseUnary());
  return Combine(token.Is("-") ? Op::kNeg : Op::kNot, Describe(token), token.position, {std::move(operand)});
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParsePrimary() {
  const Token& token = tokens_.Peek();
  if (token.Is("(")) return ParseParenthesized();
  if (AtLiteral() || token.Is("nan")) return ParseLiteral(/*negative=*/false, std::nullopt);
  if (tokens_.AtLineBegin() && tokens_.AtStage())
    return tokens_.Unexpected("an expression before the next stage");
  if (token.kind == Token::Kind::kName) return ParseNamed();
  return tokens_.Unexpected("an expression");
}

absl::Status ExprParser::Expect(const char* text, const std::string& why) {
  return tokens_.Expect(text, why, SpellingInExpression(tokens_.Peek().text));
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseParenthesized() {
  const Position position = tokens_.Next().position;
  MYCC_ASSIGN_OR_RETURN(Operand inner, ParseInfix(0));
  MYCC_RETURN_IF_ERROR(Expect(")", "or an operator"));
  inner.position = position;
  return inner;
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseNamed() {
  const Token& token = tokens_.Peek();
  const std::string& name = token.text;
  if (name == "true" || name == "false") {
    tokens_.Next();
    return Operand{BoolConst(name == "true"), token.position};
  }
  const bool bracket = tokens_.Peek(1).Is("[");
  if (ParseReduceOp(name) != ReduceOp::kNone && (bracket || FindFunction(name) == nullptr)) {
    return tokens_.Error(token.position,
                         absl::StrCat("the reduction `", name,
                                      "` stands inside an expression; expected it alone at the top of a "
                                      "stage (give it a stage of its own)"));
  }
  if (const auto dtype = ParseDType(name)) return ParseCastOrTypedLiteral(*dtype);
  if (FindFunction(name) != nullptr || name == "select" || name == "clamp") return ParseFunction();
  if (scope_.tensors.count(name) > 0 && (bracket || scope_.axes.count(name) == 0)) return ParseRead();
  const auto axis = scope_.axes.find(name);
  if (axis == scope_.axes.end() || bracket) return UnknownName(token);
  tokens_.Next();
  return Operand{VarRef(axis->second), token.position};
}

absl::Status ExprParser::UnknownName(const Token& name) {
  if (IsReservedWord(name.text)) return tokens_.Unexpected("an expression");
  const bool is_read = tokens_.Peek(1).Is("["), is_call = tokens_.Peek(1).Is("(");
  const bool is_tensor = is_read || scope_.broken.count(name.text) > 0;
  if (is_tensor && (scope_.has_lost_names || scope_.broken.count(name.text) > 0)) return tokens_.Follows();
  const std::string kind = is_read ? "tensor " : is_call ? "function " : "name ";
  const std::string expected =
      is_read   ? absl::StrCat("an input or an earlier stage (", Names(scope_.tensors), ")")
      : is_call ? absl::StrCat("a function (", absl::StrJoin(FunctionNames(), ", "), ") or a type")
                : absl::StrCat("an axis of this stage (", Names(scope_.axes), "), a literal or a function");
  return tokens_.Error(name.position, absl::StrCat("unknown ", kind, Describe(name), "; expected ", expected),
                       HintFor(name));
}

std::string ExprParser::HintFor(const Token& name) {
  // Comparing with all names is slow; a text full of unknown names must not take that long.
  if (!tokens_.diagnostics().Keeps(name.position)) return "";
  if (std::string spelling = SpellingOfName(name.text); !spelling.empty()) return spelling;
  if (tokens_.Previous().Is("//")) return SpellingOfSigns("", "//");
  const bool is_read = tokens_.Peek(1).Is("["), is_call = tokens_.Peek(1).Is("(");
  std::vector<std::string> names;
  if (is_call) names = FunctionNames();
  if (!is_call && !is_read) names = NamesOf(scope_.axes);
  for (const std::string& tensor : NamesOf(scope_.tensors)) names.push_back(tensor);
  const std::string nearest = NearestName(name.text, names);
  return nearest.empty() ? "" : absl::StrCat("did you mean `", nearest, "`?");
}

absl::StatusOr<std::vector<ExprParser::Operand>> ExprParser::ParseArguments(const std::string& function,
                                                                            size_t count) {
  MYCC_RETURN_IF_ERROR(tokens_.Expect("(", absl::StrCat("after the function ", function)));
  std::vector<Operand> operands;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) MYCC_RETURN_IF_ERROR(Expect(",", absl::StrCat("(", function, " takes ", count, " operands)")));
    MYCC_ASSIGN_OR_RETURN(Operand operand, ParseInfix(0));
    operands.push_back(std::move(operand));
  }
  MYCC_RETURN_IF_ERROR(
      Expect(")", absl::StrCat("(", function, " takes ", count, count == 1 ? " operand)" : " operands)")));
  return operands;
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseFunction() {
  const Token& token = tokens_.Next();
  const std::string name = token.text;
  if (name == "clamp") {
    MYCC_ASSIGN_OR_RETURN(std::vector<Operand> operands, ParseArguments(name, 3));
    MYCC_RETURN_IF_ERROR(Unify("`clamp`", token.position, &operands));
    MYCC_ASSIGN_OR_RETURN(Operand low,
                          Combine(Op::kMax, "`clamp`", token.position, {operands[0], operands[1]}));
    return Combine(Op::kMin, "`clamp`", token.position, {low, operands[2]});
  }
  if (name != "select") {
    const FunctionInfo* function = FindFunction(name);
    MYCC_ASSIGN_OR_RETURN(std::vector<Operand> operands, ParseArguments(name, function->arity));
    return Combine(function->op, Describe(token), token.position, std::move(operands));
  }
  MYCC_ASSIGN_OR_RETURN(std::vector<Operand> operands, ParseArguments(name, 3));
  MYCC_RETURN_IF_ERROR(ResolveLiteralType(&operands[0], std::nullopt));
  const Operand condition = operands[0];
  if (condition.expr->dtype != DType::kBool) {
    return tokens_.Error(
        condition.position,
        absl::StrCat("the condition of select is ", DTypeName(condition.expr->dtype), "; expected bool"));
  }
  std::vector<Operand> arms(operands.begin() + 1, operands.end());
  MYCC_RETURN_IF_ERROR(Unify("`select`", token.position, &arms));
  return Finish(MakeSelect(condition.expr, arms[0].expr, arms[1].expr), token.position, operands);
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseRead() {
  const Token& name = tokens_.Next();
  const Buffer& tensor = scope_.tensors.at(name.text);
  MYCC_RETURN_IF_ERROR(
      tokens_.Expect("[", absl::StrCat("after the tensor `", name.text, "` (its indices)"),
                     tokens_.Peek().Is("(") ? "indices stand in square brackets: x[i,j]" : ""));
  std::vector<Position> places = {name.position};
  std::vector<Operand> operands;
  std::vector<Expr> indices;
  while (!tokens_.Peek().Is("]")) {
    if (!operands.empty()) MYCC_RETURN_IF_ERROR(Expect(",", "or `]` after an index"));
    MYCC_ASSIGN_OR_RETURN(Operand operand, ParseIndex(name.text));
    places.push_back(operand.position);
    indices.push_back(operand.expr);
    operands.push_back(std::move(operand));
  }
  tokens_.Next();
  if (static_cast<int>(indices.size()) != tensor->rank()) {
    return tokens_.Error(name.position,
                         absl::StrCat("`", name.text, "` is indexed by ", indices.size(),
                                      " expressions; expected ", tensor->rank(), ", one for each dimension"));
  }
  const Expr read = Load(tensor, std::move(indices));
  places_[read.get()] = std::move(places);
  reads_.push_back(read);
  return Finish(read, name.position, operands);
}

absl::StatusOr<ExprParser::Operand> ExprParser::ParseIndex(const std::string& tensor) {
  const Position position = tokens_.Peek().position;
  MYCC_ASSIGN_OR_RETURN(Operand operand, ParseInfix(0));
  operand.position = position;
  MYCC_RETURN_IF_ERROR(ResolveLiteralType(&operand, DType::kI64));
  if (!IsInt(operand.expr->dtype)) {
    return tokens_.Error(position, absl::StrCat("an index of `", tensor, "` is ",
                                                DTypeName(operand.expr->dtype), "; expected an integer"));
  }
  if (Expr index = WidenIndex(operand.expr)) {
    operand.expr = std::move(index);
    return operand;
  }
  return tokens_.Error(
      position, absl::StrCat("an index of `", tensor, "` is computed in ", DTypeName(operand.expr->dtype),
                             ", which may wrap; expected i64 (convert what is read: i64(...))"));
}

absl::StatusOr<ExprParser::Operand> ExprParser::Combine(Op op, const std::string& name, Position position,
                                                        std::vector<Operand> operands) {
  MYCC_RETURN_IF_ERROR(Unify(name, position, &operands));
  const DType dtype = operands[0].expr->dtype;
  if (const std::string expected = ExpectedOperands(op, dtype); !expected.empty()) {
    return tokens_.Error(position, absl::StrCat(name, " of ", DTypeName(dtype), "; expected ", expected));
  }
  Expr expr = operands.size() == 1 ? MakeUnary(op, operands[0].expr)
                                   : MakeBinary(op, operands[0].expr, operands[1].expr);
  return Finish(std::move(expr), position, operands);
}

absl::Status ExprParser::Unify(const std::string& name, Position position, std::vector<Operand>* operands) {
  std::optional<DType> typed;
  bool float_operand = false, int_literal = false;
  for (const Operand& operand : *operands) {
    if (!operand.untyped && !typed) typed = operand.expr->dtype;
    float_operand |= IsFloat(operand.expr->dtype);
    int_literal |= operand.untyped && IsInt(operand.expr->dtype);
  }
  for (Operand& operand : *operands) MYCC_RETURN_IF_ERROR(ResolveLiteralType(&operand, typed));
  const DType first = operands->front().expr->dtype;
  for (const Operand& operand : *operands) {
    if (operand.expr->dtype == first) continue;
    return tokens_.Error(position,
                         absl::StrCat(name, " of ", DTypeName(first), " and ", DTypeName(operand.expr->dtype),
                                      "; expected one type ",
                                      float_operand && int_literal ? "(a float literal has a point: 2.0)"
                                                                   : "(casts are written: f32(...))"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExprParser::Operand> ExprParser::Finish(Expr expr, Position position,
                                                       const std::vector<Operand>& operands) {
  Operand result{std::move(expr), position};
  for (const Operand& operand : operands) result.depth = std::max(result.depth, operand.depth + 1);
  if (result.depth <= kMaxExprDepth) return result;
  return tokens_.Error(position, absl::StrCat("the expression has more than ", kMaxExprDepth,
                                              " levels; expected stages of their own"));
}

}  // namespace mycc

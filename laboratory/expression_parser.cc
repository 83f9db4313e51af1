// Parses expressions: recursive descent by Python's precedence.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "laboratory/expression.h"
#include "laboratory/expression_names.h"
#include "laboratory/expression_scalars.h"
#include "laboratory/expression_tokens.h"
#include "laboratory/python_functions.h"

namespace mycc {
namespace {

using Kind = ExpressionNode::Kind;
using TokenKind = ExpressionTokenKind;

constexpr int kDeepestExpression = 100;

struct OperatorWord {
  const char* word;
  PythonOperator op;
};
// The binary operators below comparisons, weakest first; those of a level group from the left.
constexpr OperatorWord kBitOr[] = {{"|", PythonOperator::kBitOr}};
constexpr OperatorWord kBitXor[] = {{"^", PythonOperator::kBitXor}};
constexpr OperatorWord kBitAnd[] = {{"&", PythonOperator::kBitAnd}};
constexpr OperatorWord kShifts[] = {{"<<", PythonOperator::kShiftLeft}, {">>", PythonOperator::kShiftRight}};
constexpr OperatorWord kSums[] = {{"+", PythonOperator::kAdd}, {"-", PythonOperator::kSubtract}};
constexpr OperatorWord kProducts[] = {{"*", PythonOperator::kMultiply},
                                      {"//", PythonOperator::kFloorDivide},
                                      {"/", PythonOperator::kDivide},
                                      {"%", PythonOperator::kModulo}};
struct OperatorLevel {
  const OperatorWord* words;
  int count;
};
constexpr OperatorLevel kLevels[] = {{kBitOr, 1},  {kBitXor, 1}, {kBitAnd, 1},
                                     {kShifts, 2}, {kSums, 2},   {kProducts, 4}};
constexpr int kNumLevels = 6;
constexpr OperatorWord kComparisons[] = {
    {"<", PythonOperator::kLess},    {"<=", PythonOperator::kLessEqual},
    {">", PythonOperator::kGreater}, {">=", PythonOperator::kGreaterEqual},
    {"==", PythonOperator::kEqual},  {"!=", PythonOperator::kNotEqual}};
constexpr OperatorWord kSigns[] = {
    {"-", PythonOperator::kNegate}, {"+", PythonOperator::kPlus}, {"~", PythonOperator::kInvert}};

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<ExpressionToken> tokens) : tokens_(std::move(tokens)) {}

  // The whole text: an expression, or several with commas between them, which are a list.
  absl::StatusOr<int> Whole() {
    MYCC_ASSIGN_OR_RETURN(const int first, Ternary());
    int root = first;
    if (IsSymbol(",")) {
      ExpressionNode list = NodeHere(Kind::kList);
      list.children.push_back(first);
      while (TakeSymbol(",") && Token().kind != TokenKind::kEnd) {
        MYCC_ASSIGN_OR_RETURN(const int element, Ternary());
        list.children.push_back(element);
      }
      root = Add(std::move(list));
    }
    if (Token().kind != TokenKind::kEnd) return Expected("an operator or the end");
    return root;
  }

  std::vector<ExpressionNode>& nodes() { return nodes_; }

 private:
  const ExpressionToken& Token(int ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool IsSymbol(const char* symbol, int ahead = 0) const {
    return Token(ahead).kind == TokenKind::kSymbol && Token(ahead).text == symbol;
  }
  bool IsWord(const char* word, int ahead = 0) const {
    return Token(ahead).kind == TokenKind::kName && Token(ahead).text == word;
  }
  bool TakeSymbol(const char* symbol) {
    if (!IsSymbol(symbol)) return false;
    ++at_;
    return true;
  }
  bool TakeWord(const char* word) {
    if (!IsWord(word)) return false;
    ++at_;
    return true;
  }
  absl::Status Fail(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", Token().column, ": ", what));
  }
  static absl::Status FailAt(const ExpressionNode& node, const absl::Status& why) {
    return absl::InvalidArgumentError(absl::StrCat("column ", node.column, ": ", why.message()));
  }
  absl::Status Expected(const std::string& what) const {
    const bool is_end = Token().kind == TokenKind::kEnd;
    return Fail(absl::StrCat(is_end ? std::string("the text ends") : absl::StrCat("`", Token().text, "`"),
                             "; expected ", what));
  }
  absl::Status Expect(const char* symbol) {
    return TakeSymbol(symbol) ? absl::OkStatus() : Expected(absl::StrCat("`", symbol, "`"));
  }
  ExpressionNode NodeHere(Kind kind) const {
    ExpressionNode node;
    node.kind = kind;
    node.column = Token().column;
    return node;
  }
  int Add(ExpressionNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  int AddConstant(PythonValue value) {
    ExpressionNode node = NodeHere(Kind::kConstant);
    node.constant = std::move(value);
    return Add(std::move(node));
  }

  // `a if condition else b`: every nested expression begins here.
  absl::StatusOr<int> Ternary() {
    if (depth_ == kDeepestExpression)
      return Fail(absl::StrCat("nested too deeply; expected at most ", kDeepestExpression, " levels"));
    ++depth_;
    MYCC_ASSIGN_OR_RETURN(const int value, Or());
    int result = value;
    // In `[a for a in b if c]` the word begins a condition; `else` comes first in what is nested in it.
    if (!in_clause_ && IsWord("if")) {
      ExpressionNode node = NodeHere(Kind::kIf);
      ++at_;
      MYCC_ASSIGN_OR_RETURN(const int condition, Or());
      if (!TakeWord("else")) return Expected("`else`");
      MYCC_ASSIGN_OR_RETURN(const int other, Ternary());
      node.children = {condition, value, other};
      result = Add(std::move(node));
    }
    --depth_;
    return result;
  }

  absl::StatusOr<int> Or() { return Logical("or", Kind::kOr); }
  absl::StatusOr<int> Logical(const char* word, Kind kind) {
    ExpressionNode node = NodeHere(kind);
    do {
      MYCC_ASSIGN_OR_RETURN(const int operand, kind == Kind::kOr ? Logical("and", Kind::kAnd) : Not());
      node.children.push_back(operand);
    } while (TakeWord(word));
    if (node.children.size() == 1) return node.children[0];
    return Add(std::move(node));
  }

  absl::StatusOr<int> Not() {
    std::vector<ExpressionNode> nots;
    while (IsWord("not")) {
      nots.push_back(NodeHere(Kind::kNot));
      ++at_;
    }
    if (nots.size() > kDeepestExpression) return Fail("too many `not`; expected one");
    MYCC_ASSIGN_OR_RETURN(int operand, Comparison());
    for (; !nots.empty(); nots.pop_back()) {
      nots.back().children = {operand};
      operand = Add(std::move(nots.back()));
    }
    return operand;
  }

  bool TakeComparison(PythonOperator* op) {
    if (TakeWord("in")) {
      *op = PythonOperator::kIn;
      return true;
    }
    if (IsWord("not") && IsWord("in", 1)) {
      at_ += 2;
      *op = PythonOperator::kNotIn;
      return true;
    }
    if (TakeWord("is")) {
      *op = TakeWord("not") ? PythonOperator::kIsNot : PythonOperator::kIs;
      return true;
    }
    for (const OperatorWord& word : kComparisons) {
      if (!TakeSymbol(word.word)) continue;
      *op = word.op;
      return true;
    }
    return false;
  }

  absl::StatusOr<int> Comparison() {
    ExpressionNode node = NodeHere(Kind::kCompare);
    MYCC_ASSIGN_OR_RETURN(const int first, Binary(0));
    node.children.push_back(first);
    PythonOperator op;
    while (TakeComparison(&op)) {
      node.comparisons.push_back(op);
      MYCC_ASSIGN_OR_RETURN(const int next, Binary(0));
      node.children.push_back(next);
    }
    if (node.comparisons.empty()) return first;
    if (node.comparisons.size() == 1) return Add(std::move(node));
    // A chain holds when each pair of it does; as pairs, each is decided as soon as its parameters are known.
    ExpressionNode all = NodeHere(Kind::kAnd);
    all.column = node.column;
    for (size_t i = 0; i < node.comparisons.size(); ++i) {
      ExpressionNode pair = NodeHere(Kind::kCompare);
      pair.column = node.column;
      pair.comparisons = {node.comparisons[i]};
      pair.children = {node.children[i], node.children[i + 1]};
      all.children.push_back(Add(std::move(pair)));
    }
    return Add(std::move(all));
  }

  absl::StatusOr<int> Binary(int level) {
    if (level == kNumLevels) return Sign();
    MYCC_ASSIGN_OR_RETURN(int left, Binary(level + 1));
    for (int i = 0; i < kLevels[level].count;) {
      ExpressionNode node = NodeHere(Kind::kBinary);
      if (!TakeSymbol(kLevels[level].words[i].word)) {
        ++i;
        continue;
      }
      node.op = kLevels[level].words[i].op;
      MYCC_ASSIGN_OR_RETURN(const int right, Binary(level + 1));
      node.children = {left, right};
      left = Add(std::move(node));
      i = 0;
    }
    return left;
  }

  absl::StatusOr<int> Sign() {
    for (const OperatorWord& sign : kSigns) {
      ExpressionNode node = NodeHere(Kind::kUnary);
      if (!TakeSymbol(sign.word)) continue;
      if (++depth_ > kDeepestExpression) return Fail("too many signs; expected a value");
      MYCC_ASSIGN_OR_RETURN(const int operand, Sign());
      --depth_;
      node.op = sign.op;
      node.children = {operand};
      return Add(std::move(node));
    }
    return Power();
  }

  // `**` binds its right side first, and stronger than a sign on its left: -2 ** -1.
  absl::StatusOr<int> Power() {
    MYCC_ASSIGN_OR_RETURN(const int base, Element());
    ExpressionNode node = NodeHere(Kind::kBinary);
    if (!TakeSymbol("**")) return base;
    if (++depth_ > kDeepestExpression) return Fail("too many powers; expected a value");
    MYCC_ASSIGN_OR_RETURN(const int exponent, Sign());
    --depth_;
    node.op = PythonOperator::kPower;
    node.children = {base, exponent};
    return Add(std::move(node));
  }

  // `sizes[0]`: an element of a list or a text.
  absl::StatusOr<int> Element() {
    MYCC_ASSIGN_OR_RETURN(int value, Atom());
    while (IsSymbol("[")) {
      ExpressionNode node = NodeHere(Kind::kSubscript);
      ++at_;
      const bool was_in_clause = std::exchange(in_clause_, false);
      MYCC_ASSIGN_OR_RETURN(const int index, Ternary());
      in_clause_ = was_in_clause;
      MYCC_RETURN_IF_ERROR(Expect("]"));
      node.children = {value, index};
      value = Add(std::move(node));
    }
    return value;
  }

  absl::StatusOr<int> Atom() {
    const ExpressionToken& token = Token();
    switch (token.kind) {
      case TokenKind::kInt: return TakeConstant(PythonValue::OfInt(token.integer));
      case TokenKind::kFloat: return TakeConstant(PythonValue::OfFloat(token.real));
      case TokenKind::kText: return TakeConstant(PythonValue::OfText(token.text));
      case TokenKind::kName: return Word();
      default: break;
    }
    if (IsSymbol("(")) return Bracketed("(", ")");
    if (IsSymbol("[")) return Bracketed("[", "]");
    if (IsSymbol("{")) return Bracketed("{", "}");
    return Expected("a value");
  }

  absl::StatusOr<int> TakeConstant(PythonValue value) {
    const int node = AddConstant(std::move(value));
    ++at_;
    return node;
  }

  absl::StatusOr<int> Word() {
    if (IsWord("True") || IsWord("true")) return TakeConstant(PythonValue::OfBool(true));
    if (IsWord("False") || IsWord("false")) return TakeConstant(PythonValue::OfBool(false));
    if (IsWord("None")) return TakeConstant(PythonValue{});
    for (const char* word : {"and", "or", "not", "in", "if", "else", "for", "lambda", "is"}) {
      if (IsWord(word)) return Expected("a value");
    }
    ExpressionNode node = NodeHere(Kind::kName);
    node.name = Token().text;
    if (IsSymbol(".", 1) && Token(2).kind == TokenKind::kName) {
      node.name += "." + Token(2).text;
      at_ += 2;
    }
    if (IsSymbol("(", 1)) return Call(std::move(node));
    if (absl::StrContains(node.name, '.')) return Expected("`(`");
    ++at_;
    // p["x"] is the parameter x, whatever p is called.
    if (IsSymbol("[") && Token(1).kind == TokenKind::kText && IsSymbol("]", 2)) {
      node.column = Token(1).column;
      node.name = Token(1).text;
      at_ += 3;
    }
    return Add(std::move(node));
  }

  absl::StatusOr<int> Call(ExpressionNode node) {
    if (const auto known = FindPythonFunction(node.name); !known.ok()) return FailAt(node, known.status());
    ++at_;
    MYCC_RETURN_IF_ERROR(Expect("("));
    MYCC_RETURN_IF_ERROR(Elements(")", &node));
    // A call of `sum(x for x in list)` has one argument, the comprehension.
    if (!node.clauses.empty()) {
      ExpressionNode comprehension = node;
      comprehension.kind = Kind::kComprehension;
      node.clauses.clear();
      node.children = {Add(std::move(comprehension))};
    }
    const auto function = FindPythonFunction(node.name, static_cast<int>(node.children.size()));
    if (!function.ok()) return FailAt(node, function.status());
    node.kind = Kind::kCall;
    node.function = *function;
    return Add(std::move(node));
  }

  absl::StatusOr<int> Bracketed(const char* open, const char* close) {
    ExpressionNode node = NodeHere(Kind::kList);
    MYCC_RETURN_IF_ERROR(Expect(open));
    const bool is_round = *open == '(';
    const size_t before = at_;
    bool has_comma = false;
    MYCC_RETURN_IF_ERROR(Elements(close, &node, &has_comma));
    if (!node.clauses.empty()) {
      node.kind = Kind::kComprehension;
    } else if (is_round && node.children.size() == 1 && !has_comma) {
      return node.children[0];
    } else if (*open == '{' && at_ == before + 1) {
      return Fail("`{}` is a dictionary; expected a value");
    }
    return Add(std::move(node));
  }

  // Values with commas between them up to `close`, or one value and the clauses of a comprehension.
  absl::Status Elements(const char* close, ExpressionNode* node, bool* has_comma = nullptr) {
    const bool was_in_clause = std::exchange(in_clause_, false);
    while (!TakeSymbol(close)) {
      MYCC_ASSIGN_OR_RETURN(const int element, Ternary());
      node->children.push_back(element);
      if (node->children.size() == 1 && IsWord("for")) {
        MYCC_RETURN_IF_ERROR(Clauses(node));
        MYCC_RETURN_IF_ERROR(Expect(close));
        break;
      }
      if (IsSymbol(close)) continue;
      if (!TakeSymbol(",")) return Expected(absl::StrCat("`,` or `", close, "`"));
      if (has_comma != nullptr) *has_comma = true;
    }
    in_clause_ = was_in_clause;
    return absl::OkStatus();
  }

  absl::Status Clauses(ExpressionNode* node) {
    while (TakeWord("for")) {
      ExpressionNode::Clause clause;
      if (Token().kind != TokenKind::kName) return Expected("a name");
      clause.name = Token().text;
      ++at_;
      if (!TakeWord("in")) return Expected("`in`");
      in_clause_ = true;
      MYCC_ASSIGN_OR_RETURN(clause.iterable, Ternary());
      while (TakeWord("if")) {
        MYCC_ASSIGN_OR_RETURN(const int condition, Ternary());
        clause.conditions.push_back(condition);
      }
      in_clause_ = false;
      node->clauses.push_back(std::move(clause));
    }
    return absl::OkStatus();
  }

  const std::vector<ExpressionToken> tokens_;
  std::vector<ExpressionNode> nodes_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_clause_ = false;  // directly inside of a comprehension's clause, where `if` begins a condition
};

}  // namespace

absl::StatusOr<Expression> Expression::Parse(const std::string& text,
                                             const std::vector<std::string>& parameters) {
  MYCC_ASSIGN_OR_RETURN(std::vector<ExpressionToken> tokens, SplitExpression(text));
  ExpressionParser parser(std::move(tokens));
  Expression expression;
  expression.text_ = text;
  MYCC_ASSIGN_OR_RETURN(expression.root_, parser.Whole());
  MYCC_ASSIGN_OR_RETURN(expression.num_slots_, ResolveNames(expression.root_, parameters, &parser.nodes()));
  MarkScalars(&parser.nodes());
  expression.nodes_ = std::move(parser.nodes());
  return expression;
}

}  // namespace mycc

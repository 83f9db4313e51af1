// Parses expressions and gives them types: the grammar from `expression` down. Thread rule: one owner.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/expr/expr.h"
#include "codegen/workload/token_stream.h"

namespace mycc {

// The names that an expression may use.
struct ExprScope {
  std::map<std::string, Buffer> tensors;
  std::map<std::string, Var> axes;
  std::set<std::string> broken;  // tensors whose definition has a problem: reading one is not another problem
  bool has_lost_names = false;   // the name of some definition could not be read
};

class ExprParser {
 public:
  // REQUIRES: both outlive the parser.
  ExprParser(TokenStream* tokens, const ExprScope* scope) : tokens_(*tokens), scope_(*scope) {}

  // Parses one expression. A literal alone takes the type `wanted` if that is of the same class (float or
  // integer).
  absl::StatusOr<Expr> Parse(std::optional<DType> wanted);

  // The positions of a read in the text: its name, then each of its indices. nullptr for a node that is not a
  // read made by this parser.
  const std::vector<Position>* PlacesOf(const ExprNode* load) const;

 private:
  // A parsed operand. A literal without a written type is `untyped` (and held as f64 or i64, or u64 if it is
  // no i64) until an operation or its context gives it a type: the wanted one if that is of the same class,
  // else f32 or i64.
  struct Operand {
    Expr expr;
    Position position;
    int depth = 1;
    bool untyped = false;
  };

  absl::StatusOr<Operand> ParseInfix(int min_level);
  absl::StatusOr<Operand> ParseUnary();
  absl::StatusOr<Operand> ParsePrimary();
  absl::StatusOr<Operand> ParseNamed();
  absl::StatusOr<Operand> ParseParenthesized();
  absl::Status OutOfI64(Position position, uint64_t literal);
  absl::StatusOr<Operand> ParseLiteral(bool negative, std::optional<DType> dtype);
  absl::StatusOr<Operand> ParseCastOrTypedLiteral(DType dtype);
  absl::StatusOr<Operand> ParseFunction();
  absl::StatusOr<Operand> ParseRead();
  absl::StatusOr<Operand> ParseIndex(const std::string& tensor);
  absl::StatusOr<std::vector<Operand>> ParseArguments(const std::string& function, size_t count);
  absl::Status Expect(const char* text, const std::string& why);
  absl::Status UnknownName(const Token& name);
  std::string HintFor(const Token& name);

  absl::StatusOr<Operand> Combine(Op op, const std::string& name, Position position,
                                  std::vector<Operand> operands);
  absl::Status Unify(const std::string& name, Position position, std::vector<Operand>* operands);
  absl::Status ResolveLiteralType(Operand* operand, std::optional<DType> wanted);
  absl::StatusOr<Operand> Finish(Expr expr, Position position, const std::vector<Operand>& operands);
  bool AtLiteral() const;

  TokenStream& tokens_;
  const ExprScope& scope_;
  int nesting_ = 0;
  std::unordered_map<const ExprNode*, std::vector<Position>> places_;
  // Keeps every read alive, so that no address in places_ is used again.
  std::vector<Expr> reads_;
};

}  // namespace mycc

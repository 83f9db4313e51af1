#include "codegen/workload/parse_type.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/check.h"
#include "codegen/workload/limits.h"
#include "codegen/workload/operators.h"
#include "codegen/workload/spellings.h"

namespace mycc {
namespace {

class ExtentParser {
 public:
  explicit ExtentParser(TokenStream* tokens) : tokens_(*tokens) {}

  absl::StatusOr<int64_t> Parse(int nesting);

 private:
  absl::StatusOr<int64_t> ParseProduct(int nesting);
  absl::StatusOr<int64_t> ParseFactor(int nesting);
  absl::StatusOr<int64_t> Fold(const Token& op, int64_t a, int64_t b);

  TokenStream& tokens_;
};

absl::StatusOr<int64_t> ExtentParser::Parse(int nesting) {
  MYCC_ASSIGN_OR_RETURN(int64_t value, ParseProduct(nesting));
  while (tokens_.Peek().Is("+") || tokens_.Peek().Is("-")) {
    const Token op = tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t right, ParseProduct(nesting));
    MYCC_ASSIGN_OR_RETURN(value, Fold(op, value, right));
  }
  return value;
}

absl::StatusOr<int64_t> ExtentParser::ParseProduct(int nesting) {
  MYCC_ASSIGN_OR_RETURN(int64_t value, ParseFactor(nesting));
  while (tokens_.Peek().Is("*") || tokens_.Peek().Is("//") || tokens_.Peek().Is("%")) {
    const Token op = tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t right, ParseFactor(nesting));
    MYCC_ASSIGN_OR_RETURN(value, Fold(op, value, right));
  }
  return value;
}

absl::StatusOr<int64_t> ExtentParser::ParseFactor(int nesting) {
  const Token& token = tokens_.Peek();
  if (nesting > kMaxNesting)
    return tokens_.Error(token.position, absl::StrCat("more than ", kMaxNesting,
                                                      " brackets inside one another; expected a number"));
  if (token.Is("(")) {
    tokens_.Next();
    MYCC_ASSIGN_OR_RETURN(const int64_t value, Parse(nesting + 1));
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

// Operands and results are at most 2^40 in magnitude; products are checked in 128 bits.
absl::StatusOr<int64_t> ExtentParser::Fold(const Token& op, int64_t a, int64_t b) {
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

}  // namespace

absl::StatusOr<int64_t> ParseExtent(TokenStream* tokens) { return ExtentParser(tokens).Parse(/*nesting=*/0); }

absl::StatusOr<Buffer> ParseType(const std::string& name, TokenStream* tokens) {
  const Token& token = tokens->Peek();
  const auto dtype = ParseDType(token.text);
  if (!dtype || token.kind != Token::Kind::kName)
    return tokens->Unexpected("a type: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 or bool",
                              SpellingOfType(token.text));
  tokens->Next();
  MYCC_RETURN_IF_ERROR(tokens->Expect("[", "and the extents of the tensor (`[]` for a single number)"));
  std::vector<int64_t> shape;
  while (!tokens->Peek().Is("]")) {
    if (!shape.empty()) MYCC_RETURN_IF_ERROR(tokens->Expect(",", "or `]` after an extent"));
    MYCC_ASSIGN_OR_RETURN(const int64_t extent, ParseExtent(tokens));
    shape.push_back(extent);
  }
  tokens->Next();
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return tokens->Error(token.position, problem);
  return MakeBuffer(name, *dtype, std::move(shape));
}

}  // namespace mycc

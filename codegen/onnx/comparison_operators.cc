// Comparisons, logic, selection, and operations on the bits of integers.
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/texts.h"

namespace mycc::onnx {
namespace {

absl::Status Equal(NodeImport& n) {
  if (n.Has(0) && n.Typed(0).IsText()) {
    MYCC_RETURN_IF_ERROR(ExpectTexts(n, 1));
    MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
    MYCC_ASSIGN_OR_RETURN(const auto equal,
                          CallOnTexts(n.g(), "equal_texts", {}, {n.Typed(0), n.Typed(1)}, {{kBool, shape}}));
    n.Set(0, equal[0]);
    return absl::OkStatus();
  }
  return MapBinary(n, kTakesPlain, [](const Expr& a, const Expr& b) { return MakeBinary(Op::kEq, a, b); });
}
absl::Status Greater(NodeImport& n) {
  return MapBinary(n, kTakesNumbers, [](const Expr& a, const Expr& b) { return LessThan(b, a); });
}
absl::Status GreaterOrEqual(NodeImport& n) {
  return MapBinary(n, kTakesNumbers, [](const Expr& a, const Expr& b) { return AtMost(b, a); });
}
absl::Status Less(NodeImport& n) { return MapBinary(n, kTakesNumbers, LessThan); }
absl::Status LessOrEqual(NodeImport& n) { return MapBinary(n, kTakesNumbers, AtMost); }

template <Op op>
absl::Status Logic(NodeImport& n) {
  return MapBinary(n, kTakesBools, [](const Expr& a, const Expr& b) { return MakeBinary(op, a, b); });
}
absl::Status Not(NodeImport& n) {
  return MapUnary(n, kTakesBools, [](const Expr& x) { return MakeUnary(Op::kNot, x); });
}

absl::Status Where(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesBools));
  if (n.Has(1) && n.Typed(1).IsText()) {
    MYCC_RETURN_IF_ERROR(ExpectTexts(n, 2));
  } else {
    MYCC_RETURN_IF_ERROR(ExpectOneType(n, 1, 2, kTakesPlain));
  }
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 2));
  const Buffer chosen = n.g().Map(shape, [&](const Axes& axes) {
    return MakeSelect(BroadcastLoad(n.In(0), axes), BroadcastLoad(n.In(1), axes),
                      BroadcastLoad(n.In(2), axes));
  });
  n.Set(0, chosen, n.Typed(1).type);
  return absl::OkStatus();
}

bool IsSignedInteger(int type) { return type == kInt8 || type == kInt16 || type == kInt32 || type == kInt64; }

// A bit of an integer as 0 or 1; floored division shifts the sign in. Not for the sign itself.
Expr BitOf(const Expr& x, int bit) { return Mod(FloorDiv(x, int64_t{1} << bit), 2); }

Expr BalancedSum(const std::vector<Expr>& terms, size_t first, size_t end) {
  if (end - first == 1) return terms[first];
  const size_t middle = first + (end - first) / 2;
  return BalancedSum(terms, first, middle) + BalancedSum(terms, middle, end);
}

// The language has no bitwise `and`: the bits' products, each at its place.
Expr BitwiseAndOf(const Expr& a, const Expr& b, bool is_signed) {
  const int bits = DTypeBytes(a->dtype) * 8;
  std::vector<Expr> terms;
  for (int bit = 0; bit < bits - 1; ++bit)
    terms.push_back(BitOf(a, bit) * BitOf(b, bit) * (int64_t{1} << bit));
  const Expr zero = IntConst(0, a->dtype), top = IntConst(int64_t{-1} << (bits - 1), a->dtype);
  const auto has_top = [&](const Expr& x) { return is_signed ? LessThan(x, zero) : AtMost(top, x); };
  terms.push_back(MakeSelect(MakeBinary(Op::kAnd, has_top(a), has_top(b)), top, zero));
  return BalancedSum(terms, 0, terms.size());
}

enum class BitwiseOp { kAnd, kOr, kXor };

// a | b is a + b - (a & b), wrapping; a ^ b lacks the common bits twice.
template <BitwiseOp op>
absl::Status Bitwise(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesIntegers));
  const bool is_signed = IsSignedInteger(n.Typed(0).type);
  return MapBinary(n, kTakesIntegers, [&](const Expr& a, const Expr& b) {
    const Expr both = BitwiseAndOf(a, b, is_signed);
    if (op == BitwiseOp::kAnd) return both;
    return op == BitwiseOp::kOr ? a + b - both : a + b - both - both;
  });
}

absl::Status BitwiseNot(NodeImport& n) {
  return MapUnary(n, kTakesIntegers, [](const Expr& x) { return IntConst(-1, x->dtype) - x; });
}

Buffer PowersOfTwo(GraphBuilder& g, DType dtype) {
  const int bits = DTypeBytes(dtype) * 8;
  NDArray powers = NDArray::Zeros(dtype, {bits});
  for (int bit = 0; bit < bits; ++bit) powers.Set(bit, Scalar{0, static_cast<int64_t>(uint64_t{1} << bit)});
  return g.AddConstant(std::move(powers));
}

// Products with, and quotients by, powers of two; shifts by the width and more give 0.
absl::Status BitShift(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesUnsigned));
  MYCC_ASSIGN_OR_RETURN(const auto shape, BroadcastOfInputs(n, 0, 1));
  const std::string direction = n.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.Refuse(absl::StrCat("direction is `", direction, "`; expected LEFT or RIGHT"));
  const DType dtype = n.Type(0);
  const int bits = DTypeBytes(dtype) * 8;
  const Buffer powers = PowersOfTwo(n.g(), dtype);
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) {
    const Expr x = BroadcastLoad(n.In(0), axes), by = BroadcastLoad(n.In(1), axes);
    const Expr index = ClampTo(MakeCast(DType::kI64, by), IntConst(0), IntConst(bits - 1));
    const Expr power = Load(powers, {index});
    const Expr shifted = direction == "LEFT" ? x * power : MakeBinary(Op::kFloorDiv, x, power);
    return MakeSelect(LessThan(by, IntConst(bits, dtype)), shifted, IntConst(0, dtype));
  }));
  return absl::OkStatus();
}

constexpr Operator kComparisonTable[] = {
    {"And", Logic<Op::kAnd>},
    {"BitShift", BitShift, 11},
    {"BitwiseAnd", Bitwise<BitwiseOp::kAnd>, 18},
    {"BitwiseNot", BitwiseNot, 18},
    {"BitwiseOr", Bitwise<BitwiseOp::kOr>, 18},
    {"BitwiseXor", Bitwise<BitwiseOp::kXor>, 18},
    {"Equal", Equal, 1, "", false, kTextPair},
    {"Greater", Greater},
    {"GreaterOrEqual", GreaterOrEqual, 12},
    {"Less", Less},
    {"LessOrEqual", LessOrEqual, 12},
    {"Not", Not},
    {"Or", Logic<Op::kOr>},
    {"Where", Where, 9, "", false, kTextPair << 1},
    {"Xor", Logic<Op::kNe>},
};

}  // namespace

std::span<const Operator> ComparisonOperators() { return kComparisonTable; }

}  // namespace mycc::onnx

// Conversions between element types.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/small_types.h"
#include "codegen/onnx/texts.h"

namespace mycc::onnx {
namespace {

// The attribute `to`, without the numbers that no type has.
int TargetOf(const NodeImport& n) {
  const int64_t to = n.Int("to", kUndefined);
  return to < kUndefined || to > kInt2 ? kInt2 + 1 : static_cast<int>(to);
}

// The types of a number that are read and written as text.
bool HasText(int type) {
  return type == kFloat || type == kDouble || (type >= kUint8 && type <= kInt64) || type == kUint32 ||
         type == kUint64;
}

absl::Status CastToText(NodeImport& n) {
  if (n.Typed(0).IsText()) {
    n.Set(0, n.Typed(0));
    return absl::OkStatus();
  }
  if (!HasText(n.Typed(0).type) && n.Typed(0).type != kBool)
    return n.NotSupported(absl::StrCat("a cast of ", ElementTypeName(n.Typed(0).type), " to STRING"));
  MYCC_ASSIGN_OR_RETURN(const auto texts,
                        CallOnTexts(n.g(), "print_numbers", {}, {n.Typed(0)}, {{kString, n.Shape(0)}}));
  n.Set(0, texts[0]);
  return absl::OkStatus();
}

absl::Status CastFromText(NodeImport& n, int to) {
  const bool is_narrow = to == kFloat16 || to == kBfloat16;
  if (!is_narrow && !HasText(to))
    return n.NotSupported(absl::StrCat("a cast of STRING to ", ElementTypeName(to)));
  MYCC_ASSIGN_OR_RETURN(const auto numbers, CallOnTexts(n.g(), "read_numbers", {}, {n.Typed(0)},
                                                        {{is_narrow ? kFloat : to, n.Shape(0)}}));
  n.Set(0, is_narrow ? Encoded(n.g(), numbers[0].tensor, to, {}) : numbers[0].tensor, to);
  return absl::OkStatus();
}

absl::Status CastTo(NodeImport& n, int to) {
  const int from = n.Typed(0).type;
  if (to == kString) return CastToText(n);
  if (from == kString) return CastFromText(n, to);
  const std::optional<DType> storage = StorageOf(to);
  if (!storage) {
    if (to <= kUndefined || to > kInt2)
      return n.Refuse("casts to a type that ONNX does not have; expected the number of one");
    return n.NotSupported(absl::StrCat("a cast to ", ElementTypeName(to)));
  }
  Encoding encoding;
  encoding.saturate = n.Int("saturate", 1) != 0;
  encoding.mode = n.String("round_mode", "up");
  if (to == kFloat8E8M0 && encoding.mode != "up" && encoding.mode != "down" && encoding.mode != "nearest")
    return n.Refuse(absl::StrCat("round_mode is `", encoding.mode, "`; expected up, down or nearest"));
  Buffer x = n.In(0);
  if (from != to) {
    if (IsHeldAsBits(from)) {
      const auto decode = Decoder(n.g(), from);
      x = n.g().Map(x->shape, [&](const Axes& axes) { return decode(Load(n.In(0), axes)); });
    }
    x = Encoded(n.g(), x, to, encoding);
  }
  n.Set(0, x, to);
  return absl::OkStatus();
}

absl::Status Cast(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  return CastTo(n, TargetOf(n));
}

absl::Status CastLike(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  return CastTo(n, n.Typed(1).type);
}

// Bits of an element as it is in ONNX; 0 without a fixed size.
int BitsOf(int type) {
  const int packed = type == kFloat4E2M1 ? 4 : PackedBits(type);
  const std::optional<DType> storage = StorageOf(type);
  if (packed != 0) return packed;
  return storage ? DTypeBytes(*storage) * 8 : 0;
}

// Integers of one width are the same number, wrapped; other bits are copied as they stand in memory.
absl::Status BitCast(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  const int from = n.Typed(0).type, to = TargetOf(n);
  if (BitsOf(to) == 0) return n.NotSupported(absl::StrCat("a bit cast to ", ElementTypeName(to)));
  if (BitsOf(to) != BitsOf(from)) {
    return n.Refuse(absl::StrCat("casts the bits of ", ElementTypeName(from), " to ", ElementTypeName(to),
                                 "; expected types of one width"));
  }
  const Buffer x = n.In(0);
  const DType source = x->dtype, result = *StorageOf(to);
  if (PackedBits(to) != 0) {
    n.Set(0, Encoded(n.g(), x, to, {}), to);
  } else if (to == kFloat4E2M1) {  // held as the bits of UINT4 are
    n.Set(0, Encoded(n.g(), x, kUint4, {}), to);
  } else if (source == result || (!IsFloat(source) && !IsFloat(result) && result != DType::kBool)) {
    n.Set(0, n.g().Cast(x, result), to);
  } else {
    n.Set(0, n.g().Call("copy", {}, {x}, {{result, x->shape}})[0], to);
  }
  return absl::OkStatus();
}

constexpr Operator kCastTable[] = {
    {"BitCast", BitCast, 26},
    {"Cast", Cast, 1, "", false, kTextFirst},
    {"CastLike", CastLike, 15, "", false, kTextPair},
};

}  // namespace

std::span<const Operator> CastOperators() { return kCastTable; }

}  // namespace mycc::onnx

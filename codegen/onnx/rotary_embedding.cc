// RotaryEmbedding: pairs of elements of a vector are rotated by an angle of its position.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/attention.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/rows.h"

namespace mycc::onnx {
namespace {

enum RotaryInput : size_t { kRotaryX, kCosines, kSines, kPositions };

struct Rotary {
  HeadVectors x;
  int64_t rotated = 0;  // the first elements of a vector
  bool is_interleaved = false;
};

// The caches are [position, pair] with positions, else [batch, position, pair].
absl::Status CheckCaches(const NodeImport& n, const Rotary& rotary) {
  const int64_t batch = rotary.x.batch(), positions = rotary.x.positions(), pairs = rotary.rotated / 2;
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, kRotaryX, kSines, kTakesFloats));
  for (size_t i : {kCosines, kSines}) {
    const std::vector<int64_t>& shape = n.Shape(i);
    const bool fits = n.Has(kPositions) ? shape.size() == 2 && shape[1] == pairs && shape[0] > 0
                                        : shape == std::vector<int64_t>{batch, positions, pairs};
    if (!fits) {
      const std::string first = n.Has(kPositions) ? "positions" : absl::StrCat(batch, ",", positions);
      return n.Refuse(
          absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected [", first, ",", pairs, "]"));
    }
  }
  if (!n.Has(kPositions)) return absl::OkStatus();
  if (IsInt(n.Type(kPositions)) && n.Shape(kPositions) == std::vector<int64_t>{batch, positions})
    return absl::OkStatus();
  return n.Refuse(absl::StrCat("the positions are ", TypeText(n.In(kPositions)), "; expected integers of [",
                               batch, ",", positions, "]"));
}

absl::StatusOr<Rotary> RotaryOf(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  Rotary rotary;
  MYCC_ASSIGN_OR_RETURN(rotary.x, HeadVectorsOf(n, n.g(), kRotaryX, n.Int("num_heads", 0)));
  rotary.is_interleaved = n.Int("interleaved", 0) != 0;
  rotary.rotated = n.Int("rotary_embedding_dim", 0);
  if (rotary.rotated == 0) rotary.rotated = rotary.x.size();
  if (rotary.rotated < 0 || rotary.rotated > rotary.x.size() || rotary.rotated % 2 != 0) {
    return n.Refuse(absl::StrCat("rotates ", rotary.rotated, " of ", rotary.x.size(),
                                 " elements; expected an even number up to that"));
  }
  MYCC_RETURN_IF_ERROR(CheckCaches(n, rotary));
  return rotary;
}

// The factor of a pair at the axes of a vector's position.
Expr CacheAt(const NodeImport& n, size_t i, const Expr& b, const Expr& position, const Expr& pair) {
  const Buffer cache = n.In(i);
  if (!n.Has(kPositions)) return Wide(Load(cache, {b, position, pair}));
  const Expr row = MakeCast(DType::kI64, Load(n.In(kPositions), {b, position}));
  return Wide(Load(cache, {ClampTo(row, IntConst(0), IntConst(cache->shape[0] - 1)), pair}));
}

}  // namespace

absl::Status RotaryEmbedding(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Rotary rotary, RotaryOf(n));
  const HeadVectors& x = rotary.x;
  const int64_t half = rotary.rotated / 2;
  const Buffer result = n.g().Map(x.tensor->shape, [&](const Axes& a) {
    const Expr head = a[x.is_position_first ? 2 : 1], position = a[x.is_position_first ? 1 : 2], d = a[3];
    const auto element = [&](const Expr& at) { return Wide(x.At(a[0], head, position, at)); };
    const auto rotated = [&](const Expr& pair, const Expr& partner, bool is_first) {
      const Expr along = element(d) * CacheAt(n, kCosines, a[0], position, pair);
      const Expr across = element(partner) * CacheAt(n, kSines, a[0], position, pair);
      return is_first ? along - across : along + across;
    };
    Expr all;
    if (rotary.is_interleaved) {
      const Expr pair = FloorDiv(d, 2), side = Mod(d, 2);
      const Expr partner = pair * 2 + (IntConst(1) - side);
      all = MakeSelect(MakeBinary(Op::kEq, side, IntConst(0)), rotated(pair, partner, true),
                       rotated(pair, partner, false));
    } else {
      all = MakeSelect(LessThan(d, IntConst(half)), rotated(d, d + half, true),
                       rotated(d - half, d - half, false));
    }
    if (rotary.rotated < x.size()) all = MakeSelect(LessThan(d, IntConst(rotary.rotated)), all, element(d));
    return MakeCast(x.tensor->dtype, all);
  });
  n.Set(0, n.g().AddReshape(result, n.Shape(kRotaryX)));
  return absl::OkStatus();
}

}  // namespace mycc::onnx

// Attention and its relatives: products of queries and keys, a softmax over the keys, and sums of values. The
// sums and the softmax are made in f32 where the type is narrower.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/attention.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/rows.h"
#include "codegen/onnx/softmax.h"

namespace mycc::onnx {
namespace {

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };
enum AttentionOutput : size_t { kResult, kPresentKey, kPresentValue, kProducts };
// The values of qk_matmul_output_mode.
enum ProductsMode : int64_t { kScaled, kCapped, kMasked, kProbabilities };

// A score at its axes, changed.
using ElementFunction = std::function<Expr(const Axes&, const Expr&)>;

Expr InfinityOf(DType dtype, double sign) {
  return FloatConst(sign * std::numeric_limits<double>::infinity(), dtype);
}

// The past vectors and then the new ones.
absl::StatusOr<HeadVectors> WithPast(NodeImport& n, size_t i, const HeadVectors& fresh) {
  if (!n.Has(i)) return fresh;
  MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 4, 4));
  const Buffer past = n.In(i);
  const std::vector<int64_t>& shape = past->shape;
  if (past->dtype != fresh.tensor->dtype || shape[0] != fresh.batch() || shape[1] != fresh.heads() ||
      shape[3] != fresh.size()) {
    return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(past), "; expected vectors as those of ",
                                 TypeText(fresh.tensor)));
  }
  const int64_t old = shape[2], count = fresh.positions();
  if (old == 0) return fresh;
  if (count == 0) return HeadVectors{past, false};
  const Buffer all = n.g().Map({shape[0], shape[1], old + count, shape[3]}, [&](const Axes& a) {
    return MakeSelect(LessThan(a[2], IntConst(old)), Load(past, {a[0], a[1], a[2], a[3]}),
                      fresh.At(a[0], a[1], a[2] - old, a[3]));
  });
  return HeadVectors{all, false};
}

// The shape of a mask of [.., head, query, key] with its heads as the scores have them (attention.h).
std::vector<int64_t> WithHeadsOf(std::vector<int64_t> shape, const std::vector<int64_t>& scores) {
  if (scores.size() != 5 || shape.size() < 3) return shape;
  const size_t head = shape.size() - 3;
  const bool is_one = shape[head] == 1;
  shape[head] = is_one ? 1 : scores[1];
  shape.insert(shape.begin() + static_cast<int64_t>(head) + 1, is_one ? 1 : scores[2]);
  return shape;
}

// The shape of scores as [batch, head, query, key].
std::vector<int64_t> ByHeads(const std::vector<int64_t>& shape) {
  return {shape[0],
          CountOver(shape, shape.size() == 5 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}),
          shape[shape.size() - 2], shape.back()};
}

// The mask at the axes of the scores, or null without one. Keys beyond a shorter mask are masked.
absl::StatusOr<ElementFunction> MaskOf(NodeImport& n, const std::vector<int64_t>& scores) {
  const std::vector<int64_t> shape = ByHeads(scores);
  if (!n.Has(kMask)) return ElementFunction();
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, kMask, kTakesPlain));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(kMask, 1, 4));
  const Buffer given = n.In(kMask);
  const int64_t keys = shape.back(), known = given->shape.back();
  const bool is_shorter = known < keys && (known != 1 || n.opset() >= 24);
  std::vector<int64_t> all = given->shape;
  if (is_shorter) all.back() = keys;
  const auto fits = BroadcastShape({all, shape});
  if (!fits.ok() || *fits != shape) {
    return n.Refuse(absl::StrCat("the mask is ", TypeText(given), "; expected a shape that is broadcast to ",
                                 ShapeText(shape)));
  }
  const Buffer mask = n.g().AddReshape(given, WithHeadsOf(given->shape, scores));
  return ElementFunction([mask, is_shorter, known](const Axes& at, const Expr& score) -> Expr {
    const Expr masked = InfinityOf(score->dtype, -1);
    if (mask->num_elements() == 0) return masked;
    Axes index;
    for (size_t i = 0; i < mask->shape.size(); ++i) {
      const Expr& axis = at[at.size() - mask->shape.size() + i];
      const bool is_last = i + 1 == mask->shape.size();
      index.push_back(mask->shape[i] == 1 && !(is_last && is_shorter) ? IntConst(0) : axis);
    }
    const Expr value = Load(mask, index);
    const Expr seen = mask->dtype == DType::kBool ? MakeSelect(value, score, masked)
                                                  : score + MakeCast(score->dtype, value);
    return is_shorter ? MakeSelect(LessThan(at.back(), IntConst(known)), seen, masked) : seen;
  });
}

// The scores with all masks.
absl::StatusOr<Buffer> MaskedScores(NodeImport& n, const Buffer& scores, int64_t past) {
  const std::vector<int64_t>& shape = scores->shape;
  MYCC_ASSIGN_OR_RETURN(const ElementFunction mask, MaskOf(n, shape));
  const bool is_causal = n.Int("is_causal", 0) != 0;
  const Buffer lengths = n.Has(kLengths) ? n.In(kLengths) : Buffer();
  if (lengths != nullptr && (lengths->shape != std::vector<int64_t>{shape[0]} || !IsInt(lengths->dtype))) {
    return n.Refuse(
        absl::StrCat("the lengths are ", TypeText(lengths), "; expected integers of shape [", shape[0], "]"));
  }
  return n.g().Map(shape, [&](const Axes& at) {
    Expr score = Load(scores, at);
    const Expr masked = InfinityOf(score->dtype, -1);
    if (mask != nullptr) score = mask(at, score);
    const Expr &query = at[at.size() - 2], &key = at.back();
    if (is_causal) score = MakeSelect(AtMost(key, query + past), score, masked);
    if (lengths != nullptr) {
      const Expr length = MakeCast(DType::kI64, Load(lengths, {at[0]}));
      score = MakeSelect(LessThan(key, length), score, masked);
    }
    return score;
  });
}

double ScaleOf(const NodeImport& n, const HeadVectors& q) {
  return n.Float("scale", 1 / std::sqrt(static_cast<double>(q.size())));
}

Buffer Capped(NodeImport& n, const Buffer& scores) {
  const double cap = n.Float("softcap", 0);
  if (!(cap > 0)) return scores;
  return n.g().Map(scores->shape, [&](const Axes& at) {
    const Expr score = Load(scores, at), limit = NumberLike(score, cap);
    return limit * MakeUnary(Op::kTanh, Quotient(score, limit));
  });
}

// The type that the softmax is computed in.
absl::StatusOr<DType> SoftmaxType(const NodeImport& n, DType input) {
  const int64_t type = n.Int("softmax_precision", NodeImport::TypeNumber(input));
  if (type != kFloat && type != kFloat16 && type != kBfloat16 && type != kDouble)
    return n.Refuse(absl::StrCat("softmax_precision is ", type, "; expected a float of at least 16 bits"));
  return type == kDouble || input == DType::kF64 ? DType::kF64 : DType::kF32;
}

absl::Status CheckAttention(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, kQuery, kKey, kTakesFloats));
  for (size_t i : {kKey, kValue}) {
    if (n.Rank(i) != n.Rank(kQuery))
      return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected rank ", n.Rank(kQuery),
                                   " as of the queries"));
  }
  if (n.Has(kPastKey) != n.Has(kPastValue)) return n.Refuse("has past keys or past values; expected both");
  if (n.Has(kPastKey) && n.Has(kLengths))
    return n.Refuse("has past keys and lengths without padding; expected one of them");
  return absl::OkStatus();
}

absl::Status Attention(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(CheckAttention(n));
  GraphBuilder& g = n.g();
  const int64_t q_heads = n.Int("q_num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  MYCC_ASSIGN_OR_RETURN(const HeadVectors q, HeadVectorsOf(n, g, kQuery, q_heads));
  MYCC_ASSIGN_OR_RETURN(const HeadVectors new_k, HeadVectorsOf(n, g, kKey, kv_heads));
  MYCC_ASSIGN_OR_RETURN(const HeadVectors new_v, HeadVectorsOf(n, g, kValue, kv_heads));
  MYCC_ASSIGN_OR_RETURN(const HeadVectors k, WithPast(n, kPastKey, new_k));
  MYCC_ASSIGN_OR_RETURN(const HeadVectors v, WithPast(n, kPastValue, new_v));
  MYCC_RETURN_IF_ERROR(CheckHeads(n, q, k, v));
  const DType dtype = q.tensor->dtype;
  MYCC_ASSIGN_OR_RETURN(const DType softmax_type, SoftmaxType(n, dtype));

  const Buffer scaled = ProductsOfHeads(g, q, k, ScaleOf(n, q));
  const Buffer capped = Capped(n, scaled);
  MYCC_ASSIGN_OR_RETURN(const Buffer masked, MaskedScores(n, capped, k.positions() - new_k.positions()));
  const std::vector<int64_t>& shape = masked->shape;
  const Buffer probabilities = SoftmaxOver(g, g.Cast(masked, softmax_type),
                                           AxesFrom(static_cast<int64_t>(shape.size()) - 1, shape.size()));
  n.Set(kResult, WeightedValues(g, g.Cast(probabilities, dtype), v, q.is_position_first, dtype));
  if (n.Wants(kPresentKey)) n.Set(kPresentKey, HeadFirst(g, k));
  if (n.Wants(kPresentValue)) n.Set(kPresentValue, HeadFirst(g, v));
  const int64_t mode = n.Int("qk_matmul_output_mode", kScaled);
  if (mode < kScaled || mode > kProbabilities)
    return n.Refuse(absl::StrCat("qk_matmul_output_mode is ", mode, "; expected 0 to 3"));
  const Buffer stages[] = {scaled, capped, masked, probabilities};
  if (n.Wants(kProducts)) n.Set(kProducts, g.AddReshape(g.Cast(stages[mode], dtype), ByHeads(shape)));
  return absl::OkStatus();
}

// A tensor as the graph of an attribute changes it.
absl::StatusOr<Buffer> Modified(NodeImport& n, const std::string& attribute, const Buffer& tensor) {
  const OnnxAttribute* graph = n.Attribute(attribute);
  if (graph == nullptr || graph->graph == nullptr) return tensor;
  MYCC_ASSIGN_OR_RETURN(const std::vector<TypedTensor> results,
                        n.Import(*graph->graph, {{tensor, NodeImport::TypeNumber(tensor->dtype)}}));
  if (results.size() != 1 || results[0].tensor == nullptr || results[0].tensor->shape != tensor->shape ||
      results[0].tensor->dtype != tensor->dtype) {
    return n.Refuse(absl::StrCat("the graph of ", attribute, " gives other than one ", TypeText(tensor)));
  }
  return results[0].tensor;
}

// Attention whose scores and probabilities go through graphs, of the type of the softmax.
absl::Status FlexAttention(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, kQuery, kValue, kTakesFloats));
  GraphBuilder& g = n.g();
  for (size_t i : {kQuery, kKey, kValue}) MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 4, 4));
  const HeadVectors q{n.In(kQuery)}, k{n.In(kKey)}, v{n.In(kValue)};
  MYCC_RETURN_IF_ERROR(CheckHeads(n, q, k, v));
  const DType dtype = q.tensor->dtype;
  const bool is_double = dtype == DType::kF64;
  const int64_t precision = n.Int("softmax_precision", is_double ? kDouble : kFloat);
  if (precision != kFloat && precision != kDouble)
    return n.NotSupported(absl::StrCat("softmax_precision ", precision));
  const DType softmax_type = precision == kDouble ? DType::kF64 : DType::kF32;
  const Buffer products = g.Cast(ProductsOfHeads(g, q, k, ScaleOf(n, q)), softmax_type);
  const std::vector<int64_t>& shape = products->shape;
  // The graphs see [batch, head, query, key].
  const auto modified = [&](const char* attribute, const Buffer& x) -> absl::StatusOr<Buffer> {
    if (n.Attribute(attribute) == nullptr) return x;
    MYCC_ASSIGN_OR_RETURN(const Buffer result, Modified(n, attribute, g.AddReshape(x, ByHeads(shape))));
    return g.AddReshape(result, shape);
  };
  MYCC_ASSIGN_OR_RETURN(const Buffer scores, modified("score_mod", products));
  const Buffer softmax =
      SoftmaxOver(g, scores, AxesFrom(static_cast<int64_t>(shape.size()) - 1, shape.size()));
  MYCC_ASSIGN_OR_RETURN(const Buffer probabilities, modified("prob_mod", softmax));
  n.Set(0, WeightedValues(g, g.Cast(probabilities, dtype), v, false, dtype));
  return absl::OkStatus();
}

constexpr Operator kAttentionTable[] = {
    {"Attention", Attention, 23},
    {"CausalConvWithState", CausalConvWithState, 27},
    {"FlexAttention", FlexAttention, 1, "ai.onnx.preview"},
    {"LinearAttention", LinearAttention, 27},
    {"RotaryEmbedding", RotaryEmbedding, 23},
};

}  // namespace

std::span<const Operator> AttentionOperators() { return kAttentionTable; }

}  // namespace mycc::onnx

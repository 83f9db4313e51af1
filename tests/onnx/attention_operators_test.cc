// Attention, rotary embeddings and operators with a state against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

Numbers Zeros(Index shape) {
  Numbers numbers{std::move(shape), {}};
  numbers.values.resize(static_cast<size_t>(ElementsOf(numbers.shape)));
  return numbers;
}

// [batch, head, position, element] as [batch, position, heads' elements].
Numbers HeadsSideBySide(const Numbers& x) {
  const int64_t size = x.shape[3];
  Numbers flat = Zeros({x.shape[0], x.shape[2], x.shape[1] * size});
  ForEachIndex(x.shape, [&](const Index& i) { flat.At({i[0], i[2], i[1] * size + i[3]}) = x.At(i); });
  return flat;
}

Numbers Concatenated(const Numbers& past, const Numbers& fresh) {
  Numbers all = Zeros({fresh.shape[0], fresh.shape[1], past.shape[2] + fresh.shape[2], fresh.shape[3]});
  ForEachIndex(past.shape, [&](const Index& i) { all.At(i) = past.At(i); });
  ForEachIndex(fresh.shape, [&](const Index& i) {
    all.At({i[0], i[1], past.shape[2] + i[2], i[3]}) = fresh.At(i);
  });
  return all;
}

struct AttentionCase {
  int64_t group = 1;
  bool is_flat = false, has_past = false, is_causal = false;
  enum { kNoMask, kBoolMask, kFloatMask } mask = kNoMask;
  bool has_lengths = false;
  double softcap = 0;
};

// The stages of an attention: scaled, capped, masked, probabilities; and the result.
struct AttentionStages {
  Numbers stages[4], result;
};

AttentionStages NaiveAttention(const AttentionCase& c, const Numbers& q, const Numbers& k, const Numbers& v,
                               const Numbers& mask, const Numbers& lengths, int64_t past) {
  constexpr double kScale = 0.375;
  AttentionStages all;
  all.result = Zeros({q.shape[0], q.shape[1], q.shape[2], v.shape[3]});
  const int64_t keys = k.shape[2];
  for (Numbers& stage : all.stages) stage = Zeros({q.shape[0], q.shape[1], q.shape[2], keys});
  ForEachIndex(all.stages[0].shape, [&](const Index& i) {
    double product = 0;
    for (int64_t d = 0; d < q.shape[3]; ++d)
      product += q.At({i[0], i[1], i[2], d}) * k.At({i[0], i[1] / c.group, i[3], d});
    const double scaled = product * kScale;
    const double capped = c.softcap > 0 ? c.softcap * std::tanh(scaled / c.softcap) : scaled;
    double masked = capped;
    const bool is_beyond = c.mask != AttentionCase::kNoMask && i[3] >= mask.shape[1];
    if (c.mask == AttentionCase::kFloatMask && !is_beyond) masked += mask.At({i[2], i[3]});
    if (is_beyond || (c.mask == AttentionCase::kBoolMask && mask.At({i[2], i[3]}) == 0) ||
        (c.is_causal && i[3] > i[2] + past) ||
        (c.has_lengths && static_cast<double>(i[3]) >= lengths.At({i[0]}))) {
      masked = -std::numeric_limits<double>::infinity();
    }
    all.stages[0].At(i) = scaled;
    all.stages[1].At(i) = capped;
    all.stages[2].At(i) = masked;
  });
  ForEachIndex(all.stages[0].shape, [&](const Index& i) {
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key) sum += std::exp(all.stages[2].At({i[0], i[1], i[2], key}));
    const double probability = std::exp(all.stages[2].At(i)) / sum;
    all.stages[3].At(i) = probability;
    for (int64_t d = 0; d < v.shape[3]; ++d)
      all.result.At({i[0], i[1], i[2], d}) += probability * v.At({i[0], i[1] / c.group, i[3], d});
  });
  return all;
}

void CheckAttention(const AttentionCase& c) {
  const int64_t heads = 2, queries = 3, fresh = 4, past = c.has_past ? 2 : 0;
  const Numbers q = Numbers::Random({2, heads * c.group, queries, 4}, 1);
  const Numbers k = Numbers::Random({2, heads, fresh, 4}, 2), v = Numbers::Random({2, heads, fresh, 5}, 3);
  const Numbers past_k = Numbers::Random({2, heads, past, 4}, 4);
  const Numbers past_v = Numbers::Random({2, heads, past, 5}, 5);
  Numbers mask = Numbers::Random({queries, past + fresh - 1}, 6);  // the last key is beyond it
  if (c.mask == AttentionCase::kBoolMask) {
    for (double& value : mask.values) value = value > -1;
    for (int64_t i = 0; i < queries; ++i) mask.At({i, 0}) = 1;
  }
  const Numbers lengths{{2}, {1, 3}};
  const Numbers all_k = Concatenated(past_k, k), all_v = Concatenated(past_v, v);
  const AttentionStages expected = NaiveAttention(c, q, all_k, all_v, mask, lengths, past);

  const auto arranged = [&](const Numbers& x) { return c.is_flat ? HeadsSideBySide(x) : x; };
  OneOperator node("Attention", 24);
  node.Input(kFloat, arranged(q)).Input(kFloat, arranged(k)).Input(kFloat, arranged(v));
  c.mask == AttentionCase::kNoMask ? node.Omit()
                                   : node.Input(c.mask == AttentionCase::kBoolMask ? kBool : kFloat, mask);
  c.has_past ? node.Input(kFloat, past_k).Input(kFloat, past_v) : node.Omit().Omit();
  if (c.has_lengths) node.Input(kInt64, lengths);
  if (c.is_flat) node.Int("q_num_heads", heads * c.group).Int("kv_num_heads", heads);
  node.Float("scale", 0.375).Float("softcap", c.softcap).Int("is_causal", c.is_causal);
  for (int64_t mode = 0; mode < 4; ++mode) {
    SCOPED_TRACE(mode);
    const auto got = node.Int("qk_matmul_output_mode", mode).Run(4, DType::kF32);
    ExpectNumbers(got, 0, arranged(expected.result));
    ExpectNumbers(got, 1, all_k);
    ExpectNumbers(got, 2, all_v);
    ExpectNumbers(got, 3, expected.stages[mode]);
  }
}

TEST(Attention, EveryCombinationOfItsForms) {
  for (int form = 0; form < 64; ++form) {
    for (const auto mask : {AttentionCase::kNoMask, AttentionCase::kBoolMask, AttentionCase::kFloatMask}) {
      AttentionCase c;
      c.group = form & 1 ? 3 : 1;
      c.is_flat = form & 2;
      c.has_past = form & 4;
      c.is_causal = form & 8;
      c.has_lengths = form & 16;
      c.softcap = form & 32 ? 1.5 : 0;
      c.mask = mask;
      if (c.has_past && c.has_lengths) continue;
      SCOPED_TRACE(testing::Message() << "form " << form << " mask " << mask);
      CheckAttention(c);
    }
  }
}

TEST(Attention, NarrowFloatsAreSummedInF32) {
  const Numbers q = Numbers::Random({1, 1, 2, 8}, 1), k = Numbers::Random({1, 1, 3, 8}, 2);
  const Numbers v = Numbers::Random({1, 1, 3, 8}, 3);
  const AttentionStages expected = NaiveAttention({}, q, k, v, {}, {}, 0);
  OneOperator node("Attention", 23);
  node.Input(kBfloat16, q).Input(kBfloat16, k).Input(kBfloat16, v).Float("scale", 0.375);
  ExpectNumbers(node.Run(1, DType::kBF16), 0, expected.result, 1e-2);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Numbers x = Numbers::Random({1, 3, 2, 4}, 1), y = Numbers::Random({1, 2, 2, 4}, 2);
  OneOperator heads("Attention", 23), flat("Attention", 23), half("Attention", 23);
  heads.Input(kFloat, x).Input(kFloat, y).Input(kFloat, y);
  EXPECT_THAT(heads.Run().status().ToString(), HasSubstr("a multiple of the keys' heads"));
  for (int i = 0; i < 3; ++i) flat.Input(kFloat, Numbers::Random({1, 2, 6}, 1));
  EXPECT_THAT(flat.Run().status().ToString(), HasSubstr("such as q_num_heads"));
  for (int i = 0; i < 3; ++i) half.Input(kFloat, x);
  EXPECT_THAT(half.Omit().Input(kFloat, x).Run().status().ToString(), HasSubstr("expected both"));
}

TEST(Rotary, EveryForm) {
  const int64_t batch = 2, heads = 2, positions = 3, size = 6;
  const Numbers x = Numbers::Random({batch, heads, positions, size}, 1);
  const Numbers ids{{batch, positions}, {4, 0, 2, 1, 1, 3}};
  for (int form = 0; form < 16; ++form) {
    const bool is_flat = form & 1, is_interleaved = form & 2, has_ids = form & 4;
    const int64_t rotated = form & 8 ? 4 : size, half = rotated / 2;
    const Index cache = has_ids ? Index{5, half} : Index{batch, positions, half};
    const Numbers cosines = Numbers::Random(cache, 2), sines = Numbers::Random(cache, 3);
    Numbers expected = x;
    for (int64_t pair = 0; pair < half; ++pair) {
      const int64_t first = is_interleaved ? 2 * pair : pair,
                    second = is_interleaved ? first + 1 : pair + half;
      ForEachIndex({batch, heads, positions}, [&](const Index& i) {
        const Index at =
            has_ids ? Index{static_cast<int64_t>(ids.At({i[0], i[2]})), pair} : Index{i[0], i[2], pair};
        const double c = cosines.At(at), s = sines.At(at);
        const double a = x.At({i[0], i[1], i[2], first}), b = x.At({i[0], i[1], i[2], second});
        expected.At({i[0], i[1], i[2], first}) = c * a - s * b;
        expected.At({i[0], i[1], i[2], second}) = s * a + c * b;
      });
    }
    OneOperator node("RotaryEmbedding", 23);
    node.Input(kFloat, is_flat ? HeadsSideBySide(x) : x).Input(kFloat, cosines).Input(kFloat, sines);
    if (has_ids) node.Input(kInt64, ids);
    if (is_flat) node.Int("num_heads", heads);
    node.Int("interleaved", is_interleaved).Int("rotary_embedding_dim", rotated == size ? 0 : rotated);
    SCOPED_TRACE(form);
    ExpectNumbers(node.Run(), 0, is_flat ? HeadsSideBySide(expected) : expected);
  }
}

TEST(LinearAttention, EveryRule) {
  const int64_t heads = 2, group = 2, steps = 3, keys = 3, values = 2;
  const Numbers q = Numbers::Random({2, heads * group, steps, keys}, 1);
  const Numbers k = Numbers::Random({2, heads, steps, keys}, 2),
                v = Numbers::Random({2, heads, steps, values}, 3);
  const Numbers past = Numbers::Random({2, heads, keys, values}, 4);
  const Numbers beta = Numbers::Random({2, heads, steps, 1}, 5);
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    const std::string name = rule;
    const bool is_gated = name.find("gated") == 0, is_delta = name.find("delta") != std::string::npos;
    for (const int64_t gates : {int64_t{1}, keys}) {
      const Numbers decay = Numbers::Random({2, heads, steps, gates}, 6);
      Numbers state = past, result = Zeros({2, heads * group, steps, values});
      for (int64_t t = 0; t < steps; ++t) {
        Numbers next = state;
        ForEachIndex(state.shape, [&](const Index& i) {
          const auto decayed = [&](int64_t d) {
            const double gate = decay.At({i[0], i[1], t, gates == 1 ? 0 : d});
            return state.At({i[0], i[1], d, i[3]}) * (is_gated ? std::exp(gate) : 1);
          };
          double update = v.At({i[0], i[1], t, i[3]});
          for (int64_t d = 0; is_delta && d < keys; ++d) update -= decayed(d) * k.At({i[0], i[1], t, d});
          if (is_delta) update *= beta.At({i[0], i[1], t, 0});
          next.At(i) = decayed(i[2]) + k.At({i[0], i[1], t, i[2]}) * update;
        });
        state = next;
        ForEachIndex({2, heads * group, keys, values}, [&](const Index& i) {
          result.At({i[0], i[1], t, i[3]}) +=
              0.5 * q.At({i[0], i[1], t, i[2]}) * state.At({i[0], i[1] / group, i[2], i[3]});
        });
      }
      OneOperator node("LinearAttention", 27);
      node.Input(kFloat, HeadsSideBySide(q))
          .Input(kFloat, HeadsSideBySide(k))
          .Input(kFloat, HeadsSideBySide(v));
      node.Input(kFloat, past);
      is_gated ? node.Input(kFloat, HeadsSideBySide(decay)) : node.Omit();
      if (is_delta) node.Input(kFloat, HeadsSideBySide(beta));
      node.String("update_rule", rule).Float("scale", 0.5);
      node.Int("q_num_heads", heads * group).Int("kv_num_heads", heads);
      SCOPED_TRACE(rule);
      const auto got = node.Run(2);
      ExpectNumbers(got, 0, HeadsSideBySide(result), 1e-4);
      ExpectNumbers(got, 1, state, 1e-4);
    }
  }
}

}  // namespace
}  // namespace mycc::onnx

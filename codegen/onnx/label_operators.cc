// Operators of ai.onnx.ml, and of text: labels for numbers and strings, and counts of rows of numbers.
#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/texts.h"
#include "codegen/onnx/tree_ensemble.h"

namespace mycc::onnx {
namespace {

constexpr char kMlDomain[] = "ai.onnx.ml";
constexpr int64_t kMostKeys = int64_t{1} << 20, kMostGramLength = 64;

absl::Status Binarizer(NodeImport& n) {
  const double threshold = n.Float("threshold", 0);
  return MapUnary(n, kTakesNumbers, [&](const Expr& x) {
    const DType dtype = IsFloat(x->dtype) ? x->dtype : DType::kF64;
    const Expr is_above = LessThan(FloatConst(threshold, dtype), MakeCast(dtype, x));
    return MakeSelect(is_above, NumberLike(x, 1), NumberLike(x, 0));
  });
}

// A list of numbers or strings that the attributes NAME_int64s, NAME_floats, NAME_strings and NAME_tensor
// give.
struct Labels {
  NDArray numbers{DType::kI64, {0}, {}};
  int type = kUndefined;
  std::vector<std::string> texts = {};

  bool IsText() const { return type == kString; }
  int64_t count() const { return IsText() ? static_cast<int64_t>(texts.size()) : numbers.num_elements(); }
};

absl::StatusOr<Labels> LabelsOf(const NodeImport& n, const std::string& name) {
  Labels labels;
  if (n.HasAttribute(name + "_int64s")) {
    const std::vector<int64_t> ints = n.Ints(name + "_int64s");
    labels = {NDArray::Zeros(DType::kI64, {static_cast<int64_t>(ints.size())}), kInt64};
    for (size_t i = 0; i < ints.size(); ++i) labels.numbers.Set(static_cast<int64_t>(i), Scalar{0, ints[i]});
  } else if (n.HasAttribute(name + "_floats")) {
    const std::vector<double> floats = n.Floats(name + "_floats");
    labels = {NDArray::Zeros(DType::kF32, {static_cast<int64_t>(floats.size())}), kFloat};
    for (size_t i = 0; i < floats.size(); ++i)
      labels.numbers.Set(static_cast<int64_t>(i), Scalar{floats[i], 0});
  } else if (n.HasAttribute(name + "_strings")) {
    labels.type = kString;
    labels.texts = n.Strings(name + "_strings");
  } else if (const OnnxAttribute* texts = n.Attribute(name + "_tensor");
             texts != nullptr && texts->tensor.texts != nullptr) {
    labels.type = kString;
    labels.texts = texts->tensor.texts->elements;
  } else if (const OnnxAttribute* tensor = n.Attribute(name + "_tensor");
             tensor != nullptr && tensor->tensor.value != nullptr) {
    labels = {*tensor->tensor.value, tensor->tensor.type};
    labels.numbers.shape = {labels.numbers.num_elements()};
  } else {
    return n.NotSupported(absl::StrCat("a node without ", name, "_int64s, ", name, "_floats, ", name,
                                       "_strings or ", name, "_tensor"));
  }
  const int64_t count = labels.count();
  if (count < 1 || count > kMostKeys)
    return n.Refuse(absl::StrCat("has ", count, " ", name, "; expected 1 to ", kMostKeys));
  return labels;
}

// The value of what is no key.
absl::StatusOr<Expr> DefaultLabel(const NodeImport& n, const Labels& values) {
  const DType dtype = values.numbers.dtype;
  if (n.HasAttribute("values_int64s")) return IntConst(n.Int("default_int64", -1), dtype);
  if (n.HasAttribute("values_floats")) return FloatConst(n.Float("default_float", -0.0), dtype);
  const OnnxAttribute* tensor = n.Attribute("default_tensor");
  if (tensor == nullptr && IsFloat(dtype)) return FloatConst(-0.0, dtype);
  if (tensor == nullptr) return LiteralOf(dtype, ConvertScalar(dtype, DType::kI64, Scalar{0, -1}));
  if (tensor->tensor.value == nullptr || tensor->tensor.value->num_elements() != 1 ||
      tensor->tensor.type != values.type)
    return n.Refuse("default_tensor is no tensor of one element of the values' type; expected one");
  return LiteralOf(dtype, tensor->tensor.value->Get(0));
}

// The same of strings.
absl::StatusOr<std::string> DefaultText(const NodeImport& n) {
  const OnnxAttribute* tensor = n.Attribute("default_tensor");
  if (tensor == nullptr) return n.String("default_string", "_Unused");
  if (tensor->tensor.texts == nullptr || tensor->tensor.texts->elements.size() != 1)
    return n.Refuse("default_tensor is no tensor of one string; expected one");
  return tensor->tensor.texts->elements[0];
}

// The number of the last key that is equal to an element, or -1. NaN equals NaN here.
absl::StatusOr<Buffer> PlaceOfKey(NodeImport& n, const Labels& keys) {
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0);
  if (keys.IsText()) {
    MYCC_ASSIGN_OR_RETURN(const TypedTensor texts, TextsOf(n, keys.texts, {keys.count()}));
    MYCC_ASSIGN_OR_RETURN(const auto found,
                          CallOnTexts(g, "find_texts", {}, {n.Typed(0), texts}, {{kInt64, x->shape}}));
    return found[0].tensor;
  }
  const Buffer key = g.AddConstant(keys.numbers);
  return g.Reduce(ReduceOp::kMax, x->shape, {keys.count()}, [&](const Axes& axes, const Axes& r) {
    const Expr a = Load(x, axes), b = Load(key, r);
    Expr is_equal = MakeBinary(Op::kEq, a, b);
    if (IsFloat(x->dtype)) {
      const Expr are_nan = MakeBinary(Op::kAnd, MakeBinary(Op::kNe, a, a), MakeBinary(Op::kNe, b, b));
      is_equal = MakeBinary(Op::kOr, is_equal, are_nan);
    }
    return MakeSelect(is_equal, r[0], IntConst(-1));
  });
}

// The label at each place, and behind the labels that of the places that are negative.
Buffer LabelsAt(GraphBuilder& g, const Buffer& places, const Buffer& labels) {
  const int64_t last = labels->shape[0] - 1;
  return g.Map(places->shape, [&](const Axes& axes) {
    return Load(labels, {Mod(ClampTo(Load(places, axes), IntConst(-1), IntConst(last)), last + 1)});
  });
}

absl::Status LabelEncoder(NodeImport& n) {
  if (!n.Has(0) || !n.Typed(0).IsText()) MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesPlain));
  MYCC_ASSIGN_OR_RETURN(const Labels keys, LabelsOf(n, "keys"));
  MYCC_ASSIGN_OR_RETURN(Labels values, LabelsOf(n, "values"));
  const int64_t count = keys.count();
  if (keys.type != n.Typed(0).type || values.count() != count) {
    return n.Refuse(absl::StrCat("has ", count, " keys of type ", ElementTypeName(keys.type), " and ",
                                 values.count(), " values for ", TypeText(n.Typed(0)),
                                 "; expected keys of its type, and as many values"));
  }
  GraphBuilder& g = n.g();
  MYCC_ASSIGN_OR_RETURN(const Buffer place, PlaceOfKey(n, keys));
  if (values.IsText()) {
    MYCC_ASSIGN_OR_RETURN(values.texts.emplace_back(), DefaultText(n));
    MYCC_ASSIGN_OR_RETURN(const TypedTensor labels, TextsOf(n, values.texts, {count + 1}));
    n.Set(0, LabelsAt(g, place, labels.tensor), kString);
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(const Expr otherwise, DefaultLabel(n, values));
  const Buffer value = g.AddConstant(values.numbers);
  const Buffer labels = g.Map(place->shape, [&](const Axes& axes) {
    const Expr at = Load(place, axes);
    const Expr label = Load(value, {ClampTo(at, IntConst(0), IntConst(count - 1))});
    return MakeSelect(LessThan(at, IntConst(0)), otherwise, label);
  });
  n.Set(0, labels, values.type);
  return absl::OkStatus();
}

// The grams of one length in the pool, one in each row, and the columns of the result that count them.
struct Grams {
  NDArray numbers;
  std::vector<int64_t> columns;
  int64_t length() const { return numbers.shape[1]; }
};

// The pool's numbers. Strings are numbered as find_texts does: by the last one in the pool that is equal.
std::vector<int64_t> PoolOf(const NodeImport& n) {
  if (!n.HasAttribute("pool_strings")) return n.Ints("pool_int64s");
  const std::vector<std::string> texts = n.Strings("pool_strings");
  std::unordered_map<std::string, int64_t> numbers;
  for (const std::string& text : texts) numbers[text] = static_cast<int64_t>(&text - texts.data());
  std::vector<int64_t> pool;
  for (const std::string& text : texts) pool.push_back(numbers.at(text));
  return pool;
}

absl::StatusOr<std::vector<Grams>> GramsOf(const NodeImport& n) {
  const std::vector<int64_t> starts = n.Ints("ngram_counts"), columns = n.Ints("ngram_indexes");
  const std::vector<int64_t> pool = PoolOf(n);
  const int64_t least = n.Int("min_gram_length", 1), most = n.Int("max_gram_length", 1);
  if (most > kMostGramLength && starts.size() > static_cast<size_t>(kMostGramLength))
    return n.NotSupported(absl::StrCat("a gram of more than ", kMostGramLength, " numbers"));
  std::vector<Grams> grams;
  size_t next = 0;
  for (size_t i = 0; i < starts.size() && i < static_cast<size_t>(kMostGramLength); ++i) {
    const auto length = static_cast<int64_t>(i + 1), all = static_cast<int64_t>(pool.size());
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : all;
    if (starts[i] < 0 || end < starts[i] || end > all || (end - starts[i]) % length != 0)
      return n.Refuse(absl::StrCat("ngram_counts are ", ShapeText(starts), " for a pool of ", all,
                                   " numbers; expected the starts of its parts"));
    const int64_t count = (end - starts[i]) / length;
    if (count > static_cast<int64_t>(columns.size() - next))
      return n.Refuse("has fewer ngram_indexes than grams; expected one for each");
    if (length >= least && length <= most && count > 0) {
      Grams some{NDArray::Zeros(DType::kI64, {count, length}), {}};
      for (int64_t k = 0; k < count * length; ++k) some.numbers.Set(k, Scalar{0, pool[starts[i] + k]});
      some.columns.assign(columns.begin() + static_cast<int64_t>(next),
                          columns.begin() + static_cast<int64_t>(next) + count);
      grams.push_back(std::move(some));
    }
    next += static_cast<size_t>(count);
  }
  return grams;
}

// How often each gram occurs in each row of x, with the same number of elements left out between its numbers;
// `distances` are tried.
Buffer CountGrams(GraphBuilder& g, const Buffer& x, const Grams& grams, int64_t distances) {
  const Buffer numbers = g.AddConstant(grams.numbers);
  const int64_t length = grams.length(), extent = x->shape[1];
  if (length == 1) distances = 1;
  return g.Reduce(
      ReduceOp::kSum, {x->shape[0], grams.numbers.shape[0]}, {distances, extent},
      [&](const Axes& axes, const Axes& r) {
        const auto place = [&](int64_t k) { return r[1] + (r[0] + 1) * k; };
        Expr is_found = LessThan(place(length - 1), IntConst(extent));
        for (int64_t k = 0; k < length; ++k) {
          const Expr at = ClampTo(place(k), IntConst(0), IntConst(extent - 1));
          const Expr element = MakeCast(DType::kI64, Load(x, {axes[0], at}));
          const Expr is_equal = MakeBinary(Op::kEq, element, Load(numbers, {axes[1], IntConst(k)}));
          is_found = MakeBinary(Op::kAnd, is_found, is_equal);
        }
        return MakeSelect(is_found, FloatConst(1, DType::kF32), FloatConst(0, DType::kF32));
      });
}

// How the counts become a result.
struct GramColumns {
  int64_t width = 0;  // of the result
  NDArray sources;    // of each column: the number of its gram, or -1
  NDArray factors;
  bool is_presence = false;  // of a gram that occurs, 1 in place of its count
};

absl::StatusOr<GramColumns> GramColumnsOf(const NodeImport& n, const std::vector<Grams>& grams) {
  const std::string mode = n.String("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected TF, IDF or TFIDF"));
  const std::vector<int64_t> all = n.Ints("ngram_indexes");
  const int64_t last = all.empty() ? -1 : *std::ranges::max_element(all);
  if (last < 0 || last >= kMostKeys || *std::ranges::min_element(all) < 0)
    return n.Refuse(absl::StrCat("ngram_indexes are ", ShapeText(all), "; expected places in the result"));
  const std::vector<double> weights = n.Floats("weights");
  if (!weights.empty() && static_cast<int64_t>(weights.size()) <= last)
    return n.Refuse(absl::StrCat("has ", weights.size(), " weights; expected ", last + 1));
  GramColumns columns{last + 1, NDArray::Zeros(DType::kI64, {last + 1}),
                      NDArray::Zeros(DType::kF32, {last + 1}), mode == "IDF"};
  for (int64_t i = 0; i <= last; ++i) {
    columns.sources.Set(i, Scalar{0, -1});
    columns.factors.Set(i, Scalar{weights.empty() || mode == "TF" ? 1 : weights[static_cast<size_t>(i)], 0});
  }
  int64_t source = 0;
  for (const Grams& some : grams) {
    for (const int64_t column : some.columns) {
      if (columns.sources.Get(column).i >= 0)
        return n.NotSupported(absl::StrCat("an index of two grams, ", column, ","));
      columns.sources.Set(column, Scalar{0, source++});
    }
  }
  return columns;
}

// Input 0 as numbers of the pool's kind.
absl::StatusOr<Buffer> NumbersOfGrams(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  if (n.Typed(0).IsText() != n.HasAttribute("pool_strings"))
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(n.Typed(0)), "; expected the type of the pool"));
  if (!n.Typed(0).IsText()) {
    MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesIntegers));
    return n.In(0);
  }
  const std::vector<std::string> pool = n.Strings("pool_strings");
  MYCC_ASSIGN_OR_RETURN(const TypedTensor texts, TextsOf(n, pool, {static_cast<int64_t>(pool.size())}));
  MYCC_ASSIGN_OR_RETURN(const auto found,
                        CallOnTexts(n.g(), "find_texts", {}, {n.Typed(0), texts}, {{kInt64, n.Shape(0)}}));
  return found[0].tensor;
}

// The count of each column's gram, and its weight in the modes that have weights.
absl::Status TfIdfVectorizer(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const Buffer numbers, NumbersOfGrams(n));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 0, 2));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Grams> grams, GramsOf(n));
  MYCC_ASSIGN_OR_RETURN(const GramColumns columns, GramColumnsOf(n, grams));
  const int64_t skips = n.Int("max_skip_count", 0);
  if (skips < 0) return n.Refuse(absl::StrCat("max_skip_count is ", skips, "; expected 0 or more"));
  GraphBuilder& g = n.g();
  const Buffer x = n.Rank(0) == 2 ? numbers : g.AddReshape(numbers, {1, numbers->num_elements()});
  const std::vector<int64_t> shape = {x->shape[0], columns.width};
  std::vector<Buffer> parts;
  for (size_t i = 0; i < grams.size() && x->shape[1] > 0; ++i)
    parts.push_back(CountGrams(g, x, grams[i], std::min(skips, x->shape[1] - 1) + 1));
  Buffer result;
  if (parts.empty()) {
    result = g.Map(shape, [](const Axes&) { return FloatConst(0, DType::kF32); });
  } else {
    const Buffer counts = Joined(g, parts, 1), sources = g.AddConstant(columns.sources),
                 factors = g.AddConstant(columns.factors);
    result = g.Map(shape, [&](const Axes& axes) {
      const Expr zero = FloatConst(0, DType::kF32), source = Load(sources, {axes[1]});
      const Expr at = ClampTo(source, IntConst(0), IntConst(counts->shape[1] - 1));
      Expr value = MakeSelect(LessThan(source, IntConst(0)), zero, Load(counts, {axes[0], at}));
      if (columns.is_presence) value = MakeSelect(LessThan(zero, value), NumberLike(zero, 1), zero);
      return value * Load(factors, {axes[1]});
    });
  }
  n.Set(0, n.Rank(0) == 2 ? result : g.AddReshape(result, {columns.width}));
  return absl::OkStatus();
}

constexpr Operator kLabelTable[] = {
    {"Binarizer", Binarizer, 1, kMlDomain},
    {"LabelEncoder", LabelEncoder, 2, kMlDomain, false, kTextFirst},
    {"TfIdfVectorizer", TfIdfVectorizer, 9, "", false, kTextFirst},
    {"TreeEnsemble", TreeEnsemble, 5, kMlDomain},
};

}  // namespace

std::span<const Operator> LabelOperators() { return kLabelTable; }

}  // namespace mycc::onnx

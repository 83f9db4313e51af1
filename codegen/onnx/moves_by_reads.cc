#include "codegen/onnx/moves_by_reads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/moves.h"

namespace mycc::onnx {
namespace {

Expr Larger(const Expr& a, const Expr& b) { return MakeBinary(Op::kMax, a, b); }
Expr Smaller(const Expr& a, const Expr& b) { return MakeBinary(Op::kMin, a, b); }

// Numbers for some axes, in a vector, and the vector that names these axes; without it they are the first
// ones.
class NumbersByAxis {
 public:
  NumbersByAxis(NodeImport* n, const Buffer& axes, int64_t count, int64_t rank)
      : g_(n->g()), axes_(axes), count_(count), rank_(rank) {}

  // `number(k)` for the entry k that names the axis, or `otherwise`.
  template <typename Number>
  Expr For(int64_t axis, const Number& number, const Expr& otherwise) const {
    Expr result = otherwise;
    for (int64_t k = 0; k < count_; ++k) {
      if (axes_ == nullptr) {
        if (k == axis) result = number(k);
        continue;
      }
      const Expr named = EntryOf(axes_, k);
      const Expr is_named = MakeBinary(Op::kOr, MakeBinary(Op::kEq, named, IntConst(axis)),
                                       MakeBinary(Op::kEq, named, IntConst(axis - rank_)));
      result = MakeSelect(is_named, number(k), result);
    }
    return result;
  }

  Expr EntryOf(const Buffer& vector, int64_t k) const {
    if (const NDArray* value = g_.ValueOf(vector)) return IntConst(value->Get(k).i);
    return MakeCast(DType::kI64, Load(vector, {IntConst(k)}));
  }

 private:
  const GraphBuilder& g_;
  const Buffer axes_;
  const int64_t count_, rank_;
};

// Refuses a vector that is no vector of `count` integers.
absl::Status ExpectVector(const NodeImport& n, size_t i, int64_t count) {
  if (!n.Has(i) || (n.Shape(i) == std::vector<int64_t>{count} && !IsFloat(n.Type(i))))
    return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(n.In(i)), "; expected ", count, " integers"));
}

absl::Status ExpectElements(const NodeImport& n, const std::vector<int64_t>& shape) {
  if (shape.size() != n.Shape(0).size() || n.In(0)->num_elements() == 0) {
    return n.Refuse(absl::StrCat("gives ", TypeText(n.In(0)), " the declared shape ", ShapeText(shape),
                                 "; expected one of its rank, and elements"));
  }
  return absl::OkStatus();
}

// The place of each element of each axis, computed in a vector of its own: an index holds one read alone.
using PlaceOf = std::function<Expr(int64_t axis, const Expr& index)>;
std::vector<Buffer> PlacesOf(GraphBuilder& g, const std::vector<int64_t>& shape, const PlaceOf& place) {
  std::vector<Buffer> places;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    places.push_back(g.Map({shape[i]}, [&](const Axes& axes) { return place(axis, axes[0]); }));
  }
  return places;
}

Expr ElementAt(const Buffer& x, const std::vector<Buffer>& places, const Axes& axes) {
  Axes at;
  for (size_t i = 0; i < axes.size(); ++i)
    at.push_back(ClampTo(Load(places[i], {axes[i]}), IntConst(0), IntConst(x->shape[i] - 1)));
  return Load(x, std::move(at));
}

// The place in an axis of `extent` elements for a place of the result, with `before` and `after` elements of
// padding; negative numbers cut elements off first. A place outside of the axis is -1.
Expr PaddedPlace(const std::string& mode, const Expr& index, int64_t extent, const Expr& before,
                 const Expr& after) {
  const Expr zero = IntConst(0), one = IntConst(1);
  if (mode == "constant") {
    const Expr place = index - before;
    const Expr is_inside = MakeBinary(Op::kAnd, AtMost(zero, place), LessThan(place, IntConst(extent)));
    return MakeSelect(is_inside, place, IntConst(-1));
  }
  const Expr first = Larger(zero - before, zero);
  const Expr kept = Larger(IntConst(extent) - first - Larger(zero - after, zero), one);
  const Expr place = index - Larger(before, zero);
  if (mode == "edge") return first + Smaller(Larger(place, zero), kept - one);
  if (mode == "wrap") return first + MakeBinary(Op::kMod, place, kept);
  const Expr period = Larger((kept - one) * 2, one);
  const Expr in_period = MakeBinary(Op::kMod, place, period);
  return first + Smaller(in_period, period - in_period);
}

}  // namespace

const std::vector<int64_t>* ShapeInsteadOf(const NodeImport& n, size_t i) {
  return n.Has(i) && n.Value(i) == nullptr ? n.DeclaredShape(0) : nullptr;
}

absl::StatusOr<Buffer> SlicedByReads(NodeImport& n, const std::vector<int64_t>& shape) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 1, 1));
  MYCC_RETURN_IF_ERROR(ExpectElements(n, shape));
  const int64_t count = n.Shape(1)[0];
  for (const size_t i : {1, 3, 4}) MYCC_RETURN_IF_ERROR(ExpectVector(n, i, count));
  const NumbersByAxis numbers(&n, n.Has(3) ? n.In(3) : nullptr, count, n.Rank(0));
  const Expr zero = IntConst(0), one = IntConst(1);
  const auto step_of = [&](int64_t k) { return n.Has(4) ? numbers.EntryOf(n.In(4), k) : one; };
  const auto places = PlacesOf(n.g(), shape, [&](int64_t axis, const Expr& index) {
    const int64_t extent = n.Shape(0)[axis];
    const auto first_of = [&](int64_t k) {
      const Expr start = numbers.EntryOf(n.In(1), k);
      const Expr from_front = MakeSelect(LessThan(start, zero), start + extent, start);
      return Smaller(Larger(from_front, zero), IntConst(extent - 1));
    };
    return numbers.For(axis, first_of, zero) + index * numbers.For(axis, step_of, one);
  });
  return n.g().Map(shape, [&](const Axes& axes) { return ElementAt(n.In(0), places, axes); });
}

absl::StatusOr<Buffer> PaddedByReads(NodeImport& n, const std::string& mode, const Expr& value,
                                     const std::vector<int64_t>& shape) {
  MYCC_RETURN_IF_ERROR(ExpectElements(n, shape));
  const int64_t count = n.Has(3) ? n.In(3)->num_elements() : n.Rank(0);
  MYCC_RETURN_IF_ERROR(ExpectVector(n, 1, 2 * count));
  MYCC_RETURN_IF_ERROR(ExpectVector(n, 3, count));
  const NumbersByAxis numbers(&n, n.Has(3) ? n.In(3) : nullptr, count, n.Rank(0));
  const auto places = PlacesOf(n.g(), shape, [&](int64_t axis, const Expr& index) {
    const Expr zero = IntConst(0);
    const auto pad = [&](int64_t k) { return numbers.EntryOf(n.In(1), k); };
    const Expr before = numbers.For(axis, pad, zero);
    const Expr after = numbers.For(
        axis, [&](int64_t k) { return pad(count + k); }, zero);
    return PaddedPlace(mode, index, n.Shape(0)[axis], before, after);
  });
  return n.g().Map(shape, [&](const Axes& axes) {
    const Expr element = ElementAt(n.In(0), places, axes);
    if (mode != "constant" || axes.empty()) return element;
    Expr is_inside;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Expr is_place = AtMost(IntConst(0), Load(places[i], {axes[i]}));
      is_inside = is_inside == nullptr ? is_place : MakeBinary(Op::kAnd, is_inside, is_place);
    }
    return MakeSelect(is_inside, element, value);
  });
}

}  // namespace mycc::onnx

// Recognizes a 3 x 3 convolution, computes Winograd's matrices, and builds the new stages.
#include "codegen/workload/winograd.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/expr/product.h"

namespace mycc {
namespace {

constexpr int kWindow = 3;

// The points besides 0 and infinity, each with both signs. F(2) has only 1. For F(4) the customary 1 and 2
// have four times the error of these; all products of these are exact.
constexpr double kWinogradPoints[] = {0.75, 1.5};

// Rows of coefficients.
using Matrix = std::vector<std::vector<double>>;
struct Matrices {
  Matrix input, filter, output;  // B^T, G, A^T
};

std::vector<double> PointsOf(int m) {
  if (m == 2) return {0, 1, -1};
  std::vector<double> points = {0};
  for (const double p : kWinogradPoints) points.insert(points.end(), {p, -p});
  return points;
}

// The coefficients, the constant first, of the product of (x - point) over all points but number `without`.
std::vector<double> ProductOf(const std::vector<double>& points, size_t without) {
  std::vector<double> product = {1};
  for (size_t l = 0; l < points.size(); ++l) {
    if (l == without) continue;
    product.push_back(0);
    for (size_t d = product.size(); d-- > 0;)
      product[d] = (d > 0 ? product[d - 1] : 0) - points[l] * product[d];
  }
  return product;
}

Matrices MatricesOf(int m) {
  const std::vector<double> points = PointsOf(m);
  const size_t n = points.size() + 1;
  Matrices result{Matrix(n), Matrix(n, std::vector<double>(kWindow)), Matrix(m, std::vector<double>(n))};
  for (size_t k = 0; k < n; ++k) {
    result.input[k] = ProductOf(points, k);
    result.input[k].resize(n);
    if (k == n - 1) continue;
    double scale = 1;
    for (size_t l = 0; l < points.size(); ++l) scale *= l == k ? 1 : points[k] - points[l];
    double power = 1;
    for (int d = 0; d < std::max(m, kWindow); ++d, power *= points[k]) {
      if (d < kWindow) result.filter[k][d] = power / scale;
      if (d < m) result.output[d][k] = power;
    }
  }
  result.filter[n - 1][kWindow - 1] = 1;
  result.output[m - 1][n - 1] = 1;
  return result;
}

Expr Scaled(double factor, const Expr& term) {
  return factor == 1 ? term : MakeBinary(Op::kMul, FloatConst(factor, term->dtype), term);
}

// sum + factor * term; a null sum is 0.
Expr Plus(const Expr& sum, double factor, const Expr& term) {
  if (factor == 0) return sum;
  if (sum == nullptr) return Scaled(factor, term);
  return factor == -1 ? MakeBinary(Op::kSub, sum, term) : MakeBinary(Op::kAdd, sum, Scaled(factor, term));
}

// Rows of B^T and G for +p and -p differ only in the sign of their odd coefficients. They are written so that
// both share their even and their odd part.
Expr EvenAndOdd(const std::vector<double>& coefficients, const std::vector<Expr>& terms) {
  Expr even, odd;
  double lead = 0;
  for (size_t i = terms.size(); i-- > 0;) {
    if (i % 2 == 0) {
      even = Plus(even, coefficients[i], terms[i]);
    } else if (coefficients[i] != 0) {
      if (lead == 0) lead = coefficients[i];
      odd = Plus(odd, coefficients[i] / lead, terms[i]);
    }
  }
  return odd == nullptr ? even : Plus(even, lead, odd);
}

// Columns of A^T for +p and -p are equal except for signs. They are written so that all rows share the sums
// and differences of such pairs.
Expr PairsOfPoints(const std::vector<double>& coefficients, const std::vector<Expr>& terms) {
  Expr sum = Plus(nullptr, coefficients[0], terms[0]);
  for (size_t k = 1; k + 1 < terms.size(); k += 2) {
    const double sign = coefficients[k] == coefficients[k + 1] ? 1 : -1;
    sum = Plus(sum, coefficients[k], Plus(terms[k], sign, terms[k + 1]));
  }
  return Plus(sum, coefficients.back(), terms.back());
}

// Row number `row` of matrix * terms.
template <typename RowFn>
Expr RowOf(const Matrix& matrix, const Expr& row, const std::vector<Expr>& terms, const RowFn& make_row) {
  Expr result = make_row(matrix.back(), terms);
  for (size_t i = matrix.size() - 1; i-- > 0;) {
    result = MakeSelect(MakeBinary(Op::kEq, row, IntConst(static_cast<int64_t>(i))),
                        make_row(matrix[i], terms), result);
  }
  return result;
}

absl::Status Refused(const Stage& stage, const std::string& why) {
  return Refusal(stage.output->name, " is not a convolution for Winograd: ", why);
}

// The load that a factor consists of, itself or widened to the sum's type; null for other factors.
const Expr* ElementOf(const Expr& factor) {
  if (factor->op == Op::kLoad) return &factor;
  const bool is_widened =
      factor->op == Op::kCast && factor->args[0]->op == Op::kLoad && IsNarrowFloat(factor->args[0]->dtype);
  return is_widened ? &factor->args[0] : nullptr;
}

// Uses of the axis in an operand's index: 0: none; 1: it is the whole index of one dimension; 2: otherwise.
int PlainUses(const ExprNode& load, const Var& axis) {
  int uses = 0;
  for (const Expr& index : load.args) {
    if (UsesVar(index, axis.get())) uses = index->op == Op::kVar && uses == 0 ? 1 : 2;
  }
  return uses;
}

// The dimension of the image that the window's axis moves along with stride and dilation 1; -1: none.
int SlidDim(const ExprNode& image, const Var& axis, const Var& window) {
  int dim = -1;
  for (int d = 0; d < static_cast<int>(image.args.size()); ++d) {
    const Expr& index = image.args[d];
    if (!UsesVar(index, axis.get()) && !UsesVar(index, window.get())) continue;
    const auto along = SplitLinear(index, axis.get());
    if (dim >= 0 || !along || along->coefficient != 1) return -1;
    const auto across = SplitLinear(along->rest, window.get());
    if (!across || across->coefficient != 1 || !IsConstInt(across->rest)) return -1;
    dim = d;
  }
  return dim;
}

// The shape with this factor as the image.
absl::StatusOr<WinogradShape> ShapeWithImage(const Stage& stage, bool image_first) {
  const ExprNode &image = **ElementOf(stage.value->args[image_first ? 0 : 1]),
                 &filter = **ElementOf(stage.value->args[image_first ? 1 : 0]);
  WinogradShape shape{{}, -1, -1, {}, -1, -1, {}, image_first};
  const auto& sums = stage.reduce_axes;
  std::vector<int> windows;
  for (int r = 0; r < static_cast<int>(sums.size()); ++r) {
    if (PlainUses(filter, sums[r]) == 0) return Refused(stage, "a sum is not over the filter's axes");
    (PlainUses(image, sums[r]) == 1 ? shape.channels : windows).push_back(r);
  }
  if (shape.channels.empty() || windows.size() != 2 || sums[windows[0]]->extent != kWindow ||
      sums[windows[1]]->extent != kWindow)
    return Refused(stage, "the sum is not over channels and a window of 3 x 3");
  shape.window_rows = windows[0], shape.window_columns = windows[1];
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    const Var& axis = stage.axes[a];
    const int in_image = PlainUses(image, axis), in_filter = PlainUses(filter, axis);
    if (in_image == 0 && in_filter > 0) {
      shape.filters.push_back(a);
    } else if (in_filter == 0 && (in_image == 1 || (in_image == 0 && axis->extent == 1))) {
      shape.batch.push_back(a);
    } else if (in_filter == 0 && SlidDim(image, axis, sums[shape.window_rows]) >= 0 && shape.rows < 0) {
      shape.rows = a;
    } else if (in_filter == 0 && SlidDim(image, axis, sums[shape.window_columns]) >= 0 && shape.columns < 0) {
      shape.columns = a;
    } else {
      return Refused(stage, absl::StrCat("axis ", axis->name,
                                         " numbers neither images, filters, nor places of a window that "
                                         "moves by 1"));
    }
  }
  if (shape.rows < 0 || shape.columns < 0 || shape.filters.empty())
    return Refused(stage, "it lacks an axis for rows, columns or filters");
  return shape;
}

std::vector<Var> Chosen(const std::vector<Var>& axes, const std::vector<int>& which) {
  std::vector<Var> chosen;
  chosen.reserve(which.size());
  for (const int axis : which) chosen.push_back(axes[axis]);
  return chosen;
}

// Converts a place along several axes to one number (the last axis runs fastest), and back.
Expr Flattened(const std::vector<Var>& axes) {
  Expr number = IntConst(0);
  for (const Var& axis : axes) number = number * axis->extent + VarRef(axis);
  return Simplify(number);
}
void Unflatten(Expr number, const std::vector<Var>& axes, VarMap* places) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    (*places)[axis->get()] = Simplify(Mod(number, (*axis)->extent));
    number = FloorDiv(number, (*axis)->extent);
  }
}

// Makes the stages one by one.
class Rewriting {
 public:
  Rewriting(const Stage& conv, const WinogradShape& shape, int m)
      : conv_(conv),
        shape_(shape),
        images_(Chosen(conv.axes, shape.batch)),
        filters_(Chosen(conv.axes, shape.filters)),
        channels_(Chosen(conv.reduce_axes, shape.channels)),
        m_(m),
        n_(m + kWindow - 1),
        matrices_(MatricesOf(m)) {
    tile_rows_ = CeilDiv(conv.axes[shape.rows]->extent, m);
    tile_columns_ = CeilDiv(conv.axes[shape.columns]->extent, m);
    tiles_ = PointsOf(images_) * tile_rows_ * tile_columns_;
  }

  std::vector<Stage> Run() {
    const int64_t c = PointsOf(channels_), k = PointsOf(filters_);
    const Buffer g = Add(kWinogradFilterRows, {n_, kWindow, c, k}, [&](const auto& at) {
      return Row(matrices_.filter, at[0], kWindow, EvenAndOdd,
                 [&](const Expr& r) { return Filter(r, at[1], at[2], at[3]); });
    });
    const Buffer u = Transformed(kWinogradFilter, g, matrices_.filter);
    const Buffer d = Add(kWinogradWindow, {n_, n_, tiles_, c},
                         [&](const auto& at) { return Window(at[0], at[1], at[2], at[3]); });
    const Buffer e = Add(kWinogradWindowRows, {n_, n_, tiles_, c}, [&](const auto& at) {
      return Row(matrices_.input, at[0], n_, EvenAndOdd, [&](const Expr& a) {
        return Load(d, {a, at[1], at[2], at[3]});
      });
    });
    const Buffer v = Transformed(kWinogradInput, e, matrices_.input);
    const Buffer product = AddProduct(u, v, c, k);
    const Buffer z = Add(kWinogradRows, {m_, n_, tiles_, k}, [&](const auto& at) {
      return Row(matrices_.output, at[0], n_, PairsOfPoints, [&](const Expr& xi) {
        return Load(product, {xi, at[1], at[2], at[3]});
      });
    });
    AddOutput(z);
    return std::move(stages_);
  }

 private:
  template <typename TermFn, typename RowFn>
  static Expr Row(const Matrix& matrix, const Expr& row, int64_t terms, const RowFn& make_row,
                  const TermFn& term) {
    std::vector<Expr> all;
    for (int64_t i = 0; i < terms; ++i) all.push_back(term(IntConst(i)));
    return RowOf(matrix, row, all, make_row);
  }

  // A stage of the convolution's type over axes a0, a1, ..
  template <typename ValueFn>
  Buffer Add(const char* suffix, std::vector<int64_t> extents, const ValueFn& value) {
    Stage stage;
    std::vector<Expr> at;
    for (size_t d = 0; d < extents.size(); ++d) {
      stage.axes.push_back(MakeVar(absl::StrCat("a", d), extents[d]));
      at.push_back(VarRef(stage.axes.back()));
    }
    stage.output =
        MakeBuffer(absl::StrCat(conv_.output->name, suffix), conv_.output->dtype, std::move(extents));
    stage.value = value(at);
    stages_.push_back(std::move(stage));
    return stages_.back().output;
  }

  // The second half of a transform: along the columns of the first half's result.
  Buffer Transformed(const char* suffix, const Buffer& half, const Matrix& matrix) {
    return Add(suffix, {n_, n_, half->shape[2], half->shape[3]}, [&](const auto& at) {
      return Row(matrix, at[1], half->shape[1], EvenAndOdd, [&](const Expr& b) {
        return Load(half, {at[0], b, at[2], at[3]});
      });
    });
  }

  Buffer AddProduct(const Buffer& u, const Buffer& v, int64_t c, int64_t k) {
    const Var sum = MakeVar("r0", c);
    const Buffer product = Add(kWinogradProduct, {n_, n_, tiles_, k}, [&](const auto& at) {
      return MakeBinary(Op::kMul, Load(v, {at[0], at[1], at[2], VarRef(sum)}),
                        Load(u, {at[0], at[1], VarRef(sum), at[3]}));
    });
    stages_.back().reduce = ReduceOp::kSum;
    stages_.back().reduce_axes = {sum};
    return product;
  }

  void AddOutput(const Buffer& z) {
    const Expr row = VarRef(conv_.axes[shape_.rows]), column = VarRef(conv_.axes[shape_.columns]);
    const Expr tile =
        (Flattened(images_) * tile_rows_ + FloorDiv(row, m_)) * tile_columns_ + FloorDiv(column, m_);
    Stage stage = conv_;
    stage.reduce = ReduceOp::kNone;
    stage.reduce_axes.clear();
    stage.value = Row(matrices_.output, Simplify(Mod(column, m_)), n_, PairsOfPoints, [&](const Expr& nu) {
      return Load(z, {Simplify(Mod(row, m_)), nu, Simplify(tile), Flattened(filters_)});
    });
    stages_.push_back(std::move(stage));
  }

  Expr Filter(const Expr& r, const Expr& s, const Expr& c, const Expr& k) const {
    VarMap map = {{conv_.reduce_axes[shape_.window_rows].get(), r},
                  {conv_.reduce_axes[shape_.window_columns].get(), s}};
    Unflatten(c, channels_, &map);
    Unflatten(k, filters_, &map);
    return Simplify(Substitute(conv_.value->args[shape_.image_first ? 1 : 0], map));
  }

  // Element (a, b) of an input tile; 0 if no output needs it.
  Expr Window(const Expr& a, const Expr& b, const Expr& tile, const Expr& c) const {
    const Expr& image = ImageOf(conv_, shape_);
    const Expr row = Simplify(Mod(FloorDiv(tile, tile_columns_), tile_rows_) * m_ + a),
               column = Simplify(Mod(tile, tile_columns_) * m_ + b);
    VarMap map = {{conv_.reduce_axes[shape_.window_rows].get(), IntConst(0)},
                  {conv_.reduce_axes[shape_.window_columns].get(), IntConst(0)},
                  {conv_.axes[shape_.rows].get(), row},
                  {conv_.axes[shape_.columns].get(), column}};
    Unflatten(c, channels_, &map);
    Unflatten(FloorDiv(tile, tile_rows_ * tile_columns_), images_, &map);
    std::vector<Expr> index;
    for (const Expr& i : image->args) index.push_back(Simplify(Substitute(i, map)));
    const auto needed = [](const Expr& i, const Var& axis) {
      return MakeBinary(Op::kLt, i, IntConst(axis->extent + kWindow - 1));
    };
    const Expr inside = Simplify(MakeBinary(Op::kAnd, needed(row, conv_.axes[shape_.rows]),
                                            needed(column, conv_.axes[shape_.columns])));
    const Expr element = MakeCast(conv_.value->dtype, Load(image->buffer, index));
    return IsConstInt(inside, 1) ? element : MakeSelect(inside, element, FloatConst(0, element->dtype));
  }

  const Stage& conv_;
  const WinogradShape& shape_;
  const std::vector<Var> images_, filters_, channels_;
  const int64_t m_, n_;
  const Matrices matrices_;
  int64_t tile_rows_ = 1, tile_columns_ = 1, tiles_ = 1;
  std::vector<Stage> stages_;
};

}  // namespace

absl::StatusOr<WinogradShape> WinogradShapeOf(const Stage& stage) {
  if (stage.reduce != ReduceOp::kSum) return Refused(stage, "it is no sum");
  const DType dtype = stage.value->dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return Refused(stage, "its type is not f32 or f64");
  if (!SumsProducts(stage) || ElementOf(stage.value->args[0]) == nullptr ||
      ElementOf(stage.value->args[1]) == nullptr)
    return Refused(stage,
                   "it does not sum products of two tensors' elements, as they are or widened from "
                   "fewer than 32 bits");
  absl::StatusOr<WinogradShape> shape = ShapeWithImage(stage, true);
  if (shape.ok()) return shape;
  const absl::StatusOr<WinogradShape> other = ShapeWithImage(stage, false);
  return other.ok() ? other : shape;
}

double WinogradError(int m, int64_t channels) {
  const double walk = std::sqrt(static_cast<double>(channels));
  return m == 2 ? 8 + 2 * walk : 28 + 8 * walk;
}

int64_t WinogradShape::Filters(const Stage& stage) const { return PointsOf(stage.axes, filters); }
int64_t WinogradShape::Channels(const Stage& stage) const { return PointsOf(stage.reduce_axes, channels); }

const Expr& ImageOf(const Stage& stage, const WinogradShape& shape) {
  return *ElementOf(stage.value->args[shape.image_first ? 0 : 1]);
}

const Buffer& FilterOf(const Stage& stage, const WinogradShape& shape) {
  return (*ElementOf(stage.value->args[shape.image_first ? 1 : 0]))->buffer;
}

std::vector<Stage> WinogradStages(const Stage& stage, const WinogradShape& shape, int m) {
  return Rewriting(stage, shape, m).Run();
}

}  // namespace mycc

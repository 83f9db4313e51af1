#include "codegen/workload/folded_stride.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/integers.h"
#include "codegen/expr/product.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

// The dimension's index i*f + r, where it is one.
bool AddStride(const Stage& stage, const Expr& index, int dim, FoldedStride* fold) {
  const Linear linear = ToLinear(index);
  if (linear.constant != 0 || linear.terms.size() != 2) return false;
  int axis = -1, reduce_axis = -1;
  int64_t stride = 0;
  for (const auto& [atom, coefficient] : linear.terms) {
    if (const int a = PlaceOf(atom, stage.axes); a >= 0 && coefficient > 1) {
      axis = a;
      stride = coefficient;
    } else if (const int r = PlaceOf(atom, stage.reduce_axes); r >= 0 && coefficient == 1) {
      reduce_axis = r;
    }
  }
  if (axis < 0 || reduce_axis < 0 || stage.reduce_axes[reduce_axis]->extent < stride) return false;
  fold->dims.push_back(dim);
  fold->strides.push_back(stride);
  fold->axes.push_back(axis);
  fold->reduce_axes.push_back(reduce_axis);
  return true;
}

// No other index of the input uses a variable that is folded.
bool AreAlone(const Stage& stage, const ExprNode& x, const FoldedStride& fold) {
  for (size_t f = 0; f < fold.dims.size(); ++f) {
    for (size_t d = 0; d < x.args.size(); ++d) {
      if (static_cast<int>(d) != fold.dims[f] &&
          (UsesVar(x.args[d], stage.axes[fold.axes[f]].get()) ||
           UsesVar(x.args[d], stage.reduce_axes[fold.reduce_axes[f]].get())))
        return false;
    }
  }
  return true;
}

std::optional<FoldedStride> FoldOf(const Stage& stage, int input) {
  const ExprNode &x = *LoadOfFactor(stage.value->args[input]),
                 &w = *LoadOfFactor(stage.value->args[1 - input]);
  FoldedStride fold{.input = input};
  for (size_t d = 0; d < x.args.size(); ++d) AddStride(stage, x.args[d], static_cast<int>(d), &fold);
  if (fold.dims.empty() || !AreAlone(stage, x, fold)) return std::nullopt;
  for (const int r : fold.reduce_axes) {
    if (WholeDim(w, stage.reduce_axes[r]) < 0) return std::nullopt;
  }
  // The channels lie together in the image, and in a dimension of the weights.
  const Expr& last = x.args.back();
  const int channel = PlaceOf(last, stage.reduce_axes);
  if (channel < 0 || WholeDim(x, last->var) < 0 || WholeDim(w, last->var) < 0) return std::nullopt;
  fold.channel_axis = channel;
  fold.channel_dim = static_cast<int>(x.args.size()) - 1;
  fold.channels = last->var->extent;
  return fold;
}

// The offsets u of the folded dimensions, and the channel, in q = (u0*f1 + u1)*C + c.
struct Places {
  std::vector<Expr> offsets;
  Expr channel;
};
Places PlacesIn(const Expr& q, const FoldedStride& fold) {
  Places places{std::vector<Expr>(fold.strides.size()), Mod(q, fold.channels)};
  int64_t step = fold.channels;
  for (size_t f = fold.strides.size(); f-- > 0;) {
    places.offsets[f] = Mod(FloorDiv(q, step), fold.strides[f]);
    step *= fold.strides[f];
  }
  return places;
}

// `from` at these places, and zero where one is at its dimension's end or beyond.
Expr ElementOrZero(const Buffer& from, std::vector<Expr> at, const std::vector<int>& dims) {
  std::vector<Expr> inside;
  for (const int d : dims) inside.push_back(MakeBinary(Op::kLt, at[d], IntConst(from->shape[d])));
  return MakeSelect(JoinConjunction(inside), Load(from, std::move(at)),
                    ReduceIdentity(ReduceOp::kSum, from->dtype));
}

Stage FoldedImage(const Stage& stage, const FoldedStride& fold, const Buffer& image) {
  std::vector<int64_t> shape = image->shape;
  for (size_t f = 0; f < fold.dims.size(); ++f) {
    const int64_t taps = stage.reduce_axes[fold.reduce_axes[f]]->extent;
    shape[fold.dims[f]] = stage.axes[fold.axes[f]]->extent + CeilDiv(taps, fold.strides[f]) - 1;
  }
  shape[fold.channel_dim] = fold.folded();
  Stage folded = StageOver(absl::StrCat(stage.output->name, kFoldedImage), image->dtype, shape);
  std::vector<Expr> at = IndexOf(folded.axes);
  const Places places = PlacesIn(at[fold.channel_dim], fold);
  for (size_t f = 0; f < fold.dims.size(); ++f)
    at[fold.dims[f]] = at[fold.dims[f]] * fold.strides[f] + places.offsets[f];
  at[fold.channel_dim] = places.channel;
  folded.value = ElementOrZero(image, std::move(at), fold.dims);
  return folded;
}

Stage FoldedTaps(const Stage& stage, const FoldedStride& fold, const ExprNode& w) {
  std::vector<int64_t> shape = w.buffer->shape;
  std::vector<int> dims;
  for (size_t f = 0; f < fold.dims.size(); ++f) {
    dims.push_back(WholeDim(w, stage.reduce_axes[fold.reduce_axes[f]]));
    shape[dims[f]] = CeilDiv(shape[dims[f]], fold.strides[f]);
  }
  const int channel = WholeDim(w, stage.reduce_axes[fold.channel_axis]);
  shape[channel] = fold.folded();
  Stage taps = StageOver(absl::StrCat(stage.output->name, kFoldedTaps), w.buffer->dtype, shape);
  std::vector<Expr> at = IndexOf(taps.axes);
  const Places places = PlacesIn(at[channel], fold);
  for (size_t f = 0; f < fold.dims.size(); ++f)
    at[dims[f]] = at[dims[f]] * fold.strides[f] + places.offsets[f];
  at[channel] = places.channel;
  taps.value = ElementOrZero(w.buffer, std::move(at), dims);
  return taps;
}

}  // namespace

int64_t FoldedStride::folded() const {
  int64_t all = channels;
  for (const int64_t stride : strides) all *= stride;
  return all;
}

std::optional<FoldedStride> FindFoldedStride(const Stage& stage) {
  if (!SumsProducts(stage)) return std::nullopt;
  const ExprNode *a = LoadOfFactor(stage.value->args[0]), *b = LoadOfFactor(stage.value->args[1]);
  if (a == nullptr || b == nullptr || a->buffer == b->buffer) return std::nullopt;
  const std::optional<FoldedStride> fold = FoldOf(stage, 0);
  return fold ? fold : FoldOf(stage, 1);
}

absl::StatusOr<std::vector<Stage>> FoldedStrideStages(const Stage& stage) {
  const std::optional<FoldedStride> fold = FindFoldedStride(stage);
  if (!fold) {
    return absl::FailedPreconditionError(absl::StrCat(
        stage.output->name, " is not a convolution that moves by a stride, with channels together"));
  }
  const ExprNode &x = *LoadOfFactor(stage.value->args[fold->input]),
                 &w = *LoadOfFactor(stage.value->args[1 - fold->input]);
  Stage image = FoldedImage(stage, *fold, x.buffer), taps = FoldedTaps(stage, *fold, w);
  Stage sum = stage;
  VarMap shorter;
  const auto replace = [&](int r, int64_t extent) {
    sum.reduce_axes[r] = MakeVar(stage.reduce_axes[r]->name, extent);
    shorter[stage.reduce_axes[r].get()] = VarRef(sum.reduce_axes[r]);
  };
  for (size_t f = 0; f < fold->dims.size(); ++f)
    replace(fold->reduce_axes[f], CeilDiv(stage.reduce_axes[fold->reduce_axes[f]]->extent, fold->strides[f]));
  replace(fold->channel_axis, fold->folded());
  const auto moved = [&](const ExprNode& load) {
    std::vector<Expr> index;
    for (const Expr& i : load.args) index.push_back(Substitute(i, shorter));
    return index;
  };
  std::vector<Expr> at = moved(x);
  for (size_t f = 0; f < fold->dims.size(); ++f)
    at[fold->dims[f]] = VarRef(stage.axes[fold->axes[f]]) + VarRef(sum.reduce_axes[fold->reduce_axes[f]]);
  sum.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
    if (e.get() == &x) return Load(image.output, at);
    if (e.get() == &w) return Load(taps.output, moved(w));
    return nullptr;
  });
  return std::vector<Stage>{std::move(image), std::move(taps), std::move(sum)};
}

}  // namespace mycc

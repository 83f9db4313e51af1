#include "codegen/onnx/sampling.h"

#include "codegen/onnx/elementwise.h"

namespace mycc::onnx {

std::vector<Buffer> FloorsOf(GraphBuilder& g, const Places& places) {
  std::vector<Buffer> floors;
  for (const Buffer& place : places) {
    floors.push_back(g.Map(place->shape, [&](const Axes& axes) {
      return MakeCast(DType::kI32, MakeUnary(Op::kFloor, Load(place, axes)));
    }));
  }
  return floors;
}

Expr LoadClamped(const Buffer& image, const Axes& outer, const std::vector<Expr>& at) {
  Axes from = outer;
  for (const Expr& index : at) {
    const int64_t extent = image->shape[from.size()];
    from.push_back(ClampTo(index, IntConst(0), IntConst(extent - 1)));
  }
  return Load(image, std::move(from));
}

Expr LoadOrZero(const Buffer& image, const Axes& outer, const std::vector<Expr>& at) {
  Expr is_inside = BoolConst(true);
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t extent = image->shape[outer.size() + i];
    const Expr inside = MakeBinary(Op::kAnd, AtMost(IntConst(0), at[i]), LessThan(at[i], IntConst(extent)));
    is_inside = MakeBinary(Op::kAnd, is_inside, inside);
  }
  const Expr load = LoadClamped(image, outer, at);
  return MakeSelect(is_inside, load, NumberLike(load, 0));
}

std::vector<Expr> LoadEach(const std::vector<Buffer>& tensors, const Axes& at) {
  std::vector<Expr> elements;
  for (const Buffer& tensor : tensors) elements.push_back(Load(tensor, at));
  return elements;
}

std::vector<Expr> LoadEachIndex(const std::vector<Buffer>& tensors, const Axes& at) {
  std::vector<Expr> elements = LoadEach(tensors, at);
  for (Expr& element : elements) element = MakeCast(DType::kI64, element);
  return elements;
}

Expr Interpolated(const std::vector<Expr>& place, const std::vector<Expr>& low,
                  const std::function<Expr(const std::vector<Expr>&)>& load) {
  Expr sum;
  for (size_t corner = 0; corner < size_t{1} << place.size(); ++corner) {
    std::vector<Expr> index;
    Expr weight;
    for (size_t i = 0; i < place.size(); ++i) {
      const bool is_upper = (corner >> i & 1) != 0;
      const Expr share = place[i] - MakeUnary(Op::kFloor, place[i]);
      index.push_back(low[i] + static_cast<int64_t>(is_upper));
      const Expr factor = is_upper ? share : NumberLike(share, 1) - share;
      weight = weight == nullptr ? factor : weight * factor;
    }
    const Expr term = MakeCast(weight->dtype, load(index)) * weight;
    sum = sum == nullptr ? term : sum + term;
  }
  return sum;
}

}  // namespace mycc::onnx

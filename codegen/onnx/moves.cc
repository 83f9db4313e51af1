#include "codegen/onnx/moves.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// The parts `first` to `end` of a joined tensor, read by halving, so that many parts nest few levels.
Expr JoinedElement(const std::vector<Buffer>& parts, const std::vector<int64_t>& offsets, size_t first,
                   size_t end, int64_t axis, const Axes& axes) {
  if (end - first == 1) {
    Axes at = axes;
    at[axis] = axes[axis] - offsets[first];
    return Load(parts[first], std::move(at));
  }
  const size_t middle = first + (end - first) / 2;
  return MakeSelect(MakeBinary(Op::kLt, axes[axis], IntConst(offsets[middle])),
                    JoinedElement(parts, offsets, first, middle, axis, axes),
                    JoinedElement(parts, offsets, middle, end, axis, axes));
}

// Known indices as an affine function of their places: first + step * place.
struct Progression {
  int64_t first = 0, step = 0;
};

std::optional<Progression> ProgressionOf(const std::vector<int64_t>& indices) {
  Progression p{indices[0], indices.size() > 1 ? indices[1] - indices[0] : 0};
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != p.first + p.step * static_cast<int64_t>(i)) return std::nullopt;
  }
  return p;
}

IndexRead ReadOfProgression(Progression p, const std::vector<int64_t>& shape) {
  return [p, shape](const Axes& axes) {
    Expr place = IntConst(0);
    for (size_t i = 0; i < shape.size(); ++i) place = place * shape[i] + axes[i];
    return place * p.step + p.first;
  };
}

}  // namespace

Expr LiteralOf(DType dtype, const Scalar& number) {
  return IsFloat(dtype) ? FloatConst(number.f, dtype) : IntConst(number.i, dtype);
}

absl::Status ExpectSoundShape(const NodeImport& n, const std::string& what,
                              const std::vector<int64_t>& shape) {
  const std::string problem = ShapeProblem(shape);
  return problem.empty() ? absl::OkStatus() : n.Refuse(absl::StrCat(what, " ", problem));
}

Buffer Moved(GraphBuilder& g, const Buffer& source, const std::vector<int64_t>& shape,
             const IndexFunction& indices) {
  return g.Map(shape, [&](const Axes& axes) { return Load(source, indices(axes)); });
}

Buffer Permuted(GraphBuilder& g, const Buffer& source, const std::vector<int64_t>& order) {
  std::vector<int64_t> shape, long_axes;
  for (const int64_t axis : order) {
    shape.push_back(source->shape[axis]);
    if (source->shape[axis] != 1) long_axes.push_back(axis);
  }
  if (std::ranges::is_sorted(long_axes)) return g.AddReshape(source, shape);
  return Moved(g, source, shape, [&](const Axes& axes) {
    Axes at(axes.size());
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = axes[i];
    return at;
  });
}

Buffer Sliced(GraphBuilder& g, const Buffer& source, int64_t axis, int64_t first, int64_t step,
              int64_t count) {
  std::vector<int64_t> shape = source->shape;
  shape[axis] = count;
  return Moved(g, source, shape, [&](const Axes& axes) {
    Axes at = axes;
    at[axis] = axes[axis] * step + first;
    return at;
  });
}

Buffer Joined(GraphBuilder& g, std::vector<Buffer> parts, int64_t axis) {
  MYCC_CHECK(!parts.empty()) << "no parts";
  if (parts.size() > 1) {
    const Buffer first = parts[0];
    std::erase_if(parts, [&](const Buffer& part) { return part->shape[axis] == 0; });
    if (parts.empty()) return first;
  }
  if (parts.size() == 1) return parts[0];
  std::vector<int64_t> shape = parts[0]->shape, offsets;
  shape[axis] = 0;
  for (const Buffer& part : parts) {
    offsets.push_back(shape[axis]);
    shape[axis] += part->shape[axis];
  }
  return g.Map(shape,
               [&](const Axes& axes) { return JoinedElement(parts, offsets, 0, parts.size(), axis, axes); });
}

Buffer Stacked(GraphBuilder& g, std::vector<Buffer> parts, int64_t axis) {
  for (Buffer& part : parts) part = WithAxis(g, part, axis);
  return Joined(g, std::move(parts), axis);
}

Buffer WithAxis(GraphBuilder& g, const Buffer& source, int64_t axis) {
  std::vector<int64_t> shape = source->shape;
  shape.insert(shape.begin() + axis, 1);
  return g.AddReshape(source, std::move(shape));
}

Buffer WithoutAxis(GraphBuilder& g, const Buffer& source, int64_t axis) {
  std::vector<int64_t> shape = source->shape;
  shape.erase(shape.begin() + axis);
  return g.AddReshape(source, std::move(shape));
}

absl::StatusOr<IndexRead> IndicesOf(NodeImport& n, size_t i, const Buffer& indices, int64_t extent) {
  const NDArray* value = n.g().ValueOf(indices);
  if (value == nullptr || value->num_elements() == 0) {
    return [indices, extent](const Axes& axes) {
      const Expr index = MakeCast(DType::kI64, Load(indices, axes));
      const Expr low = MakeBinary(Op::kMax, index, IntConst(-extent));
      return Mod(MakeBinary(Op::kMin, low, IntConst(extent - 1)), extent);
    };
  }
  std::vector<int64_t> known(value->num_elements());
  NDArray from_start = NDArray::Zeros(DType::kI64, value->shape);
  for (size_t k = 0; k < known.size(); ++k) {
    known[k] = value->Get(k).i;
    if (known[k] < -extent || known[k] >= extent) {
      return n.Refuse(absl::StrCat("input ", i, " has the index ", known[k], " of an axis of ", extent,
                                   " elements; expected ", -extent, " to ", extent - 1));
    }
    if (known[k] < 0) known[k] += extent;
    from_start.Set(k, Scalar{0, known[k]});
  }
  if (const auto progression = ProgressionOf(known)) return ReadOfProgression(*progression, value->shape);
  const Buffer table = n.g().AddConstant(std::move(from_start));
  return [table, extent](const Axes& axes) {
    const Expr low = MakeBinary(Op::kMax, Load(table, axes), IntConst(0));
    return MakeBinary(Op::kMin, low, IntConst(extent - 1));
  };
}

}  // namespace mycc::onnx

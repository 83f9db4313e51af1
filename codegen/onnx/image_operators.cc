// Operators on images that move elements, and those that sample them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/sampling.h"
#include "codegen/onnx/windows.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// blocksize, which must divide the extents.
absl::StatusOr<int64_t> BlockSize(const NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 4, 4));
  const int64_t block = n.Int("blocksize", 0);
  if (block < 1 || block > (int64_t{1} << 20))
    return n.Refuse(absl::StrCat("blocksize is ", block, "; expected 1 or more"));
  return block;
}

absl::Status DepthToSpace(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const int64_t block, BlockSize(n));
  const Buffer x = n.In(0);
  const std::string mode = n.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.Refuse(absl::StrCat("mode is `", mode, "`; expected DCR or CRD"));
  if (x->shape[1] % (block * block) != 0)
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(x), "; expected channels that are a multiple of ",
                                 block * block));
  const int64_t channels = x->shape[1] / (block * block);
  const std::vector<int64_t> shape = {x->shape[0], channels, x->shape[2] * block, x->shape[3] * block};
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the result is ", problem));
  n.Set(0,
        n.g().Map(shape,
                  [&](const Axes& a) {
                    const Expr place = Mod(a[2], block) * block + Mod(a[3], block);
                    const Expr channel =
                        mode == "DCR" ? place * channels + a[1] : a[1] * (block * block) + place;
                    return Load(x, {a[0], channel, FloorDiv(a[2], block), FloorDiv(a[3], block)});
                  }),
        n.Typed(0).type);
  return absl::OkStatus();
}

absl::Status SpaceToDepth(NodeImport& n) {
  MYCC_ASSIGN_OR_RETURN(const int64_t block, BlockSize(n));
  const Buffer x = n.In(0);
  if (x->shape[2] % block != 0 || x->shape[3] % block != 0)
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(x),
                                 "; expected rows and columns that are a multiple of ", block));
  const int64_t channels = x->shape[1];
  const std::vector<int64_t> shape = {x->shape[0], channels * block * block, x->shape[2] / block,
                                      x->shape[3] / block};
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the result is ", problem));
  n.Set(0,
        n.g().Map(shape,
                  [&](const Axes& a) {
                    const Expr place = FloorDiv(a[1], std::max<int64_t>(channels, 1));
                    return Load(x, {a[0], Mod(a[1], std::max<int64_t>(channels, 1)),
                                    a[2] * block + FloorDiv(place, block), a[3] * block + Mod(place, block)});
                  }),
        n.Typed(0).type);
  return absl::OkStatus();
}

// The numbers of a constant input, or those that `declared` gives.
absl::StatusOr<std::vector<int64_t>> KnownOrDeclared(const NodeImport& n, size_t i,
                                                     const std::vector<int64_t>& declared) {
  if (n.Value(i) == nullptr && !declared.empty()) return declared;
  return n.ConstantInts(i);
}

// The place in [-1, 1] of element `i` of an axis.
Expr NormalizedPlace(const Expr& i, int64_t extent, bool align_corners, DType dtype) {
  const double step = 2.0 / static_cast<double>(align_corners ? std::max<int64_t>(extent - 1, 1) : extent);
  const double start = align_corners ? -1 : -1 + step / 2;
  return MakeCast(dtype, i) * FloatConst(step, dtype) + FloatConst(start, dtype);
}

absl::Status AffineGrid(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 3));
  const Buffer theta = n.In(0);
  const int64_t rank = theta->shape[1];
  if ((rank != 2 && rank != 3) || theta->shape[2] != rank + 1)
    return n.Refuse(absl::StrCat("the matrices are ", TypeText(theta), "; expected [n,2,3] or [n,3,4]"));
  // The grid [n, spatial..., rank] is declared, and the size is [n, c, spatial...].
  std::vector<int64_t> declared;
  if (const std::vector<int64_t>* grid = n.DeclaredShape(0); grid != nullptr && !grid->empty()) {
    declared = {(*grid)[0], 1};
    declared.insert(declared.end(), grid->begin() + 1, grid->end() - 1);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> size, KnownOrDeclared(n, 1, declared));
  if (size.size() != static_cast<size_t>(rank) + 2 || size[0] != theta->shape[0])
    return n.Refuse(absl::StrCat("size is ", ShapeText(size), "; expected ", rank + 2, " extents, the first ",
                                 theta->shape[0]));
  std::vector<int64_t> shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(rank);
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the grid is ", problem));
  const bool align_corners = n.Int("align_corners", 0) != 0;
  const DType dtype = SumType(theta->dtype);
  n.Set(0, n.g().Map(shape, [&](const Axes& a) {
    const auto element = [&](int64_t column) {
      return MakeCast(dtype, Load(theta, {a[0], a.back(), IntConst(column)}));
    };
    Expr sum = element(rank);
    for (int64_t column = 0; column < rank; ++column) {
      // Columns begin with the last spatial axis.
      const int64_t axis = rank - column;
      sum = sum + element(column) * NormalizedPlace(a[axis], shape[axis], align_corners, dtype);
    }
    return MakeCast(theta->dtype, sum);
  }));
  return absl::OkStatus();
}

struct ColumnBlocks {
  std::vector<int64_t> image, strides, dilations, before, after;
  int64_t taps = 1;                   // of a block
  int64_t blocks = 1;                 // all of them
  std::vector<Expr> block, per_axis;  // the block's extents, and the number of blocks along each axis: i64
};

// The block that lies with a tap on each element of the image: i32[tap, image...], -1 without one.
Buffer BlockTable(GraphBuilder& g, const ColumnBlocks& c) {
  std::vector<int64_t> shape = {c.taps};
  shape.insert(shape.end(), c.image.begin(), c.image.end());
  return g.Map(shape, [&](const Axes& a) {
    Expr is_there = BoolConst(true), number = IntConst(0);
    std::vector<Expr> tap(c.image.size());
    Expr rest = a[0];
    for (size_t i = c.image.size(); i-- > 0;) {
      tap[i] = MakeBinary(Op::kMod, rest, c.block[i]);
      rest = MakeBinary(Op::kFloorDiv, rest, c.block[i]);
    }
    for (size_t i = 0; i < c.image.size(); ++i) {
      const Expr place = a[i + 1] + c.before[i] - tap[i] * c.dilations[i];
      const Expr block = FloorDiv(place, c.strides[i]);
      for (const Expr& condition : {AtMost(IntConst(0), place), LessThan(block, c.per_axis[i]),
                                    MakeBinary(Op::kEq, Mod(place, c.strides[i]), IntConst(0))})
        is_there = MakeBinary(Op::kAnd, is_there, condition);
      number = number * c.per_axis[i] + block;
    }
    return MakeCast(DType::kI32, MakeSelect(is_there, number, IntConst(-1)));
  });
}

absl::Status SetColumnBlocks(const NodeImport& n, ColumnBlocks* c) {
  std::vector<int64_t> declared;
  if (const std::vector<int64_t>* shape = n.DeclaredShape(0); shape != nullptr && shape->size() > 2)
    declared.assign(shape->begin() + 2, shape->end());
  MYCC_ASSIGN_OR_RETURN(c->image, KnownOrDeclared(n, 1, declared));
  const size_t rank = c->image.size();
  if (rank == 0 || n.Shape(2) != std::vector<int64_t>{static_cast<int64_t>(rank)})
    return n.Refuse(absl::StrCat("image_shape is ", ShapeText(c->image), " and block_shape is ",
                                 TypeText(n.In(2)), "; expected as many extents"));
  MYCC_ASSIGN_OR_RETURN(c->strides, WindowInts(n, "strides", rank, 1));
  MYCC_ASSIGN_OR_RETURN(c->dilations, WindowInts(n, "dilations", rank, 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, WindowInts(n, "pads", 2 * rank, 0));
  c->before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  c->after.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  const NDArray* known = n.Value(2);
  for (size_t i = 0; i < rank; ++i) {
    const auto index = static_cast<int64_t>(i);
    const Expr block = known != nullptr ? IntConst(known->Get(index).i)
                                        : MakeCast(DType::kI64, Load(n.In(2), {IntConst(index)}));
    const Expr reach = (block - IntConst(1)) * c->dilations[i] + 1;
    const Expr room = IntConst(c->image[i] + c->before[i] + c->after[i]) - reach;
    c->block.push_back(block);
    c->per_axis.push_back(FloorDiv(room, c->strides[i]) + 1);
  }
  return absl::OkStatus();
}

absl::Status Col2Im(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 3, 3));
  ColumnBlocks c;
  MYCC_RETURN_IF_ERROR(SetColumnBlocks(n, &c));
  const Buffer x = n.In(0);
  // The channels are declared where the block is a value of the call.
  if (n.Value(2) != nullptr) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> block, n.ConstantInts(2));
    for (const int64_t extent : block) c.taps *= std::clamp<int64_t>(extent, 0, kMostWindowExtent);
  } else if (const std::vector<int64_t>* shape = n.DeclaredShape(0); shape != nullptr && (*shape)[1] > 0) {
    c.taps = x->shape[1] / (*shape)[1];
  } else {
    return n.NotKnown(2);
  }
  c.blocks = x->shape[2];
  if (c.taps < 1 || x->shape[1] % c.taps != 0 || x->num_elements() == 0)
    return n.Refuse(absl::StrCat("input 0 is ", TypeText(x), " with blocks of ", c.taps,
                                 " elements; expected channels that are a multiple"));
  std::vector<int64_t> shape = {x->shape[0], x->shape[1] / c.taps};
  shape.insert(shape.end(), c.image.begin(), c.image.end());
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the image is ", problem));
  const Buffer table = BlockTable(n.g(), c);
  const DType dtype = SumType(x->dtype);
  const Buffer sums = n.g().Reduce(ReduceOp::kSum, shape, {c.taps}, [&](const Axes& a, const Axes& r) {
    Axes at = {r[0]};
    at.insert(at.end(), a.begin() + 2, a.end());
    const Expr block = MakeCast(DType::kI64, Load(table, std::move(at)));
    const Expr value = MakeCast(
        dtype, Load(x, {a[0], a[1] * c.taps + r[0], ClampTo(block, IntConst(0), IntConst(c.blocks - 1))}));
    return MakeSelect(LessThan(block, IntConst(0)), NumberLike(value, 0), value);
  });
  n.Set(0, n.g().Cast(sums, x->dtype));
  return absl::OkStatus();
}

constexpr Operator kImageTable[] = {
    {"AffineGrid", AffineGrid, 20},       {"Col2Im", Col2Im, 18},           {"DepthToSpace", DepthToSpace},
    {"GridSample", ImportGridSample, 16}, {"MaxRoiPool", ImportMaxRoiPool}, {"RoiAlign", ImportRoiAlign, 10},
    {"SpaceToDepth", SpaceToDepth},
};

}  // namespace

std::span<const Operator> ImageOperators() { return kImageTable; }

}  // namespace mycc::onnx

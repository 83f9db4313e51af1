#include "tuner/space/cpu_products.h"

#include <algorithm>
#include <optional>

namespace mycc {
namespace {

// The rows that pay for panels of the vector operand that are made at run time, and for tile registers, where
// a row is one of 16.
constexpr int64_t kRowsForPanels = 4, kRowsForTiles = 8;

// Elements that make a group worth its instruction: of four, three (the colours of an image). A tile takes as
// long for any depth, and for a quarter of its own it still is twice as fast as vectors.
constexpr int kFewestInGroup = 3, kPartOfTile = 4;

int64_t RowsOf(const Contraction& c, const Stage& stage) { return PointsOf(stage.axes, c.rows); }

std::optional<int64_t> StrideOf(const Operand& operand, const Var& var) {
  const ExprNode load{Op::kLoad, operand.buffer->dtype, operand.index, {}, nullptr, operand.buffer};
  return StrideOf(load, var);
}

// The lanes are contiguous in the vector operand, or it can be packed so that they are: ahead of time, or
// where enough rows read the panels that packing makes.
bool HasLanes(const Contraction& c, const Stage& stage, bool must_pack) {
  if (c.cols.empty()) return false;
  const Var& lane = stage.axes[c.cols.back()];
  if (lane->extent < 4) return false;
  if (!must_pack && StrideOf(c.vector, lane) == 1) return true;
  if (c.vector.is_const && c.vector.UnitDim(lane) >= 0) return true;
  return c.vector.PlainDim(lane) >= 0 && RowsOf(c, stage) >= kRowsForPanels;
}

// Groups of few columns leave most lanes empty, and a window that slides along the lanes for one row alone
// (depthwise convolution of NCHW) loads its vectors once for each multiply-add: the tile rule does better.
bool LanesPay(const Contraction& c, const Stage& stage, const Target& target) {
  const int64_t lanes = VectorBytes(target) / DTypeBytes(stage.value->dtype);
  const Var& lane = stage.axes[c.cols.back()];
  if (c.groups && lane->extent * 2 <= lanes) return false;
  return RowsOf(c, stage) > 1 || c.vector.UnitDim(lane) < 0 || c.vector.PlainDim(lane) >= 0;
}

// Groups lie along one axis: the longest of those along which the scalar operand is contiguous, or, where
// there is none, can be packed to be.
std::optional<CpuProduct> InGroups(const Contraction& c, const Stage& stage, const Instruction& instruction) {
  CpuProduct product{c, instruction};
  int64_t longest = 0;
  for (const bool packed : {false, true}) {
    if (packed && (c.rows.empty() || c.scalar.PlainDim(stage.axes[c.rows.back()]) < 0)) break;
    for (int k = 0; k < static_cast<int>(stage.reduce_axes.size()); ++k) {
      const Var& axis = stage.reduce_axes[k];
      const bool lies = packed ? c.scalar.PlainDim(axis) >= 0 : StrideOf(c.scalar, axis) == 1;
      if (!lies || c.vector.PlainDim(axis) < 0 || axis->extent <= longest) continue;
      longest = axis->extent;
      product.depth_axis = k;
      product.packs_scalar = packed;
    }
    if (longest > 0) break;
  }
  const bool tiles = instruction.kind == InstructionClass::kTile;
  const int64_t fewest = tiles ? instruction.k / kPartOfTile : std::min(instruction.group, kFewestInGroup);
  if (longest < fewest || (tiles && RowsOf(c, stage) < kRowsForTiles)) return std::nullopt;
  return product;
}

std::vector<CpuProduct> ProductsOfWay(const Contraction& c, const Stage& stage, const Target& target) {
  std::vector<CpuProduct> products;
  for (const Instruction& instruction :
       CpuInstructionsFor(c.scalar.buffer->dtype, c.vector.buffer->dtype, stage.output->dtype, target)) {
    if (!HasLanes(c, stage, /*must_pack=*/instruction.group > 1) || !LanesPay(c, stage, target)) continue;
    if (instruction.group == 1) {
      products.push_back({c, instruction});
    } else if (const auto product = InGroups(c, stage, instruction)) {
      products.push_back(*product);
    }
  }
  // Rows enough for tile registers leave nothing for the others; else the first of them is the fastest.
  const bool few = !products.empty() && products[0].instruction.kind == InstructionClass::kTile &&
                   RowsOf(c, stage) < products[0].instruction.m;
  if (products.size() > 1) products.resize(few ? 2 : 1);
  return products;
}

}  // namespace

bool LiesAlongDepth(const Contraction& c, const Stage& stage) {
  constexpr int64_t kFewest = 64;
  const Var& depth = stage.reduce_axes.back();
  return !c.OfOneTensor() && !c.groups && c.phases.empty() && !c.cols.empty() && depth->extent >= kFewest &&
         !c.scalar.is_tf32 && !c.vector.is_tf32 && StrideOf(c.scalar, depth) == 1 &&
         StrideOf(c.vector, depth) == 1;
}

bool HasFewRowsForPanels(const Contraction& c, const Stage& stage) {
  constexpr int64_t kMost = 16;
  return RowsOf(c, stage) <= kMost;
}

std::vector<CpuProduct> CpuProductsOf(const Contraction& c, const Stage& stage, const Target& target) {
  if (c.OfOneTensor() || c.scalar.is_tf32 || c.vector.is_tf32) return {};
  std::vector<CpuProduct> products = ProductsOfWay(c, stage, target);
  const Contraction crosswise = Crosswise(c);
  if (!crosswise.vector.is_const) return products;
  for (CpuProduct& product : ProductsOfWay(crosswise, stage, target)) products.push_back(std::move(product));
  return products;
}

Buffer SignToChange(const Contraction& c, const Stage& stage, const Target& target) {
  if (c.scalar.buffer->dtype != c.vector.buffer->dtype) return nullptr;
  const std::vector<CpuProduct> products = CpuProductsOf(c, stage, target);
  const bool unlike =
      std::ranges::any_of(products, [](const CpuProduct& product) { return product.instruction.u8_by_i8(); });
  if (!unlike) return nullptr;
  return c.scalar.is_const && !c.vector.is_const ? c.vector.buffer : c.scalar.buffer;
}

}  // namespace mycc

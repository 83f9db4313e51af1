#include "tuner/space/rules/cuda/stream_biases.h"

#include <algorithm>

#include "codegen/expr/affine.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct TileAxes {
  Var row, key;
};
TileAxes AxesOf(const Anatomy& anatomy, const StreamChain& chain, int tile) {
  const std::vector<Var>& axes = anatomy.stage(tile).axes;
  return {axes[chain.dim_of_axis[chain.row_axes.back()]], axes[chain.stream_dim]};
}

bool IsAxis(const Expr& index, const Var& axis) { return index->op == Op::kVar && index->var == axis; }

bool IsTileOf(const ExprNode& load, const TileAxes& axes) {
  const auto is_free = [&](const Expr& index) {
    return !UsesVar(index, axes.key.get()) && !UsesVar(index, axes.row.get());
  };
  const auto is_row = [&](const Expr& index) { return IsAxis(index, axes.row); };
  const Linear keys = ToLinear(load.args.back());
  const bool runs_along_keys =
      keys.CoefficientOf(axes.key.get()) == 1 && !UsesVar(load.args.back(), axes.row.get()) &&
      std::ranges::all_of(keys.terms, [](const auto& term) { return term.first->op == Op::kVar; });
  const auto last = load.args.end() - 1;
  return runs_along_keys && std::count_if(load.args.begin(), last, is_row) == 1 &&
         std::all_of(load.args.begin(), last,
                     [&](const Expr& index) { return is_row(index) || is_free(index); });
}

}  // namespace

std::vector<TileBias> TileBiasesOf(const Anatomy& anatomy, const StreamChain& chain) {
  std::vector<TileBias> biases;
  for (const int tile : KeptTiles(anatomy, chain)) {
    for (const ExprNode* load : BiasesOf(anatomy, chain, tile)) {
      const bool is_known = std::ranges::any_of(biases, [&](const TileBias& other) {
        return other.tile == tile && other.load->buffer == load->buffer;
      });
      if (!is_known && IsTileOf(*load, AxesOf(anatomy, chain, tile))) biases.push_back({tile, load});
    }
  }
  return biases;
}

bool CanFetchInTiles(const Anatomy& anatomy, const StreamChain& chain, const TileBias& bias, int64_t rows,
                     int64_t keys) {
  const TileAxes axes = AxesOf(anatomy, chain, bias.tile);
  const BufferNode& tensor = *bias.load->buffer;
  constexpr int kMostRank = 5;
  if (tensor.rank() > kMostRank) return false;
  for (int d = 0; d < tensor.rank(); ++d) {
    if (d + 1 < tensor.rank() && tensor.stride(d) * DTypeBytes(tensor.dtype) % kAccessBytes != 0)
      return false;
    const Expr& index = bias.load->args[d];
    const bool is_row = IsAxis(index, axes.row);
    if (!is_row && d + 1 < tensor.rank()) continue;
    const Var& axis = is_row ? axes.row : axes.key;
    const bool ends_there = IsAxis(index, axis) && tensor.shape[d] == axis->extent;
    if (!ends_there && axis->extent % (is_row ? rows : keys) != 0) return false;
  }
  return true;
}

bool BiasesDependOn(const Anatomy& anatomy, const StreamChain& chain, const std::vector<TileBias>& biases,
                    int axis) {
  return std::ranges::any_of(biases, [&](const TileBias& bias) {
    const Var& of_tile = anatomy.stage(bias.tile).axes[chain.dim_of_axis[axis]];
    return std::ranges::any_of(bias.load->args,
                               [&](const Expr& index) { return UsesVar(index, of_tile.get()); });
  });
}

}  // namespace mycc

#include "tuner/space/rules/dot_tile.h"

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

// A tile's own loops.
std::vector<std::string> RowsAndColumns(const DotTile& tile) {
  std::vector<std::string> loops = {SubLoop(tile.n, 1)};
  if (!tile.m.empty()) loops.insert(loops.begin(), SubLoop(tile.m, 1));
  return loops;
}

std::string LanesOf(const DotTile& tile) { return absl::StrCat(tile.block, ".v"); }

// The nest of partial sums, under the loop that goes over the tiles.
void EmitPartial(const DotTile& tile, TraceBuilder* b) {
  const auto partial = [&](const std::string& loop) {
    return absl::StrCat(tile.block, ".rf", loop.substr(tile.block.size()));
  };
  std::vector<std::string> order, inner;
  for (const std::string& loop : tile.outer) order.push_back(partial(loop));
  for (const std::string& loop : tile.depths) order.push_back(partial(loop));
  if (!tile.m.empty()) inner.push_back(partial(tile.m));
  inner.push_back(partial(tile.n));
  std::string lane = partial(LanesOf(tile));
  if (tile.vectors > 1) {
    b->Split(lane, {tile.lanes});
    inner.push_back(absl::StrCat(lane, ".0"));
    absl::StrAppend(&lane, ".1");
  }
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(lane);
  b->Reorder(order);
  b->BindAll(inner, "unroll");
  b->Bind(lane, "vector");
}

}  // namespace

bool FitsDotRegisters(int64_t mr, int64_t nr, int64_t vectors, int64_t registers) {
  return mr * nr * vectors + mr + nr <= registers;
}

void FactorDotTile(const DotTile& tile, TraceBuilder* b) {
  b->RFactor(tile.depths.back(), tile.vectors * tile.lanes);
}

std::vector<std::string> CutDotTile(const DotTile& tile, TraceBuilder* b) {
  b->Split(tile.n, {tile.nr});
  std::vector<std::string> blocks = tile.outer;
  blocks.push_back(SubLoop(tile.n, 0));
  if (!tile.m.empty()) {
    b->Split(tile.m, {tile.mr});
    blocks.push_back(SubLoop(tile.m, 0));
  }
  std::vector<std::string> order = blocks;
  const std::vector<std::string> inner = RowsAndColumns(tile);
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(LanesOf(tile));
  b->Reorder(order);
  return blocks;
}

void EmitDotPartials(const DotTile& tile, const std::vector<std::string>& blocks, TraceBuilder* b) {
  b->ComputeAt(absl::StrCat(tile.block, ".rf"), blocks.back());
  EmitPartial(tile, b);
  b->CacheWrite(tile.block, blocks.back());
}

void BindDotTile(const DotTile& tile, TraceBuilder* b) {
  b->Bind(LanesOf(tile), "vector");
  for (const char* suffix : {"", ".i", ".w"}) {
    for (const std::string& loop : RowsAndColumns(tile))
      b->Bind(absl::StrCat(tile.block, suffix, loop.substr(tile.block.size())), "unroll");
  }
}

}  // namespace mycc

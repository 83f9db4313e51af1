#include "tuner/space/rules/contraction_bands.h"

#include <algorithm>
#include <limits>

#include "tuner/space/rules/contraction_nest.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// That are beside each other: of a batch, and of groups.
int64_t ImagesOf(const ContractionPlan& plan) {
  int64_t images = 1;
  for (const int a : plan.way().batch) images *= plan.Extent(a);
  for (size_t i = 0; i + 2 < plan.way().rows.size(); ++i) images *= plan.Extent(plan.way().rows[i]);
  return images;
}

}  // namespace

std::vector<int64_t> BandChoices(const ContractionPlan& plan) {
  if (plan.prologue.empty() || plan.way().rows.size() < 2) return {0};
  const int64_t threads = plan.target.threads;
  std::vector<int64_t> choices = {0, 1, threads, 2 * threads, 4 * threads};
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  return choices;
}

int64_t BandTiles(const ContractionPlan& plan, const Values& v) {
  if (v.at("block_order") == kColumnsOutermost)
    return CeilDiv(CeilDiv(plan.N(), v.at("nv") * plan.lanes), v.at("nt"));
  return CeilDiv(plan.Extent(plan.way().rows.end()[-2]), v.at("lines"));
}

int64_t TilesInBand(int64_t tiles, int64_t bands) {
  const int64_t in_band = CeilDiv(tiles, bands);
  return CeilDiv(tiles, in_band) == bands ? in_band : 0;
}

int64_t BestBands(const ContractionPlan& plan, int64_t tiles) {
  constexpr double kTilesForABand = 0.5;  // its borders are copied twice
  int64_t best = 0;
  double best_done = std::numeric_limits<double>::infinity();
  for (const int64_t bands : BandChoices(plan)) {
    const int64_t in_band = bands == 0 ? 0 : TilesInBand(tiles, bands);
    const int64_t all = ImagesOf(plan) * bands;
    if (in_band == 0 || all < plan.target.threads) continue;
    const double done = static_cast<double>(CeilDiv(all, plan.target.threads)) *
                        (static_cast<double>(in_band) + kTilesForABand);
    if (done >= best_done) continue;
    best = bands;
    best_done = done;
  }
  return best;
}

}  // namespace mycc

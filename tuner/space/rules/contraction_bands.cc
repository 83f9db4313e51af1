#include "tuner/space/rules/contraction_bands.h"

#include <algorithm>
#include <cmath>

#include "tuner/space/rules/contraction_nest.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// The images of a batch and of groups: they lie beside each other, each with lines of its own.
int64_t ImagesOf(const ContractionPlan& plan) {
  int64_t images = 1;
  for (const int a : plan.way().batch) images *= plan.Extent(a);
  for (size_t i = 0; i + 2 < plan.way().rows.size(); ++i) images *= plan.Extent(plan.way().rows[i]);
  return images;
}

// No window reaches from one image, or part of the columns, into another: their copies do not overlap.
bool HasImagesApart(const ContractionPlan& plan) {
  const Contraction& way = plan.way();
  if (way.rows.size() < 2 || way.cols.size() > 1 || !way.phases.empty()) return false;
  return std::all_of(way.rows.begin(), way.rows.end() - 2,
                     [&](int row) { return way.scalar.PlainDim(plan.stage().axes[row]) >= 0; });
}

}  // namespace

std::vector<int64_t> BandChoices(const ContractionPlan& plan) {
  if (!plan.PadsScalarAlone() || plan.MustPackB() || !HasImagesApart(plan)) return {0};
  const int64_t threads = plan.target.threads;
  std::vector<int64_t> choices = {0};
  for (const int64_t bands : {int64_t{1}, threads, 2 * threads, 4 * threads}) {
    // One of all there is would be no part of it.
    if (bands > choices.back() && bands * ImagesOf(plan) > 1) choices.push_back(bands);
  }
  return choices;
}

int64_t BandTiles(const ContractionPlan& plan, const Values& v) {
  if (v.at("block_order") == kColumnsOutermost)
    return CeilDiv(CeilDiv(plan.N(), v.at("nv") * plan.lanes), v.at("nt"));
  return CeilDiv(plan.Extent(plan.way().rows.end()[-2]), v.at("lines"));
}

bool BandsDiffer(const ContractionPlan& plan, int64_t tiles, int64_t bands) {
  for (const int64_t fewer : BandChoices(plan)) {
    if (0 < fewer && fewer < bands && CeilDiv(tiles, fewer) == CeilDiv(tiles, bands)) return false;
  }
  return true;
}

int64_t BestBands(const ContractionPlan& plan, bool of_columns, int64_t tiles) {
  constexpr double kCopied = 16;     // bytes in a cycle, from and to the caches of one core
  constexpr double kFarther = 3;     // times as long from another's cache, or from beyond one's own
  constexpr double kToMeet = 16000;  // cycles until all threads know that the copy is there, and have it
  constexpr double kOfPeak = 0.5;    // of what the instruction could do
  const Instruction& instruction = plan.product.instruction;
  const auto images = static_cast<double>(ImagesOf(plan)), threads = static_cast<double>(plan.target.threads);
  double products = 1;
  for (const Var& axis : plan.stage().axes) products *= static_cast<double>(axis->extent);
  for (const Var& axis : plan.stage().reduce_axes) products *= static_cast<double>(axis->extent);
  const double in_a_cycle = kOfPeak * instruction.m * instruction.k * plan.lanes / instruction.cycles;
  const double tile = products / in_a_cycle / (images * static_cast<double>(tiles));
  const double image_bytes = static_cast<double>(plan.way().scalar.buffer->bytes()) / images;

  int64_t best = 0;
  double best_cycles =
      images * (static_cast<double>(tiles) * tile + kFarther * image_bytes / kCopied) / threads + kToMeet;
  for (const int64_t bands : BandChoices(plan)) {
    if (bands == 0 || bands > tiles || !BandsDiffer(plan, tiles, bands)) continue;
    const int64_t in_band = CeilDiv(tiles, bands);
    const double all = images * static_cast<double>(CeilDiv(tiles, in_band));
    const double share = of_columns ? 1 : static_cast<double>(in_band) / static_cast<double>(tiles);
    const double bytes = share * image_bytes;
    const double copy =
        (2 * bytes > static_cast<double>(plan.target.l2_bytes) ? kFarther : 1) * bytes / kCopied;
    const double cycles = std::ceil(all / threads) * (static_cast<double>(in_band) * tile + copy);
    if (cycles >= best_cycles) continue;
    best = bands;
    best_cycles = cycles;
  }
  return best;
}

}  // namespace mycc

#include "tuner/space/rules/stream_steps.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

// A tensor that the second product reads in a narrower type has to be a tile of that type.
bool IsInlinedTile(const Anatomy& anatomy, const StreamChain& chain, int tile) {
  constexpr double kCheapOps = 4;
  const bool is_narrow_weights = anatomy.stage(tile).output == chain.weights->buffer &&
                                 chain.weights->dtype != anatomy.stage(chain.sum).output->dtype;
  return anatomy.info(tile).ops_per_element <= kCheapOps && !is_narrow_weights;
}

std::vector<int> KeptTiles(const Anatomy& anatomy, const StreamChain& chain) {
  std::vector<int> kept;
  for (const int tile : chain.tiles) {
    if (!IsInlinedTile(anatomy, chain, tile)) kept.push_back(tile);
  }
  return kept;
}

bool HasMask(const Anatomy& anatomy, const StreamChain& chain) {
  return std::any_of(chain.tiles.begin(), chain.tiles.end(), [&](int s) {
    const Stage& tile = anatomy.stage(s);
    const Expr& value = tile.value;
    if (value->op != Op::kSelect || value->args[2]->op != Op::kConst ||
        value->args[2]->value.f != -std::numeric_limits<double>::infinity())
      return false;
    std::vector<Expr> conditions;
    SplitConjunction(value->args[0], &conditions);
    return std::any_of(conditions.begin(), conditions.end(), [&](const Expr& condition) {
      const Expr margin = MarginOf(condition);
      return margin != nullptr && LoadsOf(margin).empty() &&
             ToLinear(margin).CoefficientOf(tile.axes[chain.stream_dim].get()) != 0;
    });
  });
}

void DecideSkip(const Anatomy& anatomy, const StreamChain& chain, Part* part) {
  const bool can = HasMask(anatomy, chain);
  part->Decide("skip", {can ? 1 : 0}, can ? 1 : 0);
}

StreamLoops SplitChain(const Anatomy& anatomy, const StreamChain& chain, int64_t rows, int64_t keys,
                       TraceBuilder* b) {
  for (const int s : chain.rows) b->Inline(anatomy.name(s));
  for (const int s : chain.tiles) {
    if (IsInlinedTile(anatomy, chain, s)) b->Inline(anatomy.name(s));
  }
  const int row_axis = chain.row_axes.back();
  const std::string row = anatomy.Loop(chain.sum, row_axis), key = anatomy.ReduceLoop(chain.sum, 0);
  b->Split(row, {rows});
  b->Split(key, {keys});
  StreamLoops loops;
  for (const int a : chain.batch_axes) loops.outer.push_back(anatomy.Loop(chain.sum, a));
  for (const int a : chain.row_axes) {
    if (a != row_axis) loops.outer.push_back(anatomy.Loop(chain.sum, a));
  }
  loops.outer.push_back(absl::StrCat(row, ".0"));
  loops.row = absl::StrCat(row, ".1");
  loops.value = anatomy.Loop(chain.sum, chain.value_axes.back());
  loops.key = absl::StrCat(key, ".1");
  loops.step = absl::StrCat(key, ".0");
  return loops;
}

void EmitChain(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops,
               const std::string& block, TraceBuilder* b) {
  b->CacheWrite(anatomy.name(chain.sum), block);
  EmitEpilogue(anatomy, chain.epilogue, b);
  // From the chain's end: each stage's readers are under the loop by then.
  std::vector<int> stages = KeptTiles(anatomy, chain);
  stages.insert(stages.end(), chain.reductions.begin(), chain.reductions.end());
  std::sort(stages.begin(), stages.end(), std::greater<>());
  for (const int s : stages) {
    if (anatomy.stage(s).reduce != ReduceOp::kNone) {
      b->StreamReduction(anatomy.name(s), loops.step);
    } else {
      b->ComputeAt(anatomy.name(s), loops.step);
    }
  }
  b->ComputeAt(anatomy.name(chain.scores), loops.step);
}

void EmitSkip(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops, const Values& v,
              TraceBuilder* b) {
  const int64_t keys = anatomy.stage(chain.sum).reduce_axes[0]->extent;
  if (v.at("skip") != 0 && v.at("bn") < keys) b->SkipMasked(loops.step);
}

std::vector<std::string> StreamedVectors(const Anatomy& anatomy, const StreamChain& chain,
                                         const std::string& reduction) {
  // Sums so far are corrected when the first reduction, of the scores themselves, changes.
  const bool corrects = reduction == anatomy.name(chain.reductions.front());
  std::vector<std::string> blocks = {absl::StrCat(reduction, ".i")};
  for (const char* suffix : corrects ? std::vector<const char*>{".old", ".ref", ".factor"}
                                     : std::vector<const char*>{".old", ".c"})
    blocks.push_back(absl::StrCat(reduction, suffix));
  return blocks;
}

}  // namespace mycc

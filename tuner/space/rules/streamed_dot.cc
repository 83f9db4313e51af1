// The CPU rule for a chain along one axis (stream_chain.h) with few rows, such as attention of one query: one
// pass over the axis, which reads keys and values once, as they lie. It is bound by reading them: while a
// block is computed, the next one is fetched (fetch_next), which lies beyond what hardware fetches ahead.
//
//   parallel batches, rows of other axes:
//     for blocks of the axis:
//       scores[rows, keys] = tiles of products, lanes along the depth (dot_tile.h)
//       running reductions along the keys; the sums so far corrected
//       weights[rows, keys]
//       sums[rows, values] += weights * values, lanes along the values
//     result = sums / ...
//
// If there are fewer batches than the threads can share equally, split_chain first cuts the axis into parts,
// which become batches (rewrites.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/dot_tile.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Plan {
  const Anatomy anatomy;
  const StreamChain chain;
  Target target;
  int lanes;    // of f32
  int row_dim;  // of a tile, along the rows
  int64_t rows = 0, keys = 0, values = 0, depth = 0;

  std::string sum() const { return anatomy.name(chain.sum); }
  std::string scores() const { return anatomy.name(chain.scores); }
};

class DotEmitter {
 public:
  DotEmitter(const Plan& plan, const Values& v, TraceBuilder* b)
      : plan_(plan), chain_(plan.chain), v_(v), b_(b) {}

  void Emit() {
    const DotTile tile = ScoresTile();
    FactorDotTile(tile, b_);
    loops_ = SplitChain(plan_.anatomy, chain_, plan_.rows, v_.at("bn"), b_);
    std::vector<std::string> order = loops_.outer;
    order.insert(order.end(), {loops_.step, loops_.row, loops_.value, loops_.key});
    b_->Reorder(order);
    if (v_.at("par")) b_->BindAll(loops_.outer, "parallel");
    EmitChain(plan_.anatomy, chain_, loops_, loops_.outer.back(), b_);
    b_->SetScope(absl::StrCat(plan_.sum(), ".acc"), "local");
    EmitDotPartials(tile, CutDotTile(tile, b_), b_);
    BindDotTile(tile, b_);
    for (const int s : KeptTiles(plan_.anatomy, chain_))
      EmitAlongKeys(Dim(plan_.anatomy.name(s), chain_.stream_dim));
    for (const int s : chain_.reductions) EmitAlongKeys(absl::StrCat(plan_.anatomy.name(s), ".r0"));
    EmitSumTile(plan_.anatomy, chain_, loops_, {v_.at("sum_rows"), v_.at("sum_vectors")}, plan_.lanes,
                /*instruction=*/"", b_);
    if (v_.at("fetch")) {
      b_->FetchNext(SubLoop(tile.n, 0));
      b_->FetchNext(loops_.key);
    }
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
  }

 private:
  DotTile ScoresTile() const {
    DotTile tile{.block = plan_.scores(), .lanes = plan_.lanes};
    tile.m = Dim(tile.block, plan_.row_dim), tile.n = Dim(tile.block, chain_.stream_dim);
    const Stage& stage = plan_.anatomy.stage(chain_.scores);
    for (int d = 0; d < static_cast<int>(stage.axes.size()); ++d) {
      if (d != plan_.row_dim && d != chain_.stream_dim) tile.outer.push_back(Dim(tile.block, d));
    }
    for (int r = 0; r < static_cast<int>(stage.reduce_axes.size()); ++r)
      tile.depths.push_back(plan_.anatomy.ReduceLoop(chain_.scores, r));
    tile.mr = v_.at("score_rows"), tile.nr = v_.at("score_keys"), tile.vectors = v_.at("score_vectors");
    return tile;
  }

  // Several vectors of keys in turn.
  void EmitAlongKeys(const std::string& keys) {
    b_->Split(keys, {v_.at("unroll"), plan_.lanes});
    b_->Bind(SubLoop(keys, 1), "unroll");
    b_->Bind(SubLoop(keys, 2), "vector");
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const Values& v_;
  TraceBuilder* b_;
  StreamLoops loops_;
};

// Blocks of the axis are no shorter than what is unrolled along it.
bool Legal(const Plan& plan, const Values& v) {
  return v.at("bn") >= v.at("unroll") * plan.lanes &&
         FitsDotRegisters(v.at("score_rows"), v.at("score_keys"), v.at("score_vectors"),
                          VectorRegisters(plan.target)) &&
         FitsRegisters(v.at("sum_rows"), v.at("sum_vectors"), TileRegisters(plan.target));
}

// Queries and keys lie along the depth, values along their numbers: all are read in vectors, in place.
absl::Status CanReadInPlace(const Plan& plan) {
  const Stage &scores = plan.anatomy.stage(plan.chain.scores), &sum = plan.anatomy.stage(plan.chain.sum);
  const Var &depth = scores.reduce_axes.back(), &value = sum.axes[plan.chain.value_axes[0]];
  for (const Expr& load : {plan.chain.queries, plan.chain.keys}) {
    if (!IsLastIndex(load, depth)) return NotLast(load, depth, plan.scores());
  }
  if (!IsLastIndex(plan.chain.values, value)) return NotLast(plan.chain.values, value, plan.sum());
  return absl::OkStatus();
}

// Whether keys and values come from beyond the core's own caches.
bool IsFetched(const Plan& plan) {
  const Stage& sum = plan.anatomy.stage(plan.chain.sum);
  int64_t numbers = plan.keys * (plan.depth + plan.values);
  for (const int a : plan.chain.batch_axes) numbers *= sum.axes[a]->extent;
  return numbers * DTypeBytes(plan.chain.keys->dtype) > plan.target.l2_bytes;
}

// Blocks that are fetched are as short as memory's latency, since they have to stay in the nearest cache with
// those that are read; several rows take longer, and begin each block with work of their own.
void DecideBlocks(const Plan& plan, Part* part) {
  constexpr int64_t kFetchedBytes = 4096;
  const int64_t lanes = plan.lanes, key_bytes = plan.depth * DTypeBytes(plan.chain.keys->dtype);
  const std::vector<int64_t> blocks =
      UpTo({lanes, 2 * lanes, 4 * lanes, 8 * lanes, 16 * lanes, 32 * lanes}, RoundUp(plan.keys, lanes));
  const int64_t shortest = plan.rows * std::max(lanes, kFetchedBytes / key_bytes);
  const bool fetches = IsFetched(plan) && 3 * shortest * key_bytes <= plan.target.l1d_bytes;
  part->Decide("bn", blocks, LargestAtMost(blocks, fetches ? shortest : 16 * lanes));
  part->Decide("unroll", {1, 2, 4}, std::clamp<int64_t>(part->Default("bn") / lanes, 1, 4));
  part->Decide("fetch", {0, 1}, fetches ? 1 : 0);
}

// The accumulators of a tile hide the latency of additions. They are of several rows and keys, or of several
// vectors of the depth.
void DecideScores(const Plan& plan, Part* part) {
  const std::vector<int64_t> rows = UpTo({1, 2, 4, 8}, plan.rows),
                             vectors = UpTo({1, 2, 4}, plan.depth / plan.lanes);
  part->Decide("score_rows", rows, LargestAtMost(rows, 4));
  part->Decide("score_keys", UpTo({1, 2, 4, 8}, plan.keys), plan.keys >= 4 ? 4 : 1);
  part->Decide("score_vectors", vectors, 1);
}

void DecideSums(const Plan& plan, Part* part) {
  const std::vector<int64_t> rows = UpTo({1, 2, 4, 8}, plan.rows),
                             vectors = UpTo({1, 2, 4, 8, 16}, CeilDiv(plan.values, plan.lanes));
  int64_t mr = 1, nv = 1;
  // The whole line of values, for as many rows as registers hold.
  for (const int64_t count : vectors) {
    if (FitsRegisters(1, count, TileRegisters(plan.target)) && count <= 8) nv = count;
  }
  for (const int64_t count : rows) {
    if (FitsRegisters(count, nv, TileRegisters(plan.target))) mr = count;
  }
  part->Decide("sum_rows", rows, mr);
  part->Decide("sum_vectors", vectors, nv);
}

}  // namespace

absl::StatusOr<Part> StreamedDotPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return absl::NotFoundError("no chain");
  const Stage &scores = anatomy.stage(chain->scores), &sum = anatomy.stage(chain->sum);
  Plan plan{anatomy, *chain, target};
  plan.rows = sum.axes[chain->row_axes.back()]->extent;
  if (plan.rows > kFewRows) return absl::NotFoundError("many rows");
  const bool sums_f32 = sum.output->dtype == DType::kF32 && scores.output->dtype == DType::kF32;
  if (!sums_f32) return OtherTypes(*chain, "floats");
  plan.lanes = VectorBytes(target) / DTypeBytes(sum.output->dtype);
  plan.row_dim = chain->dim_of_axis[chain->row_axes.back()];
  plan.keys = sum.reduce_axes[0]->extent;
  plan.values = sum.axes[chain->value_axes[0]]->extent;
  plan.depth = scores.reduce_axes.back()->extent;
  MYCC_RETURN_IF_ERROR(CanReadInPlace(plan));
  if (plan.depth < plan.lanes) {
    return Refusal("keys of ", plan.depth, " numbers leave lanes of a vector empty; expected at least ",
                   plan.lanes);
  }
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "streamed_dot";
  DecideBlocks(plan, &part);
  DecideScores(plan, &part);
  DecideSums(plan, &part);
  DecideSkip(anatomy, *chain, &part);
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { DotEmitter(plan, v, b).Emit(); };
  return part;
}

}  // namespace mycc

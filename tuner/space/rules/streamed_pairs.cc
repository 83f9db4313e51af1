// The CPU rule for a chain along one axis whose products take pairs of 16-bit elements: by tile registers
// (AMX), or dot products of vectors. Lanes run along the keys in the scores and along the values in the sum.
//
//   parallel batches, blocks of rows:
//     for blocks of the axis:
//       keys, values: packed, pairs of the depth together
//       scores[rows, keys] = tiles of products
//       running reductions along the keys; the sums so far corrected
//       weights[rows, keys], rounded to 16 bits
//       sums[rows, values] += tiles of products
//     result = sums / ...
//
// With enough batches for all threads, a batch's keys and values are packed once, before its blocks of rows.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"
#include "codegen/target/instructions.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kPair = 2;
constexpr int64_t kPairedBytes = 2;  // of an element

// A tile that a reduction and the weights read, and nothing else: all three are computed in one pass.
struct OnePass {
  int tile, reduction, weights;
};

struct Plan {
  const Anatomy anatomy;
  const StreamChain chain;
  Target target;
  Instruction instruction;
  int lanes;         // of f32
  int row_dim = -1;  // of a tile, along the rows
  int64_t rows = 0;
  std::optional<OnePass> one_pass;

  std::string sum() const { return anatomy.name(chain.sum); }
  std::string scores() const { return anatomy.name(chain.scores); }
  bool in_tiles() const { return instruction.kind == InstructionClass::kTile; }
};

// The names of the loops of one register tile of products.
struct ProductTile {
  std::string block;           // of the product
  std::string rows, lanes;     // loops before they are cut
  std::string depth;           // the reduction's loop, before it is cut
  int64_t mr, nr;              // rows and lanes of a tile
  std::vector<std::string> i;  // the parts of its accumulator's first and last copies: ".i", ".w"
};

class PairsEmitter {
 public:
  PairsEmitter(const Plan& plan, const Values& v, TraceBuilder* b)
      : plan_(plan), chain_(plan.chain), v_(v), b_(b) {}

  void Emit() {
    loops_ = SplitChain(plan_.anatomy, chain_, v_.at("bm"), v_.at("bn"), b_);
    std::vector<std::string> order = loops_.outer;
    order.insert(order.end(), {loops_.step, loops_.row, loops_.value, loops_.key});
    b_->Reorder(order);
    const bool once = v_.at("pack_once") != 0;
    std::vector<std::string> shared = loops_.outer;  // by the threads
    if (once) shared.resize(chain_.batch_axes.size());
    if (v_.at("par")) b_->BindAll(shared, "parallel");
    packing_ = once ? shared.back() : loops_.step;
    EmitChain(plan_.anatomy, chain_, loops_, loops_.outer.back(), b_, [&](int s) { return Place(s); });
    b_->SetScope(absl::StrCat(plan_.sum(), ".acc"), "local");
    EmitScores();
    for (const int s : KeptTiles(plan_.anatomy, chain_)) {
      if (!IsInOnePass(s)) EmitAlongKeys(Dim(plan_.anatomy.name(s), chain_.stream_dim));
    }
    for (const int s : chain_.reductions) EmitReduction(s);
    EmitSum();
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
  }

 private:
  // Not where one block has more rows than there are: the weights then have fewer than the reduction. Nor
  // where a block of the axis is shorter than what is unrolled.
  bool IsInOnePass(int s) const {
    const std::optional<OnePass>& one = plan_.one_pass;
    if (v_.at("bm") > plan_.rows || v_.at("bn") < v_.at("unroll") * plan_.lanes) return false;
    return one && (s == one->tile || s == one->reduction || s == one->weights);
  }

  // The weights' loops become those of the reduction, and the tile that both read is computed there, a few
  // vectors at a time: it stays in registers.
  bool Place(int s) {
    if (!IsInOnePass(s) || s != plan_.one_pass->tile) return false;
    const Anatomy& anatomy = plan_.anatomy;
    const std::string tile = anatomy.name(s), reduction = anatomy.name(plan_.one_pass->reduction),
                      weights = anatomy.name(plan_.one_pass->weights);
    const std::string along = absl::StrCat(reduction, ".r0"), keys = Dim(weights, chain_.stream_dim);
    EmitAlongKeys(along);
    EmitAlongKeys(keys);
    for (int d = 0; d < chain_.stream_dim; ++d) b_->Merge(Dim(reduction, d), Dim(weights, d));
    b_->Merge(SubLoop(along, 0), SubLoop(keys, 0));
    b_->ComputeAt(tile, SubLoop(along, 0));
    b_->Vectorize(Dim(tile, chain_.stream_dim), v_.at("unroll") * plan_.lanes, plan_.lanes);
    return true;
  }

  int64_t columns() const { return v_.at("columns") * plan_.lanes; }

  void EmitScores() {
    const std::string s = plan_.scores();
    const Stage& stage = plan_.anatomy.stage(chain_.scores);
    PackKeys(PlainDim(chain_.keys, stage.axes[chain_.stream_dim]),
             PlainDim(chain_.keys, stage.reduce_axes.back()));
    const int last = static_cast<int>(stage.reduce_axes.size()) - 1;
    const ProductTile tile{s,
                           Dim(s, plan_.row_dim),
                           Dim(s, chain_.stream_dim),
                           plan_.anatomy.ReduceLoop(chain_.scores, last),
                           v_.at("rows"),
                           columns(),
                           {".i", ".w"}};
    EmitProduct(tile, /*rows_inside=*/true);
  }

  // Panels as wide as a tile's lanes, in which pairs of the depth lie together.
  void PackKeys(int keys, int depth) {
    const std::string copy = b_->CacheRead(chain_.keys->buffer->name, plan_.scores(), packing_, "local");
    Pack(copy, chain_.keys->buffer->rank(), keys, depth);
    // Vectors of pairs are turned over in registers.
    const std::string along = Dim(copy, keys), pairs = Dim(copy, depth);
    b_->Split(along, {plan_.lanes});
    b_->Split(pairs, {plan_.lanes, kPair});
    b_->Reorder(
        {SubLoop(along, 0), SubLoop(pairs, 0), SubLoop(pairs, 1), SubLoop(pairs, 2), SubLoop(along, 1)});
    b_->Bind(SubLoop(pairs, 1), "unroll");
    b_->Bind(SubLoop(pairs, 2), "unroll");
    b_->Bind(SubLoop(along, 1), "vector");
  }

  void PackValues(int values, int keys) {
    const std::string copy = b_->CacheRead(chain_.values->buffer->name, plan_.sum(), packing_, "local");
    Pack(copy, chain_.values->buffer->rank(), values, keys);
    const std::string along = Dim(copy, values), pairs = Dim(copy, keys);
    b_->Split(along, {plan_.lanes});
    b_->Split(pairs, {kPair});
    b_->Reorder({SubLoop(pairs, 0), SubLoop(along, 0), SubLoop(pairs, 1), SubLoop(along, 1)});
    b_->Bind(SubLoop(pairs, 1), "unroll");
    b_->Bind(SubLoop(along, 1), "vector");
  }

  void Pack(const std::string& copy, int rank, int along, int pairs) {
    std::vector<std::string> components;
    for (int d = 0; d < rank; ++d) {
      if (d != along && d != pairs) components.push_back(absl::StrCat(d));
    }
    components.insert(components.end(),
                      {absl::StrCat(along, "/", columns()), absl::StrCat(pairs, "/", kPair),
                       absl::StrCat(along, "%", columns()), absl::StrCat(pairs, "%", kPair)});
    b_->Pack(copy, components);
  }

  // The rows' tiles run inside the columns' or around them; the depth in steps of some pairs.
  void EmitProduct(const ProductTile& tile, bool rows_inside) {
    constexpr int64_t kPairsInStep = 16;
    b_->Split(tile.rows, {tile.mr});
    b_->Split(tile.lanes, {tile.nr});
    b_->Split(tile.depth, {kPairsInStep, kPair});
    const std::string outer_rows = SubLoop(tile.rows, 0), outer_lanes = SubLoop(tile.lanes, 0);
    std::vector<std::string> order = {outer_rows, outer_lanes};
    if (rows_inside) std::swap(order[0], order[1]);
    const std::string inner = order[1];
    order.insert(order.end(), {SubLoop(tile.depth, 0), SubLoop(tile.depth, 1), SubLoop(tile.rows, 1),
                               SubLoop(tile.lanes, 1), SubLoop(tile.depth, 2)});
    b_->Reorder(order);
    b_->CacheWrite(tile.block, inner);
    b_->Bind(SubLoop(tile.depth, 1), "unroll");
    b_->Tensorize(SubLoop(tile.depth, 0), plan_.instruction.name);
    for (const std::string& part : tile.i) {
      const auto of = [&](const std::string& loop) {
        return absl::StrCat(tile.block, part, loop.substr(tile.block.size()));
      };
      b_->Bind(of(SubLoop(tile.rows, 1)), "unroll");
      b_->Vectorize(of(SubLoop(tile.lanes, 1)), tile.nr, plan_.lanes);
    }
  }

  // Several vectors of keys in turn.
  void EmitAlongKeys(const std::string& keys) {
    b_->Split(keys, {v_.at("unroll"), plan_.lanes});
    b_->Bind(SubLoop(keys, 1), "unroll");
    b_->Bind(SubLoop(keys, 2), "vector");
  }

  void EmitReduction(int s) {
    const std::string reduction = plan_.anatomy.name(s);
    if (!IsInOnePass(s)) EmitAlongKeys(absl::StrCat(reduction, ".r0"));
    const int dim = plan_.row_dim > chain_.stream_dim ? plan_.row_dim - 1 : plan_.row_dim;
    EmitRowVectors(plan_.anatomy, chain_, reduction, dim, plan_.lanes, b_);
  }

  void EmitSum() {
    const Stage& stage = plan_.anatomy.stage(chain_.sum);
    PackValues(PlainDim(chain_.values, stage.axes[chain_.value_axes[0]]),
               PlainDim(chain_.values, stage.reduce_axes[0]));
    const ProductTile tile{plan_.sum(),   loops_.row, loops_.value,  loops_.key,
                           v_.at("rows"), columns(),  {".i2", ".w2"}};
    EmitProduct(tile, /*rows_inside=*/true);
    EmitAccumulatorParts(plan_.anatomy, chain_, loops_.value, plan_.lanes, b_);
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const Values& v_;
  TraceBuilder* b_;
  StreamLoops loops_;
  std::string packing_;  // the loop in whose iterations keys and values are packed
};

bool Legal(const Plan& plan, const Values& v) {
  const int64_t rows = v.at("rows"), columns = v.at("columns");
  if (rows > v.at("bm") || columns * plan.lanes > v.at("bn")) return false;
  return plan.in_tiles() ? FitsTileRegisters(rows, columns)
                         : FitsRegisters(rows, columns, TileRegisters(plan.target));
}

// Both operands of pairs are plain along what is packed.
absl::Status CanPack(const Plan& plan) {
  const Stage &scores = plan.anatomy.stage(plan.chain.scores), &sum = plan.anatomy.stage(plan.chain.sum);
  const Var &depth = scores.reduce_axes.back(), &value = sum.axes[plan.chain.value_axes[0]];
  for (const Expr& load : {plan.chain.queries, plan.chain.keys}) {
    if (!IsLastIndex(load, depth)) return NotLast(load, depth, plan.scores());
  }
  if (!IsLastIndex(plan.chain.values, value)) return NotLast(plan.chain.values, value, plan.sum());
  for (const auto& [load, key] : {std::pair(plan.chain.keys, scores.axes[plan.chain.stream_dim]),
                                  std::pair(plan.chain.values, sum.reduce_axes[0])}) {
    if (PlainDim(load, key) < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("keys and values are packed as they are read, and ", PrintExpr(load),
                       " is found through more than its number ", key->name));
    }
  }
  return absl::OkStatus();
}

std::optional<OnePass> FindOnePass(const Anatomy& anatomy, const StreamChain& chain) {
  if (chain.stream_dim + 1 != static_cast<int>(anatomy.stage(chain.scores).axes.size())) return std::nullopt;
  const int weights = anatomy.ProducerOf(chain.weights->buffer.get());
  const std::vector<int> tiles = KeptTiles(anatomy, chain);
  const auto is_tile = [&](int s) { return std::ranges::count(tiles, s) > 0; };
  // Weights that are divided by the sum need the reduction before they stand under the loop.
  if (!is_tile(weights) || anatomy.info(weights).readers != std::vector<int>{chain.sum} ||
      anatomy.info(weights).producers.size() != 1)
    return std::nullopt;
  for (const int reduction : chain.reductions) {
    if (reduction == chain.reductions.front()) continue;  // the weights need its result
    for (const int tile : anatomy.info(reduction).producers) {
      std::vector<int> readers = anatomy.info(tile).readers;
      std::ranges::sort(readers);
      std::vector<int> both = {reduction, weights};
      std::ranges::sort(both);
      if (is_tile(tile) && readers == both) return OnePass{tile, reduction, weights};
    }
  }
  return std::nullopt;
}

// Whether each thread gets about as many batches as the others, and their panels fit half of its cache.
bool CanPackOnce(const Plan& plan, int64_t keys) {
  const Stage &scores = plan.anatomy.stage(plan.chain.scores), &sum = plan.anatomy.stage(plan.chain.sum);
  const int64_t batches = PointsOf(sum.axes, plan.chain.batch_axes);
  const int64_t numbers = scores.reduce_axes.back()->extent + sum.axes[plan.chain.value_axes[0]]->extent;
  const int64_t threads = std::max<int64_t>(plan.target.threads, 1);
  return (batches % threads == 0 || batches >= 8 * threads) &&
         2 * keys * numbers * kPairedBytes <= plan.target.l2_bytes;
}

}  // namespace

absl::StatusOr<Part> StreamedPairsPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return absl::NotFoundError("no chain");
  const auto is_pair = [](const Expr& load) { return load->dtype == DType::kBF16; };
  const std::vector<Expr> loads = {chain->weights, chain->values, chain->queries, chain->keys};
  if (anatomy.stage(chain->sum).output->dtype != DType::kF32 || !std::ranges::all_of(loads, is_pair))
    return OtherTypes(*chain, kStreamedTypes);
  const std::vector<Instruction> rows = CpuInstructionsFor(DType::kBF16, DType::kBF16, DType::kF32, target);
  if (rows.empty() || rows.front().group != kPair)
    return absl::FailedPreconditionError("this processor has no instruction for pairs of bf16");
  const int lanes = VectorBytes(target) / DTypeBytes(DType::kF32);
  Plan plan{anatomy, *chain, target, rows.front(), lanes};
  plan.row_dim = chain->dim_of_axis[chain->row_axes.back()];
  MYCC_RETURN_IF_ERROR(CanPack(plan));
  plan.one_pass = FindOnePass(anatomy, *chain);
  const int64_t queries = anatomy.stage(chain->sum).axes[chain->row_axes.back()]->extent,
                keys = RoundUp(anatomy.stage(chain->sum).reduce_axes[0]->extent, 2 * lanes);
  plan.rows = queries;
  if (2 * queries < lanes) {
    return Refusal(queries, " queries leave most rows of a tile empty; expected at least ",
                   CeilDiv(lanes, 2));
  }
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "streamed_pairs";
  const std::vector<int64_t> blocks = UpTo({16, 32, 64, 96, 128, 192, 256}, RoundUp(queries, 16));
  // Scores of few queries and many keys stay in the nearest cache, and are reduced along vectors of keys;
  // with a mask, blocks of keys are skipped.
  const bool is_short = keys < 512 || HasMask(anatomy, *chain);
  part.Decide("bm", blocks, LargestAtMost(blocks, is_short ? 64 : 32));
  const std::vector<int64_t> parts = UpTo({32, 64, 128, 256, 512}, keys);
  part.Decide("bn", parts, LargestAtMost(parts, is_short ? 128 : 256));
  const bool has_batches = !chain->batch_axes.empty() && queries > blocks.front();
  const bool once = has_batches && CanPackOnce(plan, keys);
  part.Decide("pack_once", has_batches ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, once ? 1 : 0,
              /*ordered=*/false);
  const std::vector<int64_t> tile_rows =
      plan.in_tiles() ? UpTo({16, 32, 48}, blocks.back()) : UpTo({4, 6, 8, 12, 14}, blocks.back());
  part.Decide("rows", tile_rows,
              plan.in_tiles() ? LargestAtMost(tile_rows, 32) : LargestAtMost(tile_rows, 12));
  part.Decide("columns", plan.in_tiles() ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1, 2, 4}, 2);
  part.Decide("unroll", {1, 2, 4}, 4);
  DecideSkip(anatomy, *chain, &part);
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { PairsEmitter(plan, v, b).Emit(); };
  return part;
}

}  // namespace mycc

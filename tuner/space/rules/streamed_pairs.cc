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
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/schedule/instructions.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

constexpr int64_t kPair = 2;

struct Plan {
  const Anatomy anatomy;
  const StreamChain chain;
  Target target;
  Instruction instruction;
  int lanes;         // of f32
  int row_dim = -1;  // of a tile, along the rows
  int64_t depth = 0;

  std::string sum() const { return anatomy.name(chain.sum); }
  std::string scores() const { return anatomy.name(chain.scores); }
  bool in_tiles() const { return instruction.kind == InstructionClass::kTile; }
};

std::string Sub(const std::string& loop, int part) { return absl::StrCat(loop, ".", part); }
std::string Dim(const std::string& block, int dim) { return absl::StrCat(block, ".a", dim); }

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
    if (v_.at("par")) b_->BindAll(loops_.outer, "parallel");
    EmitChain(plan_.anatomy, chain_, loops_, loops_.outer.back(), b_);
    b_->SetScope(absl::StrCat(plan_.sum(), ".acc"), "local");
    EmitScores();
    for (const int s : KeptTiles(plan_.anatomy, chain_))
      EmitAlongKeys(Dim(plan_.anatomy.name(s), chain_.stream_dim));
    for (const int s : chain_.reductions) EmitReduction(plan_.anatomy.name(s));
    EmitSum();
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
  }

 private:
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
    const std::string copy = b_->CacheRead(chain_.keys->buffer->name, plan_.scores(), loops_.step, "local");
    Pack(copy, chain_.keys->buffer->rank(), keys, depth);
    // Vectors of pairs are turned over in registers.
    const std::string along = Dim(copy, keys), pairs = Dim(copy, depth);
    b_->Split(along, {plan_.lanes});
    b_->Split(pairs, {plan_.lanes, kPair});
    b_->Reorder({Sub(along, 0), Sub(pairs, 0), Sub(pairs, 1), Sub(pairs, 2), Sub(along, 1)});
    b_->Bind(Sub(pairs, 1), "unroll");
    b_->Bind(Sub(pairs, 2), "unroll");
    b_->Bind(Sub(along, 1), "vector");
  }

  void PackValues(int values, int keys) {
    const std::string copy = b_->CacheRead(chain_.values->buffer->name, plan_.sum(), loops_.step, "local");
    Pack(copy, chain_.values->buffer->rank(), values, keys);
    const std::string along = Dim(copy, values), pairs = Dim(copy, keys);
    b_->Split(along, {plan_.lanes});
    b_->Split(pairs, {kPair});
    b_->Reorder({Sub(pairs, 0), Sub(along, 0), Sub(pairs, 1), Sub(along, 1)});
    b_->Bind(Sub(pairs, 1), "unroll");
    b_->Bind(Sub(along, 1), "vector");
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
    const std::string outer_rows = Sub(tile.rows, 0), outer_lanes = Sub(tile.lanes, 0);
    std::vector<std::string> order = {outer_rows, outer_lanes};
    if (rows_inside) std::swap(order[0], order[1]);
    const std::string inner = order[1];
    order.insert(order.end(), {Sub(tile.depth, 0), Sub(tile.depth, 1), Sub(tile.rows, 1), Sub(tile.lanes, 1),
                               Sub(tile.depth, 2)});
    b_->Reorder(order);
    b_->CacheWrite(tile.block, inner);
    b_->Bind(Sub(tile.depth, 1), "unroll");
    b_->Tensorize(Sub(tile.depth, 0), plan_.instruction.name);
    for (const std::string& part : tile.i) {
      const auto of = [&](const std::string& loop) {
        return absl::StrCat(tile.block, part, loop.substr(tile.block.size()));
      };
      b_->Bind(of(Sub(tile.rows, 1)), "unroll");
      EmitVectors(of(Sub(tile.lanes, 1)), tile.nr);
    }
  }

  void EmitVectors(const std::string& loop, int64_t extent) {
    if (extent <= plan_.lanes) return b_->Bind(loop, "vector");
    b_->Split(loop, {plan_.lanes});
    b_->Bind(Sub(loop, 0), "unroll");
    b_->Bind(Sub(loop, 1), "vector");
  }

  // Several vectors of keys in turn.
  void EmitAlongKeys(const std::string& keys) {
    b_->Split(keys, {v_.at("unroll"), plan_.lanes});
    b_->Bind(Sub(keys, 1), "unroll");
    b_->Bind(Sub(keys, 2), "vector");
  }

  void EmitReduction(const std::string& reduction) {
    EmitAlongKeys(absl::StrCat(reduction, ".r0"));
    const int dim = plan_.row_dim > chain_.stream_dim ? plan_.row_dim - 1 : plan_.row_dim;
    for (const std::string& vector : StreamedVectors(plan_.anatomy, chain_, reduction)) {
      const std::string loop = Dim(vector, dim);
      b_->Split(loop, {plan_.lanes});
      b_->Bind(Sub(loop, 1), "vector");
    }
  }

  void EmitSum() {
    const Stage& stage = plan_.anatomy.stage(chain_.sum);
    PackValues(PlainDim(chain_.values, stage.axes[chain_.value_axes[0]]),
               PlainDim(chain_.values, stage.reduce_axes[0]));
    const ProductTile tile{plan_.sum(),   loops_.row, loops_.value,  loops_.key,
                           v_.at("rows"), columns(),  {".i2", ".w2"}};
    EmitProduct(tile, /*rows_inside=*/true);
    for (const char* part : {".i", ".c", ".w"}) {
      const std::string loop = absl::StrCat(plan_.sum(), part, loops_.value.substr(plan_.sum().size()));
      b_->Split(loop, {plan_.lanes});
      b_->Bind(Sub(loop, 0), "unroll");
      b_->Bind(Sub(loop, 1), "vector");
    }
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const Values& v_;
  TraceBuilder* b_;
  StreamLoops loops_;
};

bool Legal(const Plan& plan, const Values& v) {
  const int64_t rows = v.at("rows"), columns = v.at("columns");
  if (rows > v.at("bm")) return false;
  return plan.in_tiles() ? FitsTileRegisters(rows, columns)
                         : FitsRegisters(rows, columns, TileRegisters(plan.target));
}

std::vector<int64_t> Within(std::vector<int64_t> choices, int64_t most) {
  std::erase_if(choices, [&](int64_t choice) { return choice > most && choice != choices.front(); });
  return choices;
}

// Both operands of pairs are plain along what is packed.
bool CanPack(const Plan& plan) {
  const Stage &scores = plan.anatomy.stage(plan.chain.scores), &sum = plan.anatomy.stage(plan.chain.sum);
  return PlainDim(plan.chain.keys, scores.axes[plan.chain.stream_dim]) >= 0 &&
         PlainDim(plan.chain.keys, scores.reduce_axes.back()) == plan.chain.keys->buffer->rank() - 1 &&
         PlainDim(plan.chain.queries, scores.reduce_axes.back()) == plan.chain.queries->buffer->rank() - 1 &&
         PlainDim(plan.chain.values, sum.reduce_axes[0]) >= 0 &&
         PlainDim(plan.chain.values, sum.axes[plan.chain.value_axes[0]]) ==
             plan.chain.values->buffer->rank() - 1;
}

}  // namespace

std::optional<Part> StreamedPairsPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain || anatomy.stage(chain->sum).output->dtype != DType::kF32) return std::nullopt;
  for (const Expr& load : {chain->weights, chain->values, chain->queries, chain->keys}) {
    if (load->dtype != DType::kBF16) return std::nullopt;
  }
  const std::vector<Instruction> rows = CpuInstructionsFor(DType::kBF16, DType::kBF16, DType::kF32, target);
  if (rows.empty() || rows.front().group != kPair) return std::nullopt;
  const int lanes = VectorBytes(target) / DTypeBytes(DType::kF32);
  Plan plan{anatomy, *chain, target, rows.front(), lanes};
  plan.row_dim = chain->dim_of_axis[chain->row_axes.back()];
  if (!CanPack(plan)) return std::nullopt;
  const int64_t queries = anatomy.stage(chain->sum).axes[chain->row_axes.back()]->extent,
                keys = RoundUp(anatomy.stage(chain->sum).reduce_axes[0]->extent, 2 * lanes);
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "streamed_pairs";
  const std::vector<int64_t> blocks = Within({16, 32, 64, 96, 128, 192, 256}, RoundUp(queries, 16));
  part.Decide("bm", blocks, LargestAtMost(blocks, 64));
  const std::vector<int64_t> parts = Within({32, 64, 128, 256, 512}, keys);
  part.Decide("bn", parts, LargestAtMost(parts, 128));
  const std::vector<int64_t> tile_rows =
      plan.in_tiles() ? Within({16, 32, 48}, blocks.back()) : Within({4, 6, 8, 12, 14}, blocks.back());
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

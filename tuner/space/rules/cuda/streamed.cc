// The GPU rules for a chain of stages along one axis (stream_chain.h), such as attention, in one kernel: both
// products on tensor cores, what lies between them in registers.
//
//   block (batches, blocks of rows):
//     the rows' operand, in shared memory
//     for blocks of the axis, through a ring: tiles of keys and of values
//       scores = product, in registers
//       running reductions along each row; the sums so far corrected
//       weights, rounded, in the registers of the scores
//       sums += product of weights and values
//     result = sums / ...
//
// By mma.sync all threads copy ahead (sm_80 and later); by wgmma one warp copies, and the warpgroups compute
// (sm_90a).
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/correction.h"
#include "codegen/target/instructions.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/cuda/persistent_order.h"
#include "tuner/space/rules/cuda/stream_biases.h"
#include "tuner/space/rules/cuda/wgmma_plan.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Plan {
  const Anatomy anatomy;
  const StreamChain chain;
  Target target;
  Instruction instruction;
  int row_dim = -1;                        // of a tile, along the rows
  int64_t rows = 0, keys = 0;              // extents
  int64_t tile_rows = 0;                   // of the scores, which may be padded
  int64_t depth = 0, values = 0;           // of the scores' sum, and of the result's last axis
  int64_t depth_tile = 0, value_tile = 0;  // rounded up to whole instructions
  bool computes_queries = false;           // a stage of the group; else they are copied
  bool fetches_queries = false;            // by the copy engine
  std::vector<TileBias> biases;

  std::string sum() const { return anatomy.name(chain.sum); }
  std::string scores() const { return anatomy.name(chain.scores); }
  bool in_warpgroups() const { return instruction.kind == InstructionClass::kWarpgroup; }
  int64_t element() const { return DTypeBytes(instruction.operand); }
};

// A tile whose rows the copy engine and the instruction read in whole swizzled panels; or one for ldmatrix,
// padded where it is longer than a panel.
struct SharedTile {
  int64_t pad = 0, swizzle = 0;
};
SharedTile TileOf(const Plan& plan, int64_t row_elements) {
  const int64_t bytes = row_elements * plan.element();
  if (plan.in_warpgroups()) return {0, SwizzleOf(bytes)};
  if (bytes == 32 || bytes == 64 || bytes == 128) return {0, bytes};
  return {kAccessBytes / plan.element(), 0};
}

int64_t TileBytes(const Plan& plan, int64_t rows, int64_t row_elements) {
  return rows * (row_elements + TileOf(plan, row_elements).pad) * plan.element();
}

// Whether the copy engine brings tiles of a bias through the ring.
bool InRing(const Plan& plan, const Values& v, const TileBias& bias) {
  return v.contains("bias") && v.at("bias") != 0 &&
         CanFetchInTiles(plan.anatomy, plan.chain, bias, v.at("bm"), v.at("bn"));
}

// Tiles, each from a multiple of 1024 bytes on; and beside them what threads exchange, and barriers.
int64_t SharedBytes(const Plan& plan, const Values& v) {
  constexpr int64_t kAlignment = 1024, kBeside = 2560;
  const int64_t rows = v.at("bm"), keys = v.at("bn");
  int64_t ring = RoundUp(TileBytes(plan, keys, plan.depth_tile), kAlignment) +
                 RoundUp(TileBytes(plan, keys, plan.value_tile), kAlignment);
  for (const TileBias& bias : plan.biases)
    ring += InRing(plan, v, bias) ? RoundUp(rows * keys * DTypeBytes(bias.load->dtype), kAlignment) : 0;
  return RoundUp(TileBytes(plan, rows, plan.depth_tile), kAlignment) + v.at("stages") * ring + kBeside;
}

int64_t RowsOfGroup(const Values& v) { return v.at("bm") / v.at("groups"); }

// Registers of a thread: sums, scores, and the weights' narrow copy. Where the last keys are a part of a
// tile, and the scores have masks of their own, the results of comparisons are held, too.
int64_t Registers(const Plan& plan, const Values& v) {
  const int64_t lanes = plan.in_warpgroups() ? 128 : kWarp, rows = RowsOfGroup(v), keys = v.at("bn");
  const bool compares = v.at("skip") != 0 && plan.keys % keys != 0;
  return rows * plan.value_tile / lanes + rows * keys / lanes * 3 / 2 + (compares ? keys / 8 : 0);
}

// The most that leave enough for addresses and vectors of rows. ptxas spills a few registers from here on.
int64_t MostRegisters(const Plan& plan, const Values& v) {
  if (!plan.in_warpgroups()) return 150;
  constexpr int64_t kBeside = 32, kMost = 255;
  const int64_t share = SplitRegisters(v.at("groups"), /*operand_in_registers=*/true).compute;
  return (share > 0 ? share : kMost) - kBeside;
}

int64_t Threads(const Plan& plan, const Values& v) {
  return v.at("groups") * (plan.in_warpgroups() ? 4 * kWarp : kWarp);
}

// Tiles of rows, of all batches and heads.
int64_t GridTiles(const Plan& plan, const Values& v) {
  const Stage& sum = plan.anatomy.stage(plan.chain.sum);
  int64_t tiles = CeilDiv(plan.rows, v.at("bm"));
  for (const int a : plan.chain.batch_axes) tiles *= sum.axes[a]->extent;
  for (const int a : plan.chain.row_axes) tiles *= a == plan.chain.row_axes.back() ? 1 : sum.axes[a]->extent;
  return tiles;
}

// Persistent blocks are as many as the multiprocessors hold at once, which keep some memory for each. A ring
// is full when a tile begins.
int64_t PersistentBlocks(const Plan& plan, const Values& v) {
  constexpr int64_t kOfBlock = 1024;
  const int64_t bytes = SharedBytes(plan, v) + kOfBlock;
  const int64_t on_sm = v.at("groups") == 1 ? std::min<int64_t>(2, plan.target.smem_bytes / bytes) : 1;
  return plan.target.sms * std::max<int64_t>(on_sm, 1);
}

bool MayPersist(const Plan& plan, const Values& v) {
  return plan.in_warpgroups() && GridTiles(plan, v) > PersistentBlocks(plan, v);
}

// Whether persistent blocks are expected to be faster: tiles are short, so that the time in which a new block
// fills its ring shows, and a fixed order is as even as the hardware's (persistent_order.h). The tiles of a
// causal mask have from one turn to all of them.
bool PrefersPersistent(const Plan& plan, const Values& v) {
  // The end of a tile costs about a turn. More tiles than the last constant are not looked at.
  constexpr int64_t kFewTurns = 32, kEnd = 1, kMostTiles = 1 << 16;
  constexpr double kAsEven = 1.05;
  const int64_t turns = CeilDiv(plan.keys, v.at("bn")), rows = CeilDiv(plan.rows, v.at("bm"));
  if (turns > kFewTurns) return false;
  std::vector<double> tiles(std::min(GridTiles(plan, v), kMostTiles), static_cast<double>(turns + kEnd));
  const bool differ = v.at("skip") != 0 && IsCausal(plan.anatomy, plan.chain);
  for (size_t tile = 0; differ && tile < tiles.size(); ++tile) {
    const int64_t row = rows - 1 - static_cast<int64_t>(tile) % rows;
    tiles[tile] = static_cast<double>(CeilDiv(turns * (row + 1), rows) + kEnd);
  }
  const int64_t workers = PersistentBlocks(plan, v);
  return TimeInFixedOrder(tiles, workers) <= kAsEven * TimeWhenReady(tiles, workers);
}

// Keys in pages, whose numbers a tensor has: how many of them in a row lie in one page, from the beginning of
// the keys, or of a part of them. 0: there are no pages.
int64_t KeysOfPage(const Plan& plan) {
  int64_t keys = 0;
  const auto add = [&](const Expr& load, const Var& axis) {
    Visit(load, [&](const ExprNode& e) {
      int64_t divisor = 0;
      const bool divides = (e.op == Op::kFloorDiv || e.op == Op::kMod) && IsConstInt(e.args[1], &divisor);
      if (!divides || !UsesVar(e.args[0], axis.get())) return;
      keys = std::gcd(keys, divisor);
      Visit(e.args[0], [&](const ExprNode& begin) {
        if (begin.op == Op::kConst) keys = std::gcd(keys, begin.value.i);
      });
    });
  };
  add(plan.chain.keys, plan.anatomy.stage(plan.chain.scores).axes[plan.chain.stream_dim]);
  add(plan.chain.values, plan.anatomy.stage(plan.chain.sum).reduce_axes[0]);
  return keys;
}

// Whether keys and values end where their tensors do. The copy engine fetches zeros beyond that; parts of an
// axis, and keys in pages, end in the middle of a tensor.
bool EndWithTensors(const Plan& plan) {
  const auto ends = [&](const Expr& load, const Var& axis) {
    const int dim = PlainDim(load, axis);
    return dim >= 0 && load->buffer->shape[dim] == plan.keys;
  };
  return ends(plan.chain.keys, plan.anatomy.stage(plan.chain.scores).axes[plan.chain.stream_dim]) &&
         ends(plan.chain.values, plan.anatomy.stage(plan.chain.sum).reduce_axes[0]);
}

bool Legal(const Plan& plan, const Values& v) {
  // Tiles are whole instructions of rows and keys that are there.
  const bool is_padded = plan.tile_rows > plan.rows;
  if (is_padded ? v.at("bm") != plan.tile_rows : v.at("bm") > plan.tile_rows) return false;
  if (v.at("bn") > plan.keys) return false;
  // The copy engine fetches a tile at one place; and the numbers of pages end with the keys.
  if (v.contains("bias") && v.at("bias") != 0 &&
      std::ranges::none_of(plan.biases, [&](const TileBias& bias) { return InRing(plan, v, bias); }))
    return false;
  const int64_t page = KeysOfPage(plan);
  if (plan.in_warpgroups() && page != 0 && page % v.at("bn") != 0) return false;
  if (plan.in_warpgroups() && plan.keys % v.at("bn") != 0 && !EndWithTensors(plan)) return false;
  if (page != 0 && RoundUp(plan.keys, v.at("bn")) > RoundUp(plan.keys, page)) return false;
  if (v.at("persist") != 0 && !MayPersist(plan, v)) return false;
  const int64_t step = plan.in_warpgroups() ? 64 : 16, rows = RowsOfGroup(v);
  const int64_t warps = Threads(plan, v) / kWarp;
  if (v.at("bm") % (step * v.at("groups")) != 0 || rows % step != 0 || warps > 16) return false;
  return Registers(plan, v) <= MostRegisters(plan, v) && SharedBytes(plan, v) <= plan.target.smem_bytes;
}

bool HasFactor(const Plan& plan, int stage) {
  const Stage& tile = plan.anatomy.stage(stage);
  return tile.reduce == ReduceOp::kNone && PositiveFactorOf(tile.value).factor != 1;
}

class GpuStreamEmitter {
 public:
  GpuStreamEmitter(const Plan& plan, const Values& v, TraceBuilder* b)
      : plan_(plan), chain_(plan.chain), v_(v), b_(b) {}

  void Emit() {
    for (const int tile : KeptTiles(plan_.anatomy, chain_)) LeaveFactorToReaders(tile);
    loops_ = SplitChain(plan_.anatomy, chain_, v_.at("bm"), v_.at("bn"), b_);
    SharedBiasesTogether();
    std::string value = loops_.value;
    if (plan_.value_tile != plan_.values) {
      b_->Split(value, {plan_.value_tile});
      loops_.outer.push_back(SubLoop(value, 0));
      value = SubLoop(value, 1);
    }
    std::vector<std::string> order = loops_.outer;
    order.insert(order.end(), {loops_.step, loops_.row, loops_.key, value});
    b_->Reorder(order);
    const std::string blocks = b_->Fuse(loops_.outer);
    b_->Bind(blocks, "block");
    EmitChain(plan_.anatomy, chain_, loops_, blocks, b_, [&](int stage) { return PlaceUnscaled(stage); });
    EmitScores(blocks);
    FetchBiases();
    Stage(plan_.sum(), chain_.values, loops_.step, plan_.value_tile);
    b_->TensorizeTile(loops_.row, plan_.instruction.name, v_.at("groups"), 1);
    b_->Pipeline(loops_.step, plan_.in_warpgroups() ? "bulk" : "threads", v_.at("stages"));
    const bool is_causal = v_.at("skip") != 0 && IsCausal(plan_.anatomy, chain_);
    // The first turn stands before the loop (rotate_products). With masked keys in it the loop has fewer.
    if (is_causal && plan_.in_warpgroups() && v_.at("bn") < plan_.keys) b_->Reverse(loops_.step);
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
    // The last rows of a causal mask have the most keys.
    if (is_causal) b_->Reverse(blocks);
    if (v_.at("persist") != 0) b_->Persist(blocks, PersistentBlocks(plan_, v_));
  }

 private:
  // Blocks that read the same tiles of biases, for several batches, follow each other: while they run beside
  // each other, one of them brings the tiles into the L2 cache.
  void SharedBiasesTogether() {
    for (const int a : chain_.batch_axes) {
      if (plan_.biases.empty() || BiasesDependOn(plan_.anatomy, chain_, plan_.biases, a)) continue;
      const std::string loop = plan_.anatomy.Loop(chain_.sum, a);
      std::erase(loops_.outer, loop);
      loops_.outer.push_back(loop);
    }
  }

  // A tile with a positive factor is computed without it: exponents have it in a constant.
  std::string NameOf(int tile) const {
    return absl::StrCat(plan_.anatomy.name(tile), HasFactor(plan_, tile) ? ".x" : "");
  }
  void LeaveFactorToReaders(int tile) {
    if (!HasFactor(plan_, tile)) return;
    b_->FactorStage(plan_.anatomy.name(tile));
    b_->Inline(plan_.anatomy.name(tile));
  }
  bool PlaceUnscaled(int stage) {
    if (!HasFactor(plan_, stage)) return false;
    b_->ComputeAt(NameOf(stage), loops_.step);
    return true;
  }

  void EmitScores(const std::string& blocks) {
    const std::string s = plan_.scores();
    const std::string rows = absl::StrCat(s, ".a", plan_.row_dim),
                      keys = absl::StrCat(s, ".a", chain_.stream_dim);
    std::string depth = plan_.anatomy.ReduceLoop(chain_.scores, 0);
    std::vector<std::string> order;
    if (plan_.depth_tile != plan_.depth) {
      b_->Split(depth, {plan_.depth_tile});
      order.push_back(SubLoop(depth, 0));
      depth = SubLoop(depth, 1);
    }
    order.insert(order.end(), {rows, keys, depth});
    b_->Reorder(order);
    b_->CacheWrite(s, loops_.step);
    b_->Inline(absl::StrCat(s, ".w"));
    if (plan_.computes_queries) {
      ComputeQueries(blocks);
    } else {
      const std::string tile = Stage(s, chain_.queries, blocks, plan_.depth_tile);
      // The engine that copies keys fetches plain rows, too (passes/block_tiles.h).
      if (!plan_.fetches_queries) CopyByThreads(tile, {rows, depth}, s);
    }
    Stage(s, chain_.keys, loops_.step, plan_.depth_tile);
    b_->TensorizeTile(rows, plan_.instruction.name, v_.at("groups"), 1);
  }

  // Each thread has the elements of its scores before these are there: loads wait while products run, or the
  // engine that copies keys copies them, too.
  void FetchBiases() {
    for (const TileBias& bias : plan_.biases) {
      const std::string &tensor = bias.load->buffer->name, tile = NameOf(bias.tile);
      if (!InRing(plan_, v_, bias)) {
        b_->CacheRead(tensor, tile, loops_.step, "local");
        continue;
      }
      const std::string staged = b_->StageShared(tile, tensor, loops_.step, "shared");
      b_->Layout(staged, 0, SwizzleOf(v_.at("bn") * DTypeBytes(bias.load->dtype)));
    }
  }

  // The tile of rows is copied once.
  void CopyByThreads(const std::string& tile, const std::vector<std::string>& loops,
                     const std::string& block) {
    std::vector<std::string> own;
    for (const std::string& loop : loops) own.push_back(absl::StrCat(tile, loop.substr(block.size())));
    ByThreads(own);
  }

  // Or computed, as a tile in shared memory.
  void ComputeQueries(const std::string& blocks) {
    const std::string& tile = chain_.queries->buffer->name;
    const SharedTile layout = TileOf(plan_, plan_.depth_tile);
    b_->ComputeAt(tile, blocks);
    b_->SetScope(tile, "shared");
    b_->Layout(tile, layout.pad, layout.swizzle);
    const int rank = chain_.queries->buffer->rank();
    ByThreads({absl::StrCat(tile, ".a", rank - 2), absl::StrCat(tile, ".a", rank - 1)});
  }

  // By all threads that compute, a vector each.
  void ByThreads(const std::vector<std::string>& loops) {
    const std::string all = b_->Fuse(loops);
    b_->Split(all, {Threads(plan_, v_), kAccessBytes / plan_.element()});
    b_->Bind(SubLoop(all, 1), "thread");
    b_->Bind(SubLoop(all, 2), "vector");
  }

  // A tile in shared memory of what the block reads under the loop; returns its name.
  std::string Stage(const std::string& block, const Expr& load, const std::string& loop,
                    int64_t row_elements) {
    const SharedTile layout = TileOf(plan_, row_elements);
    std::string tile = b_->StageShared(block, load->buffer->name, loop, "shared");
    b_->Layout(tile, layout.pad, layout.swizzle);
    return tile;
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const Values& v_;
  TraceBuilder* b_;
  StreamLoops loops_;
};

// The operands are plain tensors, contiguous along the depth or the values.
absl::Status CheckOperands(const Plan& plan) {
  const StreamChain& chain = plan.chain;
  const Stage &scores = plan.anatomy.stage(chain.scores), &sum = plan.anatomy.stage(chain.sum);
  if (scores.reduce_axes.size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the product ", plan.scores(), " sums along several axes; expected one"));
  }
  const Var &depth = scores.reduce_axes[0], &value = sum.axes[chain.value_axes[0]];
  for (const Expr& load : {chain.queries, chain.keys}) {
    if (!IsLastIndex(load, depth)) return NotLast(load, depth, plan.scores());
  }
  if (!IsLastIndex(chain.values, value)) return NotLast(chain.values, value, plan.sum());
  // stage_shared takes the left one of two reads of a tensor first, and the queries are staged first.
  const std::vector<Expr>& first = LoadsOf(scores.value).front()->args;
  const bool in_order = chain.queries->buffer != chain.keys->buffer ||
                        std::equal(first.begin(), first.end(), chain.queries->args.begin(),
                                   [](const Expr& a, const Expr& b) { return StructurallyEqual(a, b); });
  if (in_order) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("queries and keys are both of ", chain.keys->buffer->name,
                                                    ", keys as the left factor; expected queries there"));
}

// The copy engine fetches rows of whole 16 bytes, of tensors that are inputs or complete before the launch.
bool CanFetch(const Plan& plan) {
  return plan.depth * plan.element() % kAccessBytes == 0 && plan.values * plan.element() % kAccessBytes == 0;
}

// A tile of queries is a box of whole rows of a tensor.
bool CanFetchQueries(const Plan& plan) {
  const Stage& scores = plan.anatomy.stage(plan.chain.scores);
  const Expr& load = plan.chain.queries;
  const Var& row = scores.axes[plan.row_dim];
  const int dim = PlainDim(load, row);
  if (!plan.in_warpgroups() || plan.computes_queries || dim < 0) return false;
  for (size_t d = 0; d < load->args.size(); ++d) {
    if (static_cast<int>(d) != dim && UsesVar(load->args[d], row.get())) return false;
  }
  return load->buffer->shape[dim] == plan.rows && plan.tile_rows == plan.rows;
}

absl::StatusOr<Plan> StreamPlanOf(const Anatomy& anatomy, const Group& group, const StreamChain& chain,
                                  const Instruction& instruction, const Target& target) {
  Plan plan{anatomy, chain, target, instruction};
  const int queries = anatomy.ProducerOf(chain.queries->buffer.get());
  plan.computes_queries = std::ranges::count(group.members, queries) > 0;
  MYCC_RETURN_IF_ERROR(CheckOperands(plan));
  const Stage &scores = anatomy.stage(chain.scores), &sum = anatomy.stage(chain.sum);
  plan.row_dim = chain.dim_of_axis[chain.row_axes.back()];
  plan.rows = sum.axes[chain.row_axes.back()]->extent;
  plan.tile_rows = chain.weights->buffer->shape[plan.row_dim];
  plan.keys = sum.reduce_axes[0]->extent;
  plan.depth = scores.reduce_axes[0]->extent;
  plan.values = sum.axes[chain.value_axes[0]]->extent;
  plan.depth_tile = RoundUp(plan.depth, instruction.k);
  plan.value_tile = RoundUp(plan.values, 16);
  plan.fetches_queries = CanFetchQueries(plan);
  plan.biases = TileBiasesOf(anatomy, chain);
  return plan;
}

Values StreamDefaultsOf(const Part& part) {
  Values defaults;
  for (size_t d = 0; d < part.decisions.size(); ++d) defaults.Add(part.decisions[d].name, part.defaults[d]);
  return defaults;
}

// Persistent blocks are the default where they are faster. REQUIRES: `persist` is the last decision.
void PreferPersistent(const Plan& plan, Part* part) {
  Values persistent = StreamDefaultsOf(*part);
  persistent["persist"] = 1;
  if (part->legal(persistent) && PrefersPersistent(plan, persistent)) part->defaults.back() = 1;
}

absl::Status CheckExtents(const Plan& plan) {
  const std::string sizes =
      absl::StrCat("heads of ", plan.depth, " numbers, and of ", plan.values, " in values; ");
  if (!CanFetch(plan)) {
    return absl::FailedPreconditionError(absl::StrCat(
        sizes, "expected multiples of ", kAccessBytes / plan.element(), ", as copies of 16 bytes need"));
  }
  constexpr int64_t kMost = 256;
  if (plan.value_tile > kMost || plan.depth_tile > kMost)
    return absl::FailedPreconditionError(absl::StrCat(sizes, "expected at most ", kMost));
  // A computed tile has no padding of its own.
  if (plan.computes_queries && plan.depth_tile != plan.depth) {
    return absl::FailedPreconditionError(
        absl::StrCat(sizes, "few queries, and rows of several heads in one tile, expect multiples of ",
                     plan.instruction.k));
  }
  return absl::OkStatus();
}

absl::StatusOr<Part> PartOf(const Anatomy& anatomy, const Group& group, const StreamChain& chain,
                            const Instruction& instruction, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Plan plan, StreamPlanOf(anatomy, group, chain, instruction, target));
  const bool wide = plan.in_warpgroups();
  MYCC_RETURN_IF_ERROR(CheckExtents(plan));
  Part part;
  part.prefix = absl::StrCat(anatomy.name(chain.sum), ".");
  part.rule = wide ? "streamed_warp_specialized" : "streamed_multistage";
  const std::vector<int64_t> rows =
      wide ? std::vector<int64_t>{64, 128, 192} : std::vector<int64_t>{16, 32, 64, 128};
  const std::vector<int64_t> keys =
      wide ? std::vector<int64_t>{64, 80, 96, 112, 128, 160, 176} : std::vector<int64_t>{16, 32, 64, 128};
  if (plan.tile_rows < rows.front() || plan.keys < keys.front()) {
    return absl::FailedPreconditionError(absl::StrCat(plan.tile_rows, " queries and ", plan.keys,
                                                      " keys; expected at least ", rows.front(), " and ",
                                                      keys.front()));
  }
  if (wide && KeysOfPage(plan) % keys.front() != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("expected pages of a multiple of ", keys.front(), " keys"));
  part.Decide("bm", rows, wide ? 128 : 64);
  part.Decide("bn", keys, 64);
  part.Decide("groups", wide ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1, 2, 4, 8},
              wide ? 2 : 4);
  part.Decide("stages", {2, 3, 4}, wide ? 3 : 2);
  DecideSkip(anatomy, chain, &part);
  // Tiles of biases in the ring wait for nobody, and registers for them are few.
  if (wide && !plan.biases.empty()) part.Decide("bias", {0, 1}, 1);
  part.Decide("persist", wide ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, 0);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { GpuStreamEmitter(plan, v, b).Emit(); };
  MakeDefaultsLegal(&part);
  if (!part.legal(StreamDefaultsOf(part)))
    return absl::FailedPreconditionError(
        "no tile fits the registers and the shared memory of a multiprocessor");
  if (wide) PreferPersistent(plan, &part);
  return part;
}

}  // namespace

absl::StatusOr<std::vector<Part>> GpuStreamedParts(const Anatomy& anatomy, const Group& group,
                                                   const Target& target) {
  std::vector<Part> parts;
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return absl::NotFoundError("no chain");
  const auto is_operand = [&](const Expr& load) { return load->dtype == chain->queries->dtype; };
  const std::vector<Expr> loads = {chain->weights, chain->values, chain->queries, chain->keys};
  absl::Status refusal = OtherTypes(*chain, "f16 or bf16");
  for (const InstructionClass kind : {InstructionClass::kWarpgroup, InstructionClass::kWarp}) {
    for (const Instruction* row : InstructionsOf(target)) {
      const bool serves = row->kind == kind && row->operand == chain->queries->dtype &&
                          DTypeBytes(row->operand) == 2 && std::ranges::all_of(loads, is_operand) &&
                          row->accumulator == anatomy.stage(chain->sum).output->dtype &&
                          row->accumulator == anatomy.stage(chain->scores).output->dtype;
      if (!serves) continue;
      absl::StatusOr<Part> part = PartOf(anatomy, group, *chain, *row, target);
      if (part.ok()) parts.push_back(*std::move(part));
      if (!part.ok()) refusal = part.status();
      break;  // rows of other depths are for traces alone
    }
  }
  if (parts.empty()) return refusal;
  return parts;
}

}  // namespace mycc

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

#include "absl/strings/str_cat.h"
#include "codegen/schedule/instructions.h"
#include "tuner/space/rules/cuda/gpu.h"
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
  int64_t depth = 0, values = 0;           // of the scores' sum, and of the result's last axis
  int64_t depth_tile = 0, value_tile = 0;  // rounded up to whole instructions

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

int64_t SharedBytes(const Plan& plan, const Values& v) {
  constexpr int64_t kAlignment = 1024, kBarriers = 1024;
  const int64_t ring =
      TileBytes(plan, v.at("bn"), plan.depth_tile) + TileBytes(plan, v.at("bn"), plan.value_tile);
  return TileBytes(plan, v.at("bm"), plan.depth_tile) + v.at("stages") * ring + 3 * kAlignment + kBarriers;
}

int64_t RowsOfGroup(const Values& v) { return v.at("bm") / v.at("groups"); }

// Registers of a thread: sums, scores, and the weights' narrow copy.
int64_t Registers(const Plan& plan, const Values& v) {
  const int64_t lanes = plan.in_warpgroups() ? 128 : kWarp, rows = RowsOfGroup(v);
  return rows * plan.value_tile / lanes + rows * v.at("bn") / lanes * 3 / 2;
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

// Persistent blocks: as many as the multiprocessors hold, whose rings are full when a tile begins. They have
// no loops of computed length, so they skip nothing.
int64_t PersistentBlocks(const Plan& plan, const Values& v) {
  const int64_t on_sm =
      v.at("groups") == 1 ? std::min<int64_t>(2, plan.target.smem_bytes / SharedBytes(plan, v)) : 1;
  return plan.target.sms * std::max<int64_t>(on_sm, 1);
}
bool MayPersist(const Plan& plan, const Values& v) {
  return plan.in_warpgroups() && v.at("skip") == 0 && GridTiles(plan, v) > PersistentBlocks(plan, v);
}

bool Legal(const Plan& plan, const Values& v) {
  // Tiles are whole instructions of rows and keys that are there.
  if (v.at("bm") > plan.rows || v.at("bn") > plan.keys) return false;
  if (v.at("persist") != 0 && !MayPersist(plan, v)) return false;
  const int64_t step = plan.in_warpgroups() ? 64 : 16, rows = RowsOfGroup(v);
  const int64_t warps = Threads(plan, v) / kWarp;
  if (v.at("bm") % (step * v.at("groups")) != 0 || rows % step != 0 || warps > 16) return false;
  const int64_t most = plan.in_warpgroups() && v.at("groups") < 3 ? 210 : 150;
  return Registers(plan, v) <= most && SharedBytes(plan, v) <= plan.target.smem_bytes;
}

class GpuStreamEmitter {
 public:
  GpuStreamEmitter(const Plan& plan, const Values& v, TraceBuilder* b)
      : plan_(plan), chain_(plan.chain), v_(v), b_(b) {}

  void Emit() {
    loops_ = SplitChain(plan_.anatomy, chain_, v_.at("bm"), v_.at("bn"), b_);
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
    EmitChain(plan_.anatomy, chain_, loops_, blocks, b_);
    EmitScores(blocks);
    Stage(plan_.sum(), chain_.values, loops_.step, plan_.value_tile);
    b_->TensorizeTile(loops_.row, plan_.instruction.name, v_.at("groups"), 1);
    b_->Pipeline(loops_.step, plan_.in_warpgroups() ? "bulk" : "threads", v_.at("stages"));
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
    // The last rows of a causal mask have the most keys.
    if (v_.at("skip") != 0) b_->Reverse(blocks);
    if (v_.at("persist") != 0) b_->Persist(blocks, PersistentBlocks(plan_, v_));
  }

 private:
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
    Stage(s, chain_.queries, blocks, plan_.depth_tile);
    CopyByThreads(absl::StrCat(chain_.queries->buffer->name, ".s"), {rows, depth}, s);
    Stage(s, chain_.keys, loops_.step, plan_.depth_tile);
    b_->TensorizeTile(rows, plan_.instruction.name, v_.at("groups"), 1);
  }

  // The tile of rows is copied once, by all threads that compute, a vector each.
  void CopyByThreads(const std::string& tile, const std::vector<std::string>& loops,
                     const std::string& block) {
    std::vector<std::string> own;
    for (const std::string& loop : loops) own.push_back(absl::StrCat(tile, loop.substr(block.size())));
    const std::string all = b_->Fuse(own);
    b_->Split(all, {Threads(plan_, v_), kAccessBytes / plan_.element()});
    b_->Bind(SubLoop(all, 1), "thread");
    b_->Bind(SubLoop(all, 2), "vector");
  }

  // A tile in shared memory of what the block reads under the loop.
  void Stage(const std::string& block, const Expr& load, const std::string& loop, int64_t row_elements) {
    const SharedTile layout = TileOf(plan_, row_elements);
    b_->StageShared(block, load->buffer->name, loop, "shared");
    b_->Layout(absl::StrCat(load->buffer->name, ".s"), layout.pad, layout.swizzle);
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const Values& v_;
  TraceBuilder* b_;
  StreamLoops loops_;
};

// The operands are plain tensors of the instruction's type, contiguous along the depth or the values.
bool HasPlainOperands(const Plan& plan) {
  const StreamChain& chain = plan.chain;
  const Stage &scores = plan.anatomy.stage(chain.scores), &sum = plan.anatomy.stage(chain.sum);
  if (scores.reduce_axes.size() != 1) return false;
  for (const Expr& load : {chain.weights, chain.values, chain.queries, chain.keys}) {
    if (load->dtype != plan.instruction.operand) return false;
  }
  const Var &depth = scores.reduce_axes[0], &value = sum.axes[chain.value_axes[0]];
  const auto is_last = [](const Expr& load, const Var& var) {
    return PlainDim(load, var) == load->buffer->rank() - 1;
  };
  // The tiles of two reads of one tensor would have one name.
  const bool differ = chain.queries->buffer != chain.keys->buffer &&
                      chain.keys->buffer != chain.values->buffer &&
                      chain.queries->buffer != chain.values->buffer;
  return differ && is_last(chain.queries, depth) && is_last(chain.keys, depth) &&
         is_last(chain.values, value);
}

// The copy engine fetches rows of whole 16 bytes, of tensors that are inputs or complete before the launch.
bool CanFetch(const Plan& plan) {
  return plan.depth * plan.element() % kAccessBytes == 0 && plan.values * plan.element() % kAccessBytes == 0;
}

std::optional<Part> PartOf(const Anatomy& anatomy, const StreamChain& chain, const Instruction& instruction,
                           const Target& target) {
  Plan plan{anatomy, chain, target, instruction};
  if (!HasPlainOperands(plan)) return std::nullopt;
  const Stage &scores = anatomy.stage(chain.scores), &sum = anatomy.stage(chain.sum);
  plan.row_dim = chain.dim_of_axis[chain.row_axes.back()];
  plan.rows = sum.axes[chain.row_axes.back()]->extent;
  plan.keys = sum.reduce_axes[0]->extent;
  plan.depth = scores.reduce_axes[0]->extent;
  plan.values = sum.axes[chain.value_axes[0]]->extent;
  plan.depth_tile = RoundUp(plan.depth, instruction.k);
  plan.value_tile = RoundUp(plan.values, 16);
  const bool wide = plan.in_warpgroups();
  if (!CanFetch(plan) || plan.value_tile > 256 || plan.depth_tile > 256) return std::nullopt;
  Part part;
  part.prefix = absl::StrCat(anatomy.name(chain.sum), ".");
  part.rule = wide ? "streamed_warp_specialized" : "streamed_multistage";
  const std::vector<int64_t> rows =
      wide ? std::vector<int64_t>{64, 128, 192} : std::vector<int64_t>{16, 32, 64, 128};
  const std::vector<int64_t> keys =
      wide ? std::vector<int64_t>{64, 80, 96, 112, 128, 160, 176} : std::vector<int64_t>{16, 32, 64, 128};
  if (plan.rows < rows.front() || plan.keys < keys.front()) return std::nullopt;
  part.Decide("bm", rows, wide ? 128 : 64);
  part.Decide("bn", keys, 64);
  part.Decide("groups", wide ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1, 2, 4, 8},
              wide ? 2 : 4);
  part.Decide("stages", {2, 3, 4}, wide ? 3 : 2);
  DecideSkip(anatomy, chain, &part);
  part.Decide("persist", wide ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}, 0);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { GpuStreamEmitter(plan, v, b).Emit(); };
  MakeDefaultsLegal(&part);
  return part;
}

}  // namespace

std::vector<Part> GpuStreamedParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  std::vector<Part> parts;
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return parts;
  for (const InstructionClass kind : {InstructionClass::kWarpgroup, InstructionClass::kWarp}) {
    for (const Instruction& row : InstructionsOf(target)) {
      const bool serves = row.kind == kind && row.operand == chain->queries->dtype &&
                          DTypeBytes(row.operand) == 2 &&
                          row.accumulator == anatomy.stage(chain->sum).output->dtype &&
                          row.accumulator == anatomy.stage(chain->scores).output->dtype;
      if (!serves) continue;
      if (std::optional<Part> part = PartOf(anatomy, *chain, row, target)) parts.push_back(*std::move(part));
    }
  }
  return parts;
}

}  // namespace mycc

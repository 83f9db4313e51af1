// The CPU rule for a chain of stages along one axis (stream_chain.h), such as attention: one pass over the
// axis, in blocks, with running reductions.
//
//   parallel batches, blocks of rows:
//     the rows' operand, turned over: lanes run along the rows
//     for blocks of the axis:
//       masks that lie along the axis, turned over
//       scores[keys, rows] = register tiles of products
//       running reductions, vectors of rows; the sums so far corrected
//       weights[keys, rows]
//       sums[rows, values] += register tiles of products
//     result = sums / ...
#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"
#include "codegen/target/instructions.h"
#include "tuner/space/part.h"
#include "tuner/space/rules/contraction_tiles.h"
#include "tuner/space/rules/stream_steps.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

struct Plan {
  const Anatomy anatomy;
  const StreamChain chain;
  Target target;
  int lanes;
  std::string instruction;
  Buffer rows_operand;  // of the scores, with the rows
  int rows_dim = -1;    // its dimension along them
  int row_dim = -1;     // of a tile, along the rows
  int64_t rows = 0, keys = 0, values = 0;

  std::string sum() const { return anatomy.name(chain.sum); }
  std::string scores() const { return anatomy.name(chain.scores); }
  int row_axis() const { return chain.row_axes.back(); }
  // The row dimension of a reduction's result.
  int row_dim_of_result() const { return row_dim > chain.stream_dim ? row_dim - 1 : row_dim; }
};

class Emitter {
 public:
  Emitter(const Plan& plan, const Values& v, TraceBuilder* b)
      : plan_(plan), chain_(plan.chain), v_(v), b_(b), bm_(v.at("bm")) {}

  void Emit() {
    loops_ = SplitChain(plan_.anatomy, chain_, bm_, v_.at("bn"), b_);
    std::vector<std::string> order = loops_.outer;
    order.insert(order.end(), {loops_.step, loops_.row, loops_.value, loops_.key});
    b_->Reorder(order);
    if (v_.at("par")) b_->BindAll(loops_.outer, "parallel");
    EmitChain(plan_.anatomy, chain_, loops_, loops_.outer.back(), b_);
    b_->SetScope(absl::StrCat(plan_.sum(), ".acc"), "local");
    TurnTiles();
    EmitScores();
    for (const int s : KeptTiles(plan_.anatomy, chain_)) TurnMasks(s);
    for (const int s : chain_.reductions) TurnMasks(s);
    for (const int s : KeptTiles(plan_.anatomy, chain_)) EmitTile(plan_.anatomy.name(s));
    for (const int s : chain_.reductions) EmitReduction(plan_.anatomy.name(s));
    EmitSumTile(plan_.anatomy, chain_, loops_, {v_.at("sum_rows"), v_.at("sum_vectors")}, plan_.lanes,
                plan_.instruction, b_);
    EmitSkip(plan_.anatomy, chain_, loops_, v_, b_);
  }

 private:
  // The rows last.
  static std::vector<std::string> Turned(int rank, int last) {
    std::vector<std::string> components;
    for (int d = 0; d < rank; ++d) {
      if (d != last) components.push_back(absl::StrCat(d));
    }
    components.push_back(absl::StrCat(last));
    return components;
  }

  void TurnTiles() {
    TurnOperand(plan_.rows_operand, plan_.scores(), loops_.outer.back(), plan_.rows_dim);
    const int tile_rank = static_cast<int>(chain_.dim_of_axis.size());
    b_->Pack(plan_.scores(), Turned(tile_rank, plan_.row_dim));
    for (const int s : KeptTiles(plan_.anatomy, chain_))
      b_->Pack(plan_.anatomy.name(s), Turned(tile_rank, plan_.row_dim));
  }

  // A copy whose lanes run along dimension `along`, as it is written: 16 vectors at a time are turned in
  // registers. The tensor's own lie along its last dimension.
  void TurnOperand(const Buffer& tensor, const std::string& block, const std::string& loop, int along) {
    const std::string copy = b_->CacheRead(tensor->name, block, loop, "local");
    const int rank = tensor->rank();
    b_->Pack(copy, Turned(rank, along));
    const std::string rows = Dim(copy, along), last = Dim(copy, rank - 1);
    b_->Split(rows, {plan_.lanes});
    b_->Split(last, {plan_.lanes});
    b_->Reorder({SubLoop(rows, 0), SubLoop(last, 0), SubLoop(last, 1), SubLoop(rows, 1)});
    b_->Bind(SubLoop(last, 1), "unroll");
    b_->Bind(SubLoop(rows, 1), "vector");
  }

  // Other tensors that a block reads for each row and each place of the axis, such as masks, that lie along
  // the axis.
  void TurnMasks(int s) {
    const Stage& stage = plan_.anatomy.stage(s);
    const bool is_tile = stage.reduce == ReduceOp::kNone;
    std::set<const BufferNode*> turned;
    VisitMasks(stage, stage.axes[is_tile ? plan_.row_dim : plan_.row_dim_of_result()],
               is_tile ? stage.axes[chain_.stream_dim] : stage.reduce_axes[0],
               [&](const ExprNode& load, int rows) {
                 if (turned.insert(load.buffer.get()).second)
                   TurnOperand(load.buffer, plan_.anatomy.name(s), loops_.step, rows);
               });
  }

  void VisitMasks(const Stage& stage, const Var& row, const Var& place,
                  const std::function<void(const ExprNode& load, int rows)>& visit) const {
    for (const ExprNode* load : LoadsOf(stage.value)) {
      const int producer = plan_.anatomy.ProducerOf(load->buffer.get());
      const bool is_inlined =
          std::ranges::count(chain_.tiles, producer) > 0 && IsInlinedTile(plan_.anatomy, chain_, producer);
      if (is_inlined) {
        const Stage& tile = plan_.anatomy.stage(producer);
        VisitMasks(tile, tile.axes[plan_.row_dim], tile.axes[chain_.stream_dim], visit);
      }
      if (std::ranges::count(members_, producer) > 0) continue;
      const int rows = PlainDim(load->args, row);
      if (rows >= 0 && PlainDim(load->args, place) == load->buffer->rank() - 1) visit(*load, rows);
    }
  }

  void EmitScores() {
    const std::string s = plan_.scores(), rows = Dim(s, plan_.row_dim), keys = Dim(s, chain_.stream_dim);
    const int64_t nr = v_.at("score_vectors") * plan_.lanes;
    b_->Split(rows, {nr});
    b_->Split(keys, {v_.at("score_keys")});
    std::vector<std::string> order = {SubLoop(rows, 0), SubLoop(keys, 0)};
    const Stage& stage = plan_.anatomy.stage(chain_.scores);
    for (size_t r = 0; r < stage.reduce_axes.size(); ++r)
      order.push_back(plan_.anatomy.ReduceLoop(chain_.scores, static_cast<int>(r)));
    const std::string depth = order.back();
    order.insert(order.end(), {SubLoop(keys, 1), SubLoop(rows, 1)});
    b_->Reorder(order);
    b_->CacheWrite(s, SubLoop(keys, 0));
    b_->Tensorize(depth, plan_.instruction);
    for (const char* part : {".i", ".w"}) {
      const std::string copy = absl::StrCat(s, part);
      b_->Bind(SubLoop(Dim(copy, chain_.stream_dim), 1), "unroll");
      b_->Vectorize(SubLoop(Dim(copy, plan_.row_dim), 1), nr, plan_.lanes);
    }
  }

  void EmitTile(const std::string& tile) {
    const std::string rows = Dim(tile, plan_.row_dim), keys = Dim(tile, chain_.stream_dim);
    b_->Split(rows, {plan_.lanes});
    b_->Reorder({keys, SubLoop(rows, 0), SubLoop(rows, 1)});
    b_->Bind(SubLoop(rows, 0), "unroll");
    b_->Bind(SubLoop(rows, 1), "vector");
  }

  void EmitReduction(const std::string& reduction) {
    const int dim = plan_.row_dim_of_result();
    const std::string rows = Dim(reduction, dim), keys = absl::StrCat(reduction, ".r0");
    const int64_t together = std::min<int64_t>(bm_, 4 * plan_.lanes);
    b_->Split(rows, {together});
    b_->Reorder({SubLoop(rows, 0), keys, SubLoop(rows, 1)});
    b_->CacheWrite(reduction, SubLoop(rows, 0));
    b_->Vectorize(SubLoop(rows, 1), together, plan_.lanes);
    for (const char* part : {".i2", ".w2"})
      b_->Vectorize(SubLoop(Dim(absl::StrCat(reduction, part), dim), 1), together, plan_.lanes);
    EmitRowVectors(plan_.anatomy, chain_, reduction, dim, plan_.lanes, b_);
  }

  const Plan& plan_;
  const StreamChain& chain_;
  const std::vector<int> members_ = chain_.Members();
  const Values& v_;
  TraceBuilder* b_;
  const int64_t bm_;
  StreamLoops loops_;
};

bool Legal(const Plan& plan, const Values& v) {
  const int64_t registers = TileRegisters(plan.target), bm = v.at("bm");
  return FitsRegisters(v.at("score_keys"), v.at("score_vectors"), registers) &&
         FitsRegisters(v.at("sum_rows"), v.at("sum_vectors"), registers) &&
         bm % (v.at("score_vectors") * plan.lanes) == 0 && v.at("score_keys") <= v.at("bn") &&
         v.at("sum_rows") <= bm;
}

// False when the queries are no plain tensor along the rows and the depth.
bool FindOperands(Plan* plan) {
  const StreamChain& chain = plan->chain;
  const Stage& scores = plan->anatomy.stage(chain.scores);
  plan->row_dim = chain.dim_of_axis[plan->row_axis()];
  plan->rows_operand = chain.queries->buffer;
  plan->rows_dim = PlainDim(chain.queries, scores.axes[plan->row_dim]);
  const int depth = PlainDim(chain.queries, scores.reduce_axes.back());
  return plan->rows_dim >= 0 && depth == plan->rows_operand->rank() - 1 && depth != plan->rows_dim;
}

// The instruction for both products, of f32.
std::optional<std::string> InstructionOf(const StreamChain& chain, const Target& target) {
  for (const Expr& load : {chain.weights, chain.values, chain.queries, chain.keys}) {
    if (load->dtype != DType::kF32) return std::nullopt;
  }
  const std::vector<Instruction> rows = CpuInstructionsFor(DType::kF32, DType::kF32, DType::kF32, target);
  if (rows.empty()) return std::nullopt;
  return rows.front().name;
}

// The tile of sums with the most products for each element that it loads.
TileChoice BestFit(const Target& target, const std::vector<int64_t>& rows,
                   const std::vector<int64_t>& vectors) {
  TileChoice best{rows.front(), vectors.front()};
  const auto value = [](int64_t mr, int64_t nv) {
    return static_cast<double>(mr * nv) / static_cast<double>(mr + nv);
  };
  for (const int64_t mr : rows) {
    for (const int64_t nv : vectors) {
      if (FitsRegisters(mr, nv, TileRegisters(target)) && value(mr, nv) > value(best.mr, best.nv))
        best = {mr, nv};
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<Part> StreamedPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return absl::NotFoundError("no chain");
  const Stage& sum = anatomy.stage(chain->sum);
  Plan plan{anatomy, *chain, target};
  const std::optional<std::string> instruction = InstructionOf(*chain, target);
  if (!instruction || sum.output->dtype != DType::kF32) return OtherTypes(*chain, kStreamedTypes);
  if (!FindOperands(&plan)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the product ", plan.scores(), " reads ", PrintExpr(chain->queries),
                     "; expected its row as one index, and the depth as the last"));
  }
  plan.instruction = *instruction;
  plan.lanes = VectorBytes(target) / DTypeBytes(sum.output->dtype);
  plan.rows = sum.axes[plan.row_axis()]->extent;
  if (2 * plan.rows < plan.lanes) {
    return absl::FailedPreconditionError(absl::StrCat(
        plan.rows, plan.rows == 1 ? " query" : " queries",
        " of one head would leave most lanes of a vector empty; expected at least ", CeilDiv(plan.lanes, 2)));
  }
  plan.keys = sum.reduce_axes[0]->extent;
  plan.values = sum.axes[chain->value_axes[0]]->extent;
  const int64_t lanes = plan.lanes;
  const int64_t whole_rows = RoundUp(plan.rows, lanes), bm = std::min<int64_t>(4 * lanes, whole_rows);
  const std::vector<int64_t> tile_rows = {4, 6, 8, 12, 14, 16};
  std::vector<int64_t> vectors = {1, 2, 4};
  std::erase_if(vectors, [&](int64_t nv) { return bm % (nv * lanes) != 0; });
  const TileChoice scores = BestFit(target, tile_rows, vectors),
                   sums = BestFit(target, tile_rows, {1, 2, 3, 4});
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = "streamed";
  part.Decide("bm", UpTo({lanes, 2 * lanes, 3 * lanes, 4 * lanes, 6 * lanes, 8 * lanes}, whole_rows), bm);
  // Long blocks bring the sums into registers less often. With a mask, short ones leave out more.
  const std::vector<int64_t> blocks = UpTo({16, 32, 64, 128, 256}, RoundUp(plan.keys, 16));
  part.Decide("bn", blocks, LargestAtMost(blocks, HasMask(anatomy, *chain) ? 64 : 128));
  part.Decide("score_keys", tile_rows, scores.mr);
  part.Decide("score_vectors", {1, 2, 4}, scores.nv);
  part.Decide("sum_rows", tile_rows, sums.mr);
  part.Decide("sum_vectors", {1, 2, 3, 4}, sums.nv);
  DecideSkip(anatomy, *chain, &part);
  DecideThreads(anatomy, group, target, /*can=*/true, &part);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emitter(plan, v, b).Emit(); };
  return part;
}

}  // namespace mycc

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
#include "codegen/schedule/instructions.h"
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

std::string Sub(const std::string& loop, int part) { return absl::StrCat(loop, ".", part); }
std::string Dim(const std::string& block, int dim) { return absl::StrCat(block, ".a", dim); }

// `loop` of `extent` iterations in vectors; more than one of them unrolled.
void EmitVectors(const std::string& loop, int64_t extent, int lanes, TraceBuilder* b) {
  if (extent <= lanes) return b->Bind(loop, "vector");
  b->Split(loop, {lanes});
  b->Bind(Sub(loop, 0), "unroll");
  b->Bind(Sub(loop, 1), "vector");
}

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
    EmitSum();
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
    b_->Reorder({Sub(rows, 0), Sub(last, 0), Sub(last, 1), Sub(rows, 1)});
    b_->Bind(Sub(last, 1), "unroll");
    b_->Bind(Sub(rows, 1), "vector");
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
      const bool is_inlined = std::count(chain_.tiles.begin(), chain_.tiles.end(), producer) > 0 &&
                              IsInlinedTile(plan_.anatomy, chain_, producer);
      if (is_inlined) {
        const Stage& tile = plan_.anatomy.stage(producer);
        VisitMasks(tile, tile.axes[plan_.row_dim], tile.axes[chain_.stream_dim], visit);
      }
      if (std::count(members_.begin(), members_.end(), producer) > 0) continue;
      const int rows = PlainDim(*load, row);
      if (rows >= 0 && PlainDim(*load, place) == load->buffer->rank() - 1) visit(*load, rows);
    }
  }

  void EmitScores() {
    const std::string s = plan_.scores(), rows = Dim(s, plan_.row_dim), keys = Dim(s, chain_.stream_dim);
    const int64_t nr = v_.at("score_vectors") * plan_.lanes;
    b_->Split(rows, {nr});
    b_->Split(keys, {v_.at("score_keys")});
    std::vector<std::string> order = {Sub(rows, 0), Sub(keys, 0)};
    const Stage& stage = plan_.anatomy.stage(chain_.scores);
    for (size_t r = 0; r < stage.reduce_axes.size(); ++r)
      order.push_back(plan_.anatomy.ReduceLoop(chain_.scores, static_cast<int>(r)));
    const std::string depth = order.back();
    order.insert(order.end(), {Sub(keys, 1), Sub(rows, 1)});
    b_->Reorder(order);
    b_->CacheWrite(s, Sub(keys, 0));
    b_->Tensorize(depth, plan_.instruction);
    for (const char* part : {".i", ".w"}) {
      const std::string copy = absl::StrCat(s, part);
      b_->Bind(Sub(Dim(copy, chain_.stream_dim), 1), "unroll");
      EmitVectors(Sub(Dim(copy, plan_.row_dim), 1), nr, plan_.lanes, b_);
    }
  }

  void EmitTile(const std::string& tile) {
    const std::string rows = Dim(tile, plan_.row_dim), keys = Dim(tile, chain_.stream_dim);
    b_->Split(rows, {plan_.lanes});
    b_->Reorder({keys, Sub(rows, 0), Sub(rows, 1)});
    b_->Bind(Sub(rows, 0), "unroll");
    b_->Bind(Sub(rows, 1), "vector");
  }

  void EmitReduction(const std::string& reduction) {
    const int dim = plan_.row_dim_of_result();
    const std::string rows = Dim(reduction, dim), keys = absl::StrCat(reduction, ".r0");
    const int64_t together = std::min<int64_t>(bm_, 4 * plan_.lanes);
    b_->Split(rows, {together});
    b_->Reorder({Sub(rows, 0), keys, Sub(rows, 1)});
    b_->CacheWrite(reduction, Sub(rows, 0));
    EmitVectors(Sub(rows, 1), together, plan_.lanes, b_);
    for (const char* part : {".i2", ".w2"})
      EmitVectors(Sub(Dim(absl::StrCat(reduction, part), dim), 1), together, plan_.lanes, b_);
    for (const std::string& vector : StreamedVectors(plan_.anatomy, chain_, reduction)) {
      const std::string loop = Dim(vector, dim);
      b_->Split(loop, {plan_.lanes});
      b_->Bind(Sub(loop, 1), "vector");
    }
  }

  void EmitSum() {
    const std::string sum = plan_.sum();
    const int64_t mr = v_.at("sum_rows"), nr = v_.at("sum_vectors") * plan_.lanes;
    const std::string &rows = loops_.row, &values = loops_.value;
    b_->Split(rows, {mr});
    b_->Split(values, {nr});
    b_->Reorder({Sub(values, 0), Sub(rows, 0), loops_.key, Sub(rows, 1), Sub(values, 1)});
    b_->CacheWrite(sum, Sub(rows, 0));
    b_->Tensorize(loops_.key, plan_.instruction);
    const auto of = [&](const char* part, const std::string& loop) {
      return absl::StrCat(sum, part, loop.substr(sum.size()));
    };
    for (const char* part : {".i2", ".w2"}) {
      b_->Bind(of(part, Sub(rows, 1)), "unroll");
      EmitVectors(of(part, Sub(values, 1)), nr, plan_.lanes, b_);
    }
    for (const char* part : {".i", ".c", ".w"}) {
      const std::string loop = of(part, values);
      b_->Split(loop, {plan_.lanes});
      b_->Bind(Sub(loop, 0), "unroll");
      b_->Bind(Sub(loop, 1), "vector");
    }
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

std::vector<int64_t> UpTo(std::vector<int64_t> choices, int64_t most) {
  std::erase_if(choices, [&](int64_t choice) { return choice > most && choice != choices.front(); });
  return choices;
}

}  // namespace

std::optional<Part> StreamedPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  const std::optional<StreamChain> chain = FindStreamChain(anatomy, group.anchor);
  if (!chain) return std::nullopt;
  const Stage& sum = anatomy.stage(chain->sum);
  Plan plan{anatomy, *chain, target};
  if (!FindOperands(&plan)) return std::nullopt;
  const std::optional<std::string> instruction = InstructionOf(*chain, target);
  if (!instruction || sum.output->dtype != DType::kF32) return std::nullopt;
  plan.instruction = *instruction;
  plan.lanes = VectorBytes(target) / DTypeBytes(sum.output->dtype);
  plan.rows = sum.axes[plan.row_axis()]->extent;
  if (2 * plan.rows < plan.lanes) return std::nullopt;  // most lanes would be empty
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
  part.Decide("bn", UpTo({16, 32, 64, 128, 256}, RoundUp(plan.keys, 16)),
              std::min<int64_t>(64, RoundUp(plan.keys, 16)));
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

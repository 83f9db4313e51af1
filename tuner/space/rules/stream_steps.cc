#include "tuner/space/rules/stream_steps.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/correction.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {

std::vector<const ExprNode*> BiasesOf(const Anatomy& anatomy, const StreamChain& chain, int tile) {
  std::vector<const ExprNode*> biases = LoadsOf(anatomy.stage(tile).value);
  std::erase_if(biases, [&](const ExprNode* load) {
    const int producer = anatomy.ProducerOf(load->buffer.get());
    const bool is_member = producer == chain.scores || std::ranges::count(chain.tiles, producer) > 0;
    const Var& key = anatomy.stage(tile).axes[chain.stream_dim];
    return is_member ||
           std::ranges::none_of(load->args, [&](const Expr& index) { return UsesVar(index, key.get()); });
  });
  return biases;
}

absl::Status OtherTypes(const StreamChain& chain, const std::string& expected) {
  const auto type = [](const Expr& load) { return std::string(DTypeName(load->dtype)); };
  const bool lacks_rounding = chain.weights->dtype == DType::kF32 && chain.values->dtype != DType::kF32;
  return absl::InvalidArgumentError(absl::StrCat(
      "the products take ", type(chain.queries), " by ", type(chain.keys), " and ", type(chain.weights),
      " by ", type(chain.values), "; expected ", expected, " for all four, and sums in f32",
      lacks_rounding
          ? absl::StrCat(": round the weights, ", type(chain.values), "(", PrintExpr(chain.weights), ")")
          : ""));
}

std::string Dim(const std::string& block, int dim) { return absl::StrCat(block, ".a", dim); }

bool IsLastIndex(const Expr& load, const Var& axis) {
  return PlainDim(load, axis) == load->buffer->rank() - 1;
}

absl::Status NotLast(const Expr& load, const Var& axis, const std::string& product) {
  return absl::FailedPreconditionError(absl::StrCat("the product ", product, " reads ", PrintExpr(load),
                                                    "; expected ", axis->name, " as its last index"));
}

namespace {

// Operations on an element beyond those that stream_reduction makes part of an exponent: a mask, and a
// product with a positive number.
int OwnOps(const Expr& value) {
  const Expr scaled = PositiveFactorOf(value).rest;
  int ops = 0;
  Visit(scaled->op == Op::kSelect ? scaled->args[1] : scaled,
        [&](const ExprNode& e) { ops += IsFloat(e.dtype) && (IsBinary(e.op) || IsUnary(e.op)) ? 1 : 0; });
  return ops;
}

}  // namespace

// A tensor that the second product reads in a narrower type has to be a tile of that type. A tile that has
// biases, or takes several operations, and is read several times is computed once.
bool IsInlinedTile(const Anatomy& anatomy, const StreamChain& chain, int tile) {
  constexpr double kCheapOps = 4;
  const Stage& stage = anatomy.stage(tile);
  const bool is_narrow_weights =
      stage.output == chain.weights->buffer && chain.weights->dtype != anatomy.stage(chain.sum).output->dtype;
  const bool is_computed_again = anatomy.info(tile).readers.size() > 1 && OwnOps(stage.value) > 1;
  return anatomy.info(tile).ops_per_element <= kCheapOps && !is_narrow_weights && !is_computed_again &&
         BiasesOf(anatomy, chain, tile).empty();
}

std::vector<int> KeptTiles(const Anatomy& anatomy, const StreamChain& chain) {
  std::vector<int> kept;
  for (const int tile : chain.tiles) {
    if (!IsInlinedTile(anatomy, chain, tile)) kept.push_back(tile);
  }
  return kept;
}

namespace {

// Whether the margin of a tile's mask reads nothing but inputs that are the same along the axis and for all
// rows of a block. A block's rows agree then on the blocks of the axis that they leave out.
bool IsSameInBlock(const Anatomy& anatomy, const StreamChain& chain, const Stage& tile, const Expr& margin) {
  const Var &key = tile.axes[chain.stream_dim], &row = tile.axes[chain.dim_of_axis[chain.row_axes.back()]];
  const std::vector<const ExprNode*> loads = LoadsOf(margin);
  return std::ranges::all_of(loads, [&](const ExprNode* load) {
    return anatomy.ProducerOf(load->buffer.get()) < 0 &&
           std::ranges::none_of(load->args, [&](const Expr& index) {
             return UsesVar(index, key.get()) || UsesVar(index, row.get());
           });
  });
}

// The margins of masks that leave out blocks of the axis, each with its tile.
void ForEachMask(const Anatomy& anatomy, const StreamChain& chain,
                 const std::function<void(const Stage& tile, const Expr& margin)>& visit) {
  for (const int s : chain.tiles) {
    const Stage& tile = anatomy.stage(s);
    const Expr& value = tile.value;
    if (value->op != Op::kSelect || value->args[2]->op != Op::kConst ||
        value->args[2]->value.f != -std::numeric_limits<double>::infinity())
      continue;
    std::vector<Expr> conditions;
    SplitConjunction(value->args[0], &conditions);
    for (const Expr& condition : conditions) {
      const Expr margin = MarginOf(condition);
      if (margin != nullptr && ToLinear(margin).CoefficientOf(tile.axes[chain.stream_dim].get()) != 0 &&
          IsSameInBlock(anatomy, chain, tile, margin))
        visit(tile, margin);
    }
  }
}

}  // namespace

bool HasMask(const Anatomy& anatomy, const StreamChain& chain) {
  bool has = false;
  ForEachMask(anatomy, chain, [&](const Stage&, const Expr&) { has = true; });
  return has;
}

bool IsCausal(const Anatomy& anatomy, const StreamChain& chain) {
  bool is_causal = false;
  ForEachMask(anatomy, chain, [&](const Stage& tile, const Expr& margin) {
    const VarNode *key = tile.axes[chain.stream_dim].get(),
                  *row = tile.axes[chain.dim_of_axis[chain.row_axes.back()]].get();
    is_causal |= UsesVar(margin, row) && ToLinear(margin).CoefficientOf(key) < 0;
  });
  return is_causal;
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
               const std::string& block, TraceBuilder* b, const PlaceStage& place) {
  b->CacheWrite(anatomy.name(chain.sum), block);
  EmitEpilogue(anatomy, chain.epilogue, b);
  // From the chain's end: each stage's readers are under the loop by then. A reduction that only stages
  // outside read comes before the tile that it reduces.
  const std::vector<int> members = chain.Members(), tiles = KeptTiles(anatomy, chain);
  const auto turn = [&](int s) {
    const StageInfo& info = anatomy.info(s);
    const bool is_read = std::ranges::any_of(
        info.readers, [&](int reader) { return std::ranges::binary_search(members, reader); });
    return is_read ? s : *std::ranges::max_element(info.producers);
  };
  std::vector<int> stages = chain.reductions;
  stages.insert(stages.end(), tiles.begin(), tiles.end());
  std::ranges::stable_sort(stages, [&](int a, int b) { return turn(a) > turn(b); });
  for (const int s : stages) {
    if (place && place(s)) continue;
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

namespace {

// Only a maximum, or a minimum, of the scores themselves changes what was summed up.
bool CorrectsSums(const Anatomy& anatomy, const StreamChain& chain) {
  const ReduceOp first = anatomy.stage(chain.reductions.front()).reduce;
  return first == ReduceOp::kMax || first == ReduceOp::kMin;
}

// The suffixes of the blocks over the sum's accumulator: it begins, is corrected where a maximum has changed,
// and is stored. Weights that are relative to no maximum are not corrected.
std::vector<std::string> AccumulatorParts(const Anatomy& anatomy, const StreamChain& chain) {
  if (!CorrectsSums(anatomy, chain)) return {".i", ".w"};
  return {".i", ".c", ".w"};
}

// The blocks over rows alone.
std::vector<std::string> StreamedVectors(const Anatomy& anatomy, const StreamChain& chain,
                                         const std::string& reduction) {
  std::vector<std::string> blocks = {absl::StrCat(reduction, ".i")};
  if (!CorrectsSums(anatomy, chain)) return blocks;
  const bool is_first = reduction == anatomy.name(chain.reductions.front());
  for (const char* suffix : is_first ? std::vector<const char*>{".old", ".ref", ".factor"}
                                     : std::vector<const char*>{".old", ".c"})
    blocks.push_back(absl::StrCat(reduction, suffix));
  return blocks;
}

}  // namespace

void EmitSumTile(const Anatomy& anatomy, const StreamChain& chain, const StreamLoops& loops,
                 const SumTile& tile, int lanes, const std::string& instruction, TraceBuilder* b) {
  const std::string& sum = anatomy.name(chain.sum);
  const int64_t width = tile.vectors * lanes;
  const std::string &rows = loops.row, &values = loops.value;
  b->Split(rows, {tile.rows});
  b->Split(values, {width});
  b->Reorder({SubLoop(values, 0), SubLoop(rows, 0), loops.key, SubLoop(rows, 1), SubLoop(values, 1)});
  b->CacheWrite(sum, SubLoop(rows, 0));
  std::vector<std::string> parts = {".i2", ".w2"};
  if (instruction.empty()) {
    parts.insert(parts.begin(), "");
  } else {
    b->Tensorize(loops.key, instruction);
  }
  for (const std::string& part : parts) {
    const auto of = [&](const std::string& loop) { return absl::StrCat(sum, part, loop.substr(sum.size())); };
    b->Bind(of(SubLoop(rows, 1)), "unroll");
    b->Vectorize(of(SubLoop(values, 1)), width, lanes);
  }
  EmitAccumulatorParts(anatomy, chain, values, lanes, b);
}

void EmitAccumulatorParts(const Anatomy& anatomy, const StreamChain& chain, const std::string& values,
                          int lanes, TraceBuilder* b) {
  const std::string& sum = anatomy.name(chain.sum);
  for (const std::string& part : AccumulatorParts(anatomy, chain)) {
    const std::string loop = absl::StrCat(sum, part, values.substr(sum.size()));
    b->Split(loop, {lanes});
    b->Bind(SubLoop(loop, 0), "unroll");
    b->Bind(SubLoop(loop, 1), "vector");
  }
}

void EmitRowVectors(const Anatomy& anatomy, const StreamChain& chain, const std::string& reduction, int dim,
                    int lanes, TraceBuilder* b) {
  for (const std::string& vector : StreamedVectors(anatomy, chain, reduction)) {
    const std::string loop = Dim(vector, dim);
    b->Split(loop, {lanes});
    b->Bind(SubLoop(loop, 1), "vector");
  }
}

}  // namespace mycc

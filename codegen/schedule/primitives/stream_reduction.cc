// stream_reduction(R, l): computes a reduction alongside the sums that use its result, in one pass over its
// axis. Loop l runs over parts of the axis. R becomes a running reduction, and what was summed with an
// earlier result is corrected (correction.h).
//
//   for i: for j: R: t1[i] max= s[i, j]
//   for l:
//     for i: for j: e[i, j] = exp(s[i, l*J + j] - t1[i])
//     for i: for j: B: acc[i] += e[i, j]
//   for i: B.w: t2[i] = acc[i]
//     ->
//   for i: R.i: R.run[i] = -inf
//   for l:
//     for i: R.old[i] = R.run[i]
//     for i: for j: R: R.run[i] max= s[i, l*J + j]
//     for i: R.ref[i] = R.run[i] * log2(e), or 0 while that is -inf
//     for i: R.factor[i] = exp2(R.old[i] * log2(e) - R.ref[i])
//     for i: for j: e[i, j] = exp2(s[i, l*J + j] * log2(e) - R.ref[i])
//                             (exp2((s[..] - R.ref[i]) * log2(e)), R.ref without the factor, see MayBeLarge)
//     for i: if R.factor[i] != 1: B.c: acc[i] = acc[i] * R.factor[i]
//     for i: for j: B: acc[i] += e[i, j]
//   for i: B.w: t2[i] = acc[i]
//
// A factor that is free of the axis, such as the division by a softmax's sum, leaves the sum: B.w applies it.
//
// A chain of reductions over one axis (maximum, sum of exponentials, weighted sum) is streamed from its end:
// first the sum, then the maximum.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/streamed_sums.h"

namespace mycc {
namespace {

// for rows: out[row] = value(row), for all elements of `out`.
template <typename RowValue>
Stmt OverRows(const std::string& name, const Buffer& out, const RowValue& value) {
  std::vector<LoopSpec> loops;
  std::vector<Expr> row;
  for (int d = 0; d < out->rank(); ++d) {
    loops.push_back({MakeVar(absl::StrCat(name, ".a", d), out->shape[d])});
    row.push_back(VarRef(loops.back().var));
  }
  return MakeNest(loops, MakeBlock(name, {}, out, row, value(row)));
}

class Streaming {
 public:
  Streaming(const Function& function, const Block& reduction, const Path& loop, StreamedSums sums)
      : function_(function),
        reduction_(reduction),
        path_(loop),
        sums_(std::move(sums)),
        value_(ValueOf(reduction)) {
    BufferSet seen;
    subtracts_first_ = MayBeLarge(reduction.value, &seen);
  }

  // The whole body.
  absl::StatusOr<Stmt> Apply() {
    Path site = path_;  // the statements around the loop
    if (site.nodes.size() > 1 && site.nodes.end()[-2]->kind == StmtKind::kSeq) site.nodes.pop_back();
    std::vector<Access> reads = ReadsUnder(site.target(), result());
    if (reads.empty()) reads = RowsOfTiles();
    if (reads.empty())
      return Refusal("nothing around the loop reads ", result()->name, ", or what it is computed from");
    box_ = CoveringBox(reads, LoopVarsUnder(site.target()), result()->shape);
    for (const StreamedSum& sum : sums_.sums) {
      if (!sum.dependence.IsFree()) reads.push_back(RowsOf(sum));
    }
    WidenToLoops(reads);
    run_ = Vector(".run");
    const Stmt init = OverRows(absl::StrCat(reduction_.name, ".i"), run_,
                               [&](const std::vector<Expr>&) { return Identity(); });
    const bool is_kept = IsReadOutside(site.target());
    std::vector<Stmt> parts = StmtsOf(site.target());
    bool is_after = false;
    for (Stmt& part : parts) {
      const bool is_loop = part == path_.target();
      part = is_loop ? MakeSeq({init, StreamingLoop(), is_kept ? WriteBack() : nullptr})
                     : ReadingRun(is_after ? WithFactors(part) : part);
      is_after |= is_loop;
    }
    const Stmt body = ReplaceAt(site, std::make_shared<Alloc>(run_, MakeSeq(std::move(parts))));
    if (is_kept) return body;
    MYCC_ASSIGN_OR_RETURN(const Function made, WithoutAlloc(WithBody(function_, body), result()));
    return made.body;
  }

 private:
  // The elements of the result that the sum uses, over loops.
  static Access RowsOf(const StreamedSum& sum) {
    return Substitute(sum.dependence.result->args, BindingsOf(*sum.block));
  }

  // The elements of a result that nothing around the loop reads: those of the rows whose tiles are read
  // there.
  std::vector<Access> RowsOfTiles() const {
    std::vector<Access> rows;
    for (const ExprNode* load : LoadsOf(reduction_)) {
      for (const Access& tile : ReadsUnder(path_.loop().body, load->buffer)) {
        Access row;
        for (const Expr& index : reduction_.indices) {
          const auto dim = std::ranges::find(load->args, index->var, &ExprNode::var);
          if (dim != load->args.end()) row.push_back(tile[dim - load->args.begin()]);
        }
        if (row.size() == reduction_.indices.size()) rows.push_back(std::move(row));
      }
      if (!rows.empty()) break;
    }
    return rows;
  }

  // Tiles of rows may reach beyond a tensor that they cover whole; the vectors then do, too.
  void WidenToLoops(const std::vector<Access>& reads) {
    for (const Access& read : reads) {
      for (size_t d = 0; d < box_.size(); ++d) {
        const std::optional<Interval> range = RangeOf(read[d]);
        if (box_[d].whole && range) box_[d].extent = std::max(box_[d].extent, range->max + 1);
      }
    }
  }

  const Buffer& result() const { return reduction_.out; }
  Expr Identity() const { return reduction_.reduce.Identity(0, result()->dtype); }

  Buffer Vector(const char* suffix) const {
    return MakeBuffer(FreshName(function_, absl::StrCat(reduction_.name, suffix)), result()->dtype,
                      ExtentsOf(box_), Scope::kLocal);
  }

  // A maximum of products with a positive number runs over what is multiplied.
  static PositiveFactor ValueOf(const Block& reduction) {
    const bool scales = reduction.reduce == ReduceOp::kMax || reduction.reduce == ReduceOp::kMin;
    return scales ? PositiveFactorOf(reduction.value) : PositiveFactor{1, reduction.value};
  }

  // The result so far.
  Expr RunAt(const std::vector<Expr>& row) const { return Times(Load(run_, row), value_.factor); }

  // The statement with the values of blocks that read a buffer rewritten.
  template <typename RewriteFn>
  static Stmt WithValues(const Stmt& stmt, const Buffer& read, const RewriteFn& rewrite) {
    return RewriteEach<Block>(stmt, [&](const Block& old) -> Stmt {
      if (!Reads(old, read)) return nullptr;
      return Changed(old, [&](Block* block) { block->value = Rewrite(old.value, rewrite); });
    });
  }
  // The statement, reading the running result.
  Stmt ReadingRun(const Stmt& stmt) const {
    return WithValues(stmt, result(), [&](const Expr& load) -> Expr {
      return IsLoadOf(load, result()) ? RunAt(Localize(load->args, box_)) : nullptr;
    });
  }

  Stmt StreamingLoop() {
    const For& loop = path_.loop();
    Stmt step = Update(), body = WithoutFactors(loop.body);
    if (sums_.exponent != 0) {
      const Buffer reference = Vector(".ref");
      step = CorrectedStep(reference);
      body = WithCorrections(WithPowers(body, reference));
    }
    body = MakeSeq({std::move(step), std::move(body)});
    return loop.With({.body = InAllocs(vectors_, std::move(body))});
  }

  // Exponentials of differences from the running result become powers of two, which hardware has an
  // instruction for. Their exponent is a product and a sum, one fused operation.
  Stmt WithPowers(const Stmt& body, const Buffer& reference) const {
    return WithValues(body, result(), [&](const Expr& e) -> Expr {
      return e->op == Op::kExp ? PowerOf(e->args[0], reference) : nullptr;
    });
  }

  // Null when the exponent is free of the result.
  Expr PowerOf(const Expr& exponent, const Buffer& reference) const {
    const SplitExponent split = SplitOf(exponent, result());
    if (split.result == nullptr) return nullptr;
    const Expr load = Load(reference, Localize(split.result->args, box_));
    if (split.rest == nullptr)
      return MakeUnary(Op::kExp2, split.slope < 0 ? MakeUnary(Op::kNeg, Scaled(load)) : Scaled(load));
    const PositiveFactor rest = PositiveFactorOf(split.rest);
    const double factor = rest.factor * std::numbers::log2e;
    if (subtracts_first_ && std::fabs(factor - Scale()) <= 1e-6 * Scale()) {
      const Expr difference = split.slope < 0 ? rest.rest - load : rest.rest + load;
      return MakeUnary(Op::kExp2, Times(difference, Scale()));
    }
    const Expr scaled = Times(rest.rest, factor), by = Scaled(load);
    return MakeUnary(Op::kExp2, split.slope < 0 ? scaled - by : scaled + by);
  }

  // From the running result to exponents of two.
  double Scale() const { return std::fabs(sums_.exponent) * value_.factor * std::numbers::log2e; }
  // A reference as a term of such an exponent.
  Expr Scaled(const Expr& reference) const {
    return subtracts_first_ ? Times(reference, Scale()) : reference;
  }

  // Whether a value may be large without being a sum: an input, such as a mask of the lowest finite number,
  // or a constant. Its product with log2(e) is rounded by more than an exponent may be off, or overflows, so
  // that exponents are differences first. Sums, as products of queries and keys are, count as small.
  bool MayBeLarge(const Expr& value, BufferSet* seen) const {
    constexpr double kLarge = 32768;
    if (!IsFloat(value->dtype) || value->op == Op::kTanh) return false;
    if (value->op == Op::kConst) return std::isfinite(value->value.f) && std::fabs(value->value.f) >= kLarge;
    if (value->op == Op::kLoad) {
      if (!seen->insert(value->buffer.get()).second) return false;
      const Block* writer = WriterOf(function_, value->buffer);
      if (writer == nullptr) return true;
      return writer->reduce == ReduceOp::kNone && MayBeLarge(writer->value, seen);
    }
    return std::ranges::any_of(value->args, [&](const Expr& arg) { return MayBeLarge(arg, seen); });
  }

  // The reduction of this iteration's part of the axis into the running result.
  Stmt Update() const {
    auto block = std::make_shared<Block>(reduction_);
    std::vector<LoopSpec> loops;
    for (IterVar& iter : block->iters) {
      const DimRegion& region = iter.reduce ? sums_.part : box_[DimOf(reduction_, iter)];
      loops.push_back(LoopOver(&region, reduction_.name, &iter));
    }
    block->init = false;
    block->out = run_;
    block->value = value_.rest;
    block->indices = Localize(reduction_.indices, box_);
    return MakeNest(loops, std::move(block));
  }

  // The update, and what corrects the sums so far. While all elements were -inf there is nothing to
  // correct; a reference of 0 keeps exp(-inf - reference) a number.
  Stmt CorrectedStep(const Buffer& reference) {
    const Buffer old = Vector(".old");
    factor_ = Vector(".factor");
    vectors_ = {old, reference, factor_};
    // A result as the reference has it: exponents are those of powers of two.
    const auto referred = [&](const Expr& result) {
      return subtracts_first_ ? result : Times(result, Scale());
    };
    return MakeSeq({OverRows(old->name, old, [&](const std::vector<Expr>& row) { return Load(run_, row); }),
                    Update(),
                    OverRows(reference->name, reference,
                             [&](const std::vector<Expr>& row) {
                               return MakeSelect(MakeBinary(Op::kEq, Load(run_, row), Identity()),
                                                 FloatConst(0, run_->dtype), referred(Load(run_, row)));
                             }),
                    OverRows(factor_->name, factor_, [&](const std::vector<Expr>& row) {
                      const Expr before = referred(Load(old, row)), now = Load(reference, row);
                      return MakeUnary(Op::kExp2, Scaled(sums_.exponent < 0 ? before - now : now - before));
                    })});
  }

  // Each sum that depends on the running result is corrected right before it goes on.
  Stmt WithCorrections(Stmt body) {
    for (const StreamedSum& sum : sums_.sums) {
      if (sum.dependence.exponent != 0) body = BeforeBlock(body, sum.block->name, Correction(sum));
    }
    return body;
  }

  // The iteration's statements, with one more before the nest of a block.
  static Stmt BeforeBlock(const Stmt& body, const std::string& block, const Stmt& stmt) {
    std::vector<Stmt> parts = PartsOf(body);
    for (Stmt& part : parts) {
      if (!ContainsBlock(part, block)) continue;
      part = part->kind == StmtKind::kAlloc ? BeforeBlock(part, block, stmt) : MakeSeq({stmt, part});
    }
    return WithParts(body, std::move(parts));
  }

  // acc = acc * factor. Several threads may hold a row of a vector: each stores what it computes from a copy
  // that none of them changes.
  Stmt Correction(const StreamedSum& sum) {
    const std::string name = absl::StrCat(sum.block->name, ".c");
    Stmt copying;
    Buffer before = sum.block->out;
    if (before->scope != Scope::kAccumulator) {
      const std::string copy = FreshName(function_, absl::StrCat(sum.block->name, ".old"));
      vectors_.push_back(MakeBuffer(copy, before->dtype, before->shape, Scope::kLocal));
      copying =
          OverRows(copy, vectors_.back(), [&](const std::vector<Expr>& row) { return Load(before, row); });
      before = vectors_.back();
    }
    VarMap renamed;
    std::vector<LoopSpec> loops;
    for (const For* loop : sum.loops) {
      if (std::ranges::count(sum.tile, loop->var) == 0) continue;
      loops.push_back({MakeVar(RenamedLoop(loop->var->name, sum.block->name, name), loop->var->extent)});
      renamed[loop->var.get()] = VarRef(loops.back().var);
    }
    std::vector<Expr> indices, row;
    for (const Var& var : sum.tile) indices.push_back(var ? renamed.at(var.get()) : IntConst(0));
    for (const Expr& index : Localize(RowsOf(sum), box_)) row.push_back(Substitute(Simplify(index), renamed));
    const Expr change = Load(factor_, row);
    const auto block = MakeBlock(name, {}, sum.block->out, indices, Load(before, indices) * change);
    return MakeSeq({copying, WhereChanged(loops, row, change, block)});
  }

  // Most parts leave a row's maximum as it was: its sums are passed over then, if the loops that choose a row
  // come first.
  static Stmt WhereChanged(const std::vector<LoopSpec>& loops, const std::vector<Expr>& row,
                           const Expr& change, const Stmt& block) {
    const auto is_of_row = [&](const LoopSpec& loop) { return UsesVar(row, loop.var.get()); };
    const auto rest = std::ranges::find_if_not(loops, is_of_row);
    if (rest == loops.end() || std::any_of(rest, loops.end(), is_of_row)) return MakeNest(loops, block);
    const std::vector<LoopSpec> outer(loops.begin(), rest), inner(rest, loops.end());
    const Expr changed = MakeBinary(Op::kNe, change, FloatConst(1, change->dtype));
    return MakeNest(outer, std::make_shared<If>(changed, MakeNest(inner, block)));
  }

  Stmt WithoutFactors(const Stmt& body) const {
    return RewriteEach<Block>(body, [&](const Block& block) -> Stmt {
      const auto found = sums_.without_factor.find(&block);
      if (found == sums_.without_factor.end()) return nullptr;
      return Changed(block, [&](Block* changed) { changed->value = found->second; });
    });
  }

  // Loads of accumulators, multiplied by the factor that left their sum.
  Stmt WithFactors(Stmt stmt) const {
    for (const StreamedSum& sum : sums_.sums) {
      if (sum.dependence.factor == nullptr) continue;
      const Expr factor = Substitute(sum.dependence.factor, BindingsOf(*sum.block));
      stmt = WithValues(stmt, sum.block->out, [&](const Expr& load) -> Expr {
        if (!IsLoadOf(load, sum.block->out)) return nullptr;
        VarMap at;
        for (size_t d = 0; d < sum.tile.size(); ++d) {
          if (sum.tile[d]) at[sum.tile[d].get()] = load->args[d];
        }
        return Multiplied(load, Simplify(Substitute(factor, at)));
      });
    }
    return stmt;
  }

  bool IsReadOutside(const Stmt& site) const {
    return IsParam(function_, result()) || AnyOf<Block>(function_.body, [&](const Block& block) {
             return Reads(block, result()) && !ContainsBlock(site, block.name);
           });
  }

  // The result itself, for readers elsewhere.
  Stmt WriteBack() const {
    const std::string name = absl::StrCat(reduction_.name, ".w");
    const BoxCopy copy = MakeBoxCopy(name, box_, result()->shape);
    return MakeNest(copy.loops,
                    MakeBlock(name, copy.iters, result(), copy.indices, RunAt(Localize(copy.indices, box_))));
  }

  const Function& function_;  // without the reduction
  const Block& reduction_;
  const Path& path_;  // to the loop
  const StreamedSums sums_;
  const PositiveFactor value_;  // of the reduction
  bool subtracts_first_;        // exponents are differences before they are exponents of two
  std::vector<DimRegion> box_;  // of the result, around the loop
  Buffer run_, factor_;
  std::vector<Buffer> vectors_;  // of one iteration
};

// All that the reduction reads must be complete before the loop's nest begins. The reduction itself may stand
// before or after the loop.
absl::Status CheckStands(const Function& function, const Path& reduction, const Path& loop) {
  MYCC_RETURN_IF_ERROR(CheckCanMove(function, reduction, loop));
  const Block& block = reduction.block();
  bool is_before = true;
  for (const Block* other : BlocksUnder(function.body)) {
    is_before &= !ContainsBlock(loop.target(), other->name);
    if (!is_before && other != &block && Reads(block, other->out)) {
      return Refusal(block.name, " does not stand before loop ", loop.loop().var->name, ": it reads ",
                     other->out->name);
    }
  }
  return absl::OkStatus();
}

// The function's stages with those behind the loop's nest that read the result, which the loop computes, or
// what is computed from it: a workload's outputs may be in any order. The nest itself must read none of them.
absl::StatusOr<Stmt> WithReadersBehind(const Stmt& body, const Buffer& result, const Path& loop) {
  std::vector<Stmt> stages = PartsOf(body);
  const auto nest = std::find_first_of(stages.begin(), stages.end(), loop.nodes.begin(), loop.nodes.end());
  std::vector<Buffer> late;
  const auto reads_late = [&](const Block* block) {
    return std::ranges::any_of(late, [&](const Buffer& out) { return Reads(*block, out); });
  };
  std::unordered_set<Stmt> readers;
  for (auto stage = stages.begin(); stage != nest; ++stage) {
    const std::vector<const Block*> blocks = BlocksUnder(*stage);
    if (!ReadsAnywhere(*stage, result) && std::ranges::none_of(blocks, reads_late)) continue;
    readers.insert(*stage);
    for (const Block* block : blocks) late.push_back(block->out);
  }
  for (const Block* block : BlocksUnder(*nest)) {
    if (!reads_late(block)) continue;
    return Refusal(block->name, " in the nest of loop ", loop.loop().var->name,
                   " reads what is computed from ", result->name, " before that loop");
  }
  const auto stays = [&](const Stmt& stage) { return !readers.contains(stage); };
  std::rotate(std::stable_partition(stages.begin(), nest, stays), nest, nest + 1);
  return WithParts(body, std::move(stages));
}

}  // namespace

absl::StatusOr<Function> StreamReduction(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& reduction = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, reduction));
  if (reduction.reduce == ReduceOp::kNone || reduction.reduce.tuple() != nullptr) {
    return Refusal(reduction.name, " is no reduction to one value; expected a sum, product, max or min");
  }
  MYCC_ASSIGN_OR_RETURN(Path loop, FindLoop(function, args.Name(1)));
  MYCC_RETURN_IF_ERROR(CheckStands(function, path, loop));
  Function result = WithBody(function, ReplaceAt(path, nullptr));
  MYCC_ASSIGN_OR_RETURN(loop, FindLoop(result, args.Name(1)));
  MYCC_ASSIGN_OR_RETURN(result.body, WithReadersBehind(result.body, reduction.out, loop));
  MYCC_ASSIGN_OR_RETURN(loop, FindLoop(result, args.Name(1)));
  MYCC_ASSIGN_OR_RETURN(StreamedSums sums, FindStreamedSums(result, reduction, loop));
  MYCC_ASSIGN_OR_RETURN(Stmt streamed, Streaming(result, reduction, loop, std::move(sums)).Apply());
  return WithBody(result, std::move(streamed));
}

}  // namespace mycc

// The stages of a chain's parts and of their merge.
#include "codegen/schedule/split_chain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/schedule/chain_values.h"
#include "codegen/schedule/correction.h"
#include "codegen/schedule/part_axes.h"
#include "codegen/schedule/stage_rewrites.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

// The result of a reduction; 0 where all its terms were infinite.
Expr FiniteOr0(const Expr& value, ReduceOp reduce) {
  return MakeSelect(MakeBinary(Op::kEq, value, ReduceIdentity(reduce, value->dtype)),
                    FloatConst(0, value->dtype), value);
}

class ChainSplitter {
 public:
  ChainSplitter(const Workload& workload, const StreamChain& chain, const ChainParts& parts,
                ChainValues values)
      : workload_(workload),
        links_(workload),
        chain_(chain),
        partition_(workload, chain, parts),
        found_(std::move(values)) {}

  absl::StatusOr<Workload> Apply() {
    // All parts come first, that of the sum last: one pass computes them. The merges follow, and the stages
    // that read what is merged; those of reductions stand before that of the sum.
    Workload result = workload_;
    result.stages.clear();
    const auto add = [&](std::vector<Stage> stages) {
      for (Stage& made : stages) result.stages.push_back(std::move(made));
    };
    std::set<int> results(chain_.reductions.begin(), chain_.reductions.end());
    results.insert(chain_.sum);
    const std::set<int> after = links_.WithReaders(results), after_sum = links_.WithReaders({chain_.sum});
    const int count = static_cast<int>(workload_.stages.size());
    std::set<int> others;  // they read reductions alone, as a log-sum-exp does, or are outputs themselves
    for (int s = 0; s < count; ++s) {
      if (s != chain_.sum && IsMember(s)) add(PartsFor(s));
      if (after_sum.contains(s)) continue;
      if (IsMember(s) ? links_.IsOutput(s) : after.contains(s)) {
        others.insert(s);
      } else if (!IsMember(s)) {
        add({stage(s)});
      }
    }
    add(PartsFor(chain_.sum));
    if (!others.empty()) add(MergesOf(others, /*copied=*/false));
    add(MergesOf(after_sum, /*copied=*/!others.empty()));
    MYCC_RETURN_IF_ERROR(CheckNames(result));
    return result;
  }

 private:
  const Stage& stage(int s) const { return workload_.stages[s]; }
  const std::string& name(int s) const { return stage(s).output->name; }

  bool IsMember(int s) const { return found_.members.contains(s); }

  // A chain that is of parts itself may have their names.
  absl::Status CheckNames(const Workload& result) const {
    std::set<std::string> names;
    for (const Stage& made : result.stages) {
      if (!names.insert(made.output->name).second) {
        return Refusal(made.output->name, ", a tensor of parts of ", name(chain_.sum), ", exists already");
      }
    }
    return absl::OkStatus();
  }

  // -- The parts. --

  std::vector<Stage> PartsFor(int s) {
    if (s == chain_.scores) return Scores();
    if (!found_.values.contains(s)) return {};  // inlined into what reads it
    if (stage(s).reduce == ReduceOp::kNone) return {PartOf(s, name(s))};
    std::vector<Stage> made = {PartOf(s, absl::StrCat(name(s), ".p"))};
    if (!ExponentsOf(s, found_.members).empty()) made.push_back(Guarded(s));
    return made;
  }

  Stage PartOf(int s, const std::string& tensor) {
    const PartAxes at = partition_.AxesOf(s);
    const Expr of_parts = Rewrite(WithoutGuards(found_.values.at(s)), [&](const Expr& load) -> Expr {
      const auto part = load->op == Op::kLoad ? parts_.find(load->buffer.get()) : parts_.end();
      if (part == parts_.end()) return nullptr;
      std::vector<Expr> index = partition_.RowInPart(at);
      if (static_cast<int>(index.size()) < part->second->rank()) index.push_back(at.key);
      return Load(part->second, std::move(index));
    });
    return MakePart(s, tensor, at, WithOwnTerms(s, partition_.OverPart(of_parts, at), at));
  }

  Stage MakePart(int s, const std::string& tensor, const PartAxes& at, Expr value) {
    const Stage& whole = stage(s);
    const Buffer part = MakeBuffer(tensor, whole.output->dtype, ExtentsOf(at.axes));
    parts_[whole.output.get()] = part;
    return {part, at.axes, whole.reduce, at.reduce_axes, std::move(value)};
  }

  // Reductions, and the weights of the sum, leave out what another part has.
  Expr WithOwnTerms(int s, const Expr& value, const PartAxes& at) const {
    const bool is_weight = stage(s).output == chain_.weights->buffer;
    const bool adds = s != chain_.sum && (is_weight || stage(s).reduce != ReduceOp::kNone);
    if (at.is_own == nullptr || !adds) return value;
    const ReduceOp reduce = is_weight ? ReduceOp::kSum : stage(s).reduce;
    return MakeSelect(at.is_own, value, ReduceIdentity(reduce, value->dtype));
  }

  // The scores; and before them, where heads share a tile, the queries in its order.
  std::vector<Stage> Scores() {
    const int s = chain_.scores;
    std::vector<Stage> made;
    const PartAxes at = partition_.AxesOf(s);
    Expr value = stage(s).value;
    if (partition_.RepacksQueries()) {
      const Expr load = PackedQueries(at, &made);
      value = Rewrite(value, [&](const Expr& e) -> Expr {
        return e->op == Op::kLoad && StructurallyEqual(e, chain_.queries) ? load : nullptr;
      });
    }
    made.push_back(MakePart(s, name(s), at, partition_.OverPart(value, at)));
    return made;
  }

  // Adds the stage of queries in the order of a tile's rows. Returns the scores' load of it.
  Expr PackedQueries(const PartAxes& at, std::vector<Stage>* made) const {
    const Expr query = Substitute(chain_.queries, at.of_whole);
    const Expr is_there = MakeBinary(Op::kLt, at.row, IntConst(partition_.Rows()));
    const Expr padded = partition_.HasPadding(chain_.scores)
                            ? MakeSelect(is_there, query, FloatConst(0, query->dtype))
                            : query;
    std::vector<Var> axes = at.axes;
    axes.insert(axes.end(), at.reduce_axes.begin(), at.reduce_axes.end());
    ValueStage packed = StageOfValue(absl::StrCat(name(chain_.scores), ".q"), Simplify(padded), axes);
    made->push_back(std::move(packed.stage));
    return packed.load;
  }

  // A part whose terms are all -inf has sums of 0, not of exp(-inf + inf).
  Stage Guarded(int s) {
    const Buffer part = parts_.at(stage(s).output.get());
    Stage made = StageOver(absl::StrCat(name(s), ".g"), part->dtype, part->shape);
    made.value = FiniteOr0(Load(part, IndexOf(made.axes)), stage(s).reduce);
    parts_[stage(s).output.get()] = made.output;
    results_[s] = part;
    return made;
  }

  // Results of parts that are guarded here need no guards of the workload's own.
  Expr WithoutGuards(const Expr& value) const {
    return Rewrite(value, [&](const Expr& e) -> Expr {
      const std::optional<GuardedResult> guard = GuardedResultOf(e);
      const int writer = guard ? links_.ProducerOf(guard->result->buffer.get()) : -1;
      if (!results_.contains(writer)) return nullptr;
      const Expr identity = ReduceIdentity(stage(writer).reduce, stage(writer).output->dtype);
      return guard->infinity == identity->value.f ? guard->result : nullptr;
    });
  }

  // -- The merge. --

  // Stages after the chain, and before them the merges that they are computed from. Each group of readers has
  // merges of its own: they are a few numbers for a row, and so the group is one launch. The first group has
  // the tensors' own names, the second one copies.
  std::vector<Stage> MergesOf(const std::set<int>& readers, bool copied) {
    const std::set<int> needed = links_.WithProducers(readers);
    factors_of_parts_.clear();
    std::vector<Stage> made;
    const auto add = [&](std::vector<Stage> stages, bool copy) {
      for (Stage& one : stages) made.push_back(copy ? Copied(std::move(one)) : WithCopies(std::move(one)));
    };
    // Stages after the sum may read reductions that stood after it.
    const bool has_sum = readers.contains(chain_.sum);
    for (const bool is_last : {false, true}) {
      for (const int s : needed) {
        const bool is_reader = readers.contains(s);
        if ((has_sum && is_reader) != is_last) continue;
        if (IsMember(s)) add(MergeFor(s, needed), copied && !is_reader);
        if (!IsMember(s) && is_reader) add({stage(s)}, false);
      }
    }
    return made;
  }

  Stage WithCopies(Stage made) const {
    made.value = Rewrite(made.value, [&](const Expr& e) -> Expr {
      const auto copy = e->op == Op::kLoad ? copies_.find(e->buffer.get()) : copies_.end();
      return copy != copies_.end() ? Load(copy->second, e->args) : nullptr;
    });
    return made;
  }

  Stage Copied(Stage made) {
    made = WithCopies(std::move(made));
    const Buffer whole = std::exchange(made.output, WithSuffix(made.output, ".m"));
    copies_[whole.get()] = made.output;
    return made;
  }

  // One stage merged, and what corrects the sums among `needed` for its changes.
  std::vector<Stage> MergeFor(int s, const std::set<int>& needed) {
    if (partition_.IsOfTiles(s)) return {};
    if (!found_.values.contains(s))
      return IsReadAfter(s) ? std::vector<Stage>{stage(s)} : std::vector<Stage>();
    std::vector<Stage> made = {Merged(s)};
    for (const double exponent : ExponentsOf(s, needed)) made.push_back(Correction(s, exponent));
    return made;
  }

  // The exponents with which sums among these are corrected for a reduction's changes.
  std::set<double> ExponentsOf(int reduction, const std::set<int>& sums) const {
    std::set<double> exponents;
    for (const auto& [sum, corrections] : found_.corrections) {
      for (const auto& [corrected, exponent] : corrections) {
        if (corrected == reduction && sums.contains(sum)) exponents.insert(exponent);
      }
    }
    return exponents;
  }

  // Whether the epilogue is computed from a stage of the rows.
  bool IsReadAfter(int row) const {
    const std::vector<int>& readers = links_.ReadersOf(row);
    return std::ranges::any_of(readers, [&](int reader) {
      return !IsMember(reader) ||
             (found_.inlined.contains(reader) && !partition_.IsOfTiles(reader) && IsReadAfter(reader));
    });
  }

  const Buffer& ResultOf(int s) const {
    const auto guarded = results_.find(s);
    return guarded != results_.end() ? guarded->second : parts_.at(stage(s).output.get());
  }

  // The whole's tensor, from the parts'.
  Stage Merged(int s) const {
    Stage made = stage(s);
    const Var number = MakeVar("r0", partition_.count());
    made.reduce_axes = {number};
    made.value = partition_.OfWhole(ResultOf(s), s, made.axes, VarRef(number));
    if (const auto found = found_.corrections.find(s); found != found_.corrections.end()) {
      for (const auto& [reduction, exponent] : found->second) {
        std::vector<Expr> index = partition_.RowInWhole(s, made.axes);
        index.push_back(VarRef(number));
        made.value = made.value * Load(factors_of_parts_.at({reduction, exponent}), index);
      }
    }
    if (const auto found = found_.factors.find(s); found != found_.factors.end()) {
      for (const Expr& factor : found->second) made.value = Multiplied(made.value, factor);
    }
    return made;
  }

  // exp(exponent * (whole - part)): what makes sums with a part's result sums with the whole's.
  Stage Correction(int s, double exponent) {
    const Buffer& result = stage(s).output;
    const std::string suffix =
        factors_of_parts_.empty() ? ".f" : absl::StrCat(".f", factors_of_parts_.size());
    std::vector<int64_t> shape = result->shape;
    shape.push_back(partition_.count());
    Stage made = StageOver(result->name + suffix, result->dtype, shape);
    std::vector<Expr> row = IndexOf(made.axes);
    const Expr part = partition_.OfWhole(ResultOf(s), s, made.axes, row.back());
    row.pop_back();
    const Expr whole = FiniteOr0(Load(result, row), stage(s).reduce);
    const Expr change = exponent < 0 ? part - whole : whole - part;
    made.value = MakeUnary(Op::kExp, Times(change, std::fabs(exponent)));
    factors_of_parts_[{s, exponent}] = made.output;
    return made;
  }

  const Workload& workload_;
  const StageLinks links_;
  const StreamChain& chain_;
  const ChainPartition partition_;
  const ChainValues found_;
  // The tensors made so far: parts, by the whole's tensor, as other parts read them; results of parts by
  // stage, where other parts read a guarded copy; and corrections.
  std::map<const BufferNode*, Buffer> parts_;
  std::map<int, Buffer> results_;
  std::map<std::pair<int, double>, Buffer> factors_of_parts_;
  std::map<const BufferNode*, Buffer> copies_;  // of merged tensors
};

absl::Status CheckParts(const Workload& workload, const StreamChain& chain, const ChainParts& parts) {
  const Stage& sum = workload.stages[chain.sum];
  const std::string& name = sum.output->name;
  const int64_t keys = sum.reduce_axes[0]->extent, heads = HeadsWithSameKeys(workload, chain);
  if (parts.length < 1 || parts.length > keys) {
    return Refusal("parts of ", parts.length, "; expected 1 to the ", keys, " of the axis of ", name);
  }
  if (parts.heads < 1 || heads % parts.heads != 0) {
    return Refusal(parts.heads, " heads of ", name, " do not have the same keys; expected a divisor of ",
                   heads);
  }
  constexpr int64_t kMostPadding = 1024;
  const int64_t rows = sum.axes[chain.row_axes.back()]->extent * parts.heads;
  if (rows == 0) return Refusal(name, " has no rows");
  if (parts.rows < rows || parts.rows > rows + kMostPadding) {
    return Refusal("tiles of ", parts.rows, " rows; expected at least the ", rows, " of ", name,
                   ", and at most ", kMostPadding, " more");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t HeadsWithSameKeys(const Workload& workload, const StreamChain& chain) {
  return FindSharedHeads(workload, chain).count;
}

absl::StatusOr<Workload> WithChainParts(const Workload& workload, const StreamChain& chain,
                                        const ChainParts& parts) {
  MYCC_RETURN_IF_ERROR(CheckParts(workload, chain, parts));
  MYCC_ASSIGN_OR_RETURN(ChainValues values, FindChainValues(workload, chain));
  return ChainSplitter(workload, chain, parts, std::move(values)).Apply();
}

}  // namespace mycc

#include "codegen/schedule/chain_values.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/schedule/correction.h"

namespace mycc {
namespace {

class ChainValuesFinder {
 public:
  ChainValuesFinder(const Workload& workload, const StreamChain& chain)
      : workload_(workload), links_(workload), chain_(chain) {
    for (const int s : chain.Members()) made_.members.insert(s);
    for (const int s : chain.epilogue) made_.members.erase(s);
  }

  // Tiles, reductions and the sum, as functions of scores and reductions, without factors that leave sums.
  absl::StatusOr<ChainValues> Find() && {
    for (const int s : made_.members) {
      if (s == chain_.scores) continue;
      const bool is_row = std::ranges::find(chain_.rows, s) != chain_.rows.end();
      (is_row ? made_.inlined : made_.values)[s] = Inlined(stage(s).value);
    }
    for (auto r = chain_.reductions.rbegin(); r != chain_.reductions.rend(); ++r)
      MYCC_RETURN_IF_ERROR(TakeReduction(*r));
    return std::move(made_);
  }

 private:
  const Stage& stage(int s) const { return workload_.stages[s]; }
  const std::string& name(int s) const { return stage(s).output->name; }
  bool IsTile(int s) const { return made_.values.contains(s) && stage(s).reduce == ReduceOp::kNone; }
  int WriterOf(const ExprNode& load) const { return links_.ProducerOf(load.buffer.get()); }

  // The value with that of inlined members in place of their loads.
  Expr Inlined(const Expr& value) const {
    return Rewrite(value, [&](const Expr& load) -> Expr {
      const auto found = load->op == Op::kLoad ? made_.inlined.find(WriterOf(*load)) : made_.inlined.end();
      if (found == made_.inlined.end()) return nullptr;
      return Substitute(found->second, AxesAt(found->first, *load));
    });
  }

  // How each later member depends on a reduction. A tile that has no correction of its own, such as a
  // difference, is inlined into what reads it.
  absl::Status TakeReduction(int reduction) {
    std::map<int, Dependence> found;
    for (auto it = made_.values.upper_bound(reduction); it != made_.values.end();) {
      const int s = it->first;
      const Expr value = Inlined(it->second);
      ++it;
      const absl::StatusOr<Dependence> dependence = DependenceOf(value, reduction, found);
      if (!dependence.ok() && IsTile(s) && !IsNarrow(s)) {
        made_.inlined[s] = value;
        made_.values.erase(s);
        continue;
      }
      if (!dependence.ok()) return dependence.status();
      made_.values[s] = value;
      if (!dependence->IsFree()) MYCC_RETURN_IF_ERROR(TakeDependence(s, reduction, *dependence));
      found[s] = *dependence;
    }
    return absl::OkStatus();
  }

  // The sum's instruction reads it in this type.
  bool IsNarrow(int s) const { return stage(s).output == chain_.weights->buffer; }

  absl::StatusOr<Dependence> DependenceOf(const Expr& value, int reduction,
                                          const std::map<int, Dependence>& found) const {
    LoadFacts facts;
    facts.dependence = [&](const Expr& load) -> absl::StatusOr<Dependence> {
      const int writer = WriterOf(*load);
      const auto tile = IsTile(writer) ? found.find(writer) : found.end();
      if (tile == found.end() || tile->second.IsFree()) return Dependence{load};
      return tile->second.OfElement(load, AxesAt(writer, *load));
    };
    facts.definition = [&](const Expr& load) -> Expr {
      const auto value = made_.values.find(WriterOf(*load));
      return value != made_.values.end() && IsTile(value->first) ? value->second : nullptr;
    };
    return DependenceOn(value, stage(reduction).output, facts);
  }

  VarMap AxesAt(int s, const ExprNode& load) const {
    VarMap at;
    for (size_t d = 0; d < load.args.size(); ++d) at[stage(s).axes[d].get()] = load.args[d];
    return at;
  }

  absl::Status TakeDependence(int s, int reduction, const Dependence& dependence) {
    const auto refuse = [&](const auto&... why) {
      return Refusal(name(s), " depends on ", name(reduction), ", which has parts: ", why...);
    };
    if (dependence.rest == nullptr) return refuse("it is computed from nothing else");
    made_.values[s] = dependence.rest;
    if (IsTile(s)) return absl::OkStatus();
    if (stage(s).reduce != ReduceOp::kSum) return refuse("it is no sum");
    if (dependence.exponent != 0 &&
        stage(reduction).reduce != (dependence.exponent < 0 ? ReduceOp::kMax : ReduceOp::kMin)) {
      return refuse("the correction exp(", dependence.exponent,
                    " * change) could overflow; expected exp(x - maximum) or exp(minimum - x)");
    }
    if (dependence.exponent != 0) made_.corrections[s].emplace_back(reduction, dependence.exponent);
    if (dependence.factor != nullptr) made_.factors[s].push_back(dependence.factor);
    return absl::OkStatus();
  }

  const Workload& workload_;
  const StageLinks links_;
  const StreamChain& chain_;
  ChainValues made_;
};

}  // namespace

absl::StatusOr<ChainValues> FindChainValues(const Workload& workload, const StreamChain& chain) {
  return ChainValuesFinder(workload, chain).Find();
}

}  // namespace mycc

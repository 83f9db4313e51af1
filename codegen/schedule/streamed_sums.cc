#include "codegen/schedule/streamed_sums.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

class SumFinder {
 public:
  SumFinder(const Function& function, const Block& reduction, const Path& loop)
      : function_(function), reduction_(reduction), loop_(loop.loop()) {}

  absl::StatusOr<StreamedSums> Find() {
    for (const Block* block : BlocksUnder(loop_.body)) {
      if (block->reduce == ReduceOp::kNone || !Accumulates(*block)) continue;
      MYCC_ASSIGN_OR_RETURN(StreamedSum sum, SumOf(*block));
      found_.sums.push_back(std::move(sum));
    }
    if (found_.sums.empty()) return Refuse("no block under the loop accumulates along it");
    MYCC_RETURN_IF_ERROR(FindPart());
    for (StreamedSum& sum : found_.sums) MYCC_RETURN_IF_ERROR(Analyse(&sum));
    return std::move(found_);
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(const Parts&... why) const {
    return Refusal(reduction_.name, " cannot be streamed along loop ", loop_.var->name, ": ", why...);
  }

  // A loop of one iteration is in no binding: then every sum whose accumulator is outside counts.
  bool Accumulates(const Block& block) const {
    if (loop_.var->extent > 1) return CarriesReduction(block, loop_);
    return !AnyOf<Alloc>(loop_.body, [&](const Alloc& alloc) { return alloc.buffer == block.out; });
  }

  absl::StatusOr<StreamedSum> SumOf(const Block& block) const {
    StreamedSum sum{&block, {}, {}, {}};
    MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function_, block.name));
    sum.loops = LoopsInside(path, loop_);
    const VarMap bindings = BindingsOf(block);
    for (const Expr& index : block.indices) {
      const Expr bound = Simplify(Substitute(index, bindings));
      const bool is_loop = std::ranges::find(sum.loops, bound->var, &For::var) != sum.loops.end();
      const bool is_one = IsConstInt(bound, int64_t{0}) || (bound->op == Op::kVar && bound->var->extent == 1);
      if (block.init || !block.more.empty() || (!is_loop && !is_one)) {
        return Refuse(block.name, " has no accumulator of its own around the loop; cache_write it first");
      }
      sum.tile.push_back(is_loop ? bound->var : nullptr);
    }
    return sum;
  }

  // All sums must run over the same parts of the reduction's only axis.
  absl::Status FindPart() {
    const std::vector<Var> axes = ReduceAxesOf(reduction_);
    if (axes.size() != 1) return Refuse("it reduces over several axes; expected one");
    const int64_t extent = axes[0]->extent;
    const auto inner = LoopVarsUnder(loop_.body);
    std::optional<DimRegion> part;
    for (const StreamedSum& sum : found_.sums) {
      for (const IterVar& iter : sum.block->iters) {
        if (!iter.reduce || (loop_.var->extent > 1 && !UsesVar(iter.binding, loop_.var.get()))) continue;
        const DimRegion covered = CoveringBox({{iter.binding}}, inner, {iter.var->extent})[0];
        const bool same = !part || part->IsSame(covered);
        if (iter.var->extent != extent || !same) {
          return Refuse(sum.block->name, " sums over ", iter.var->extent, " elements, ", covered.extent,
                        " in an iteration; expected the ", extent,
                        " elements of the axis, in the same parts as other sums");
        }
        part = covered;
      }
    }
    found_.part = *part;
    return absl::OkStatus();
  }

  absl::Status Analyse(StreamedSum* sum) {
    MYCC_ASSIGN_OR_RETURN(sum->dependence, DependenceOfBlock(*sum->block));
    const Dependence& dependence = sum->dependence;
    if (dependence.IsFree()) return absl::OkStatus();
    if (sum->block->reduce != ReduceOp::kSum)
      return Refuse(sum->block->name, ", which depends on it, is no sum");
    if (dependence.rest == nullptr)
      return Refuse(sum->block->name, " sums nothing but ", reduction_.out->name);
    if (dependence.factor != nullptr) found_.without_factor[sum->block] = dependence.rest;
    return dependence.exponent == 0 ? absl::OkStatus() : TakeExponent(*sum);
  }

  // The correction must not grow: exp(-c * R) of a maximum, exp(c * R) of a minimum, with one c for all sums.
  absl::Status TakeExponent(const StreamedSum& sum) {
    const double exponent = sum.dependence.exponent;
    if (reduction_.reduce != (exponent < 0 ? ReduceOp::kMax : ReduceOp::kMin)) {
      return Refuse("the correction exp(", exponent, " * change) of ", sum.block->name,
                    " could overflow; expected exp(x - maximum) or exp(minimum - x)");
    }
    if (found_.exponent != 0 && found_.exponent != exponent)
      return Refuse(sum.block->name, " needs a correction of its own");
    found_.exponent = exponent;
    return absl::OkStatus();
  }

  absl::StatusOr<Dependence> DependenceOfBlock(const Block& block) {
    LoadFacts facts;
    facts.dependence = [&](const Expr& load) { return DependenceOfTile(load); };
    facts.definition = [&](const Expr& load) -> Expr {
      const Block* writer = WriterOf(function_, load->buffer);
      return writer == nullptr || writer->reduce != ReduceOp::kNone ? nullptr : writer->value;
    };
    return DependenceOn(block.value, reduction_.out, facts);
  }

  // An element of a tensor that is computed in each iteration depends as its value does.
  absl::StatusOr<Dependence> DependenceOfTile(const Expr& load) {
    const Block* writer = nullptr;
    for (const Block* block : BlocksUnder(loop_.body)) {
      if (block->out == load->buffer) writer = block;
    }
    const auto sum = std::ranges::find(found_.sums, writer, &StreamedSum::block);
    if (writer == nullptr || sum != found_.sums.end()) return Dependence{load};
    MYCC_ASSIGN_OR_RETURN(const Dependence inner, DependenceOfBlock(*writer));
    if (inner.IsFree()) return Dependence{load};
    const std::optional<VarMap> iters = ItersAt(*writer, load->args);
    if (!iters || writer->reduce != ReduceOp::kNone || inner.rest == nullptr) {
      return Refuse(writer->name, ", which depends on it, is no block of one value for each element");
    }
    if (inner.factor != nullptr) found_.without_factor[writer] = inner.rest;
    return inner.OfElement(load, *iters);
  }

  const Function& function_;
  const Block& reduction_;
  const For& loop_;
  StreamedSums found_;
};

}  // namespace

absl::StatusOr<StreamedSums> FindStreamedSums(const Function& function, const Block& reduction,
                                              const Path& loop) {
  return SumFinder(function, reduction, loop).Find();
}

}  // namespace mycc

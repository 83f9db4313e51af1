#include "codegen/workload/joined_groups.h"

#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/product.h"
#include "codegen/workload/stage_over.h"

namespace mycc {
namespace {

// K of an index k//K*C + c.
std::optional<int64_t> KernelsOfGroup(const Expr& index, const Var& kernel, const Var& channel) {
  const auto linear = SplitLinear(index, channel.get());
  if (!linear || linear->coefficient != 1) return std::nullopt;
  const Linear rest = ToLinear(linear->rest);
  if (rest.terms.size() != 1 || rest.constant != 0) return std::nullopt;
  const auto& [atom, coefficient] = *rest.terms.begin();
  int64_t kernels = 0;
  const bool is_group = atom->op == Op::kFloorDiv && atom->args[0]->op == Op::kVar &&
                        atom->args[0]->var == kernel && IsConstInt(atom->args[1], &kernels) &&
                        coefficient == channel->extent && kernel->extent % kernels == 0;
  return is_group ? std::make_optional(kernels) : std::nullopt;
}

// The dimension of the input's channels, where these two variables index it in groups; no other one uses
// them.
std::optional<GroupedSum> GroupsOf(const ExprNode& x, const Var& kernel, const Var& channel) {
  std::optional<GroupedSum> found;
  for (size_t d = 0; d < x.args.size(); ++d) {
    if (!UsesVar(x.args[d], kernel.get()) && !UsesVar(x.args[d], channel.get())) continue;
    const std::optional<int64_t> kernels = KernelsOfGroup(x.args[d], kernel, channel);
    if (found || !kernels || *kernels == kernel->extent) return std::nullopt;
    found = GroupedSum{.kernels = *kernels,
                       .channels = channel->extent,
                       .groups = kernel->extent / *kernels,
                       .input_dim = static_cast<int>(d)};
  }
  return found;
}

// The weights with zeros for the other groups' channels.
Stage WideWeights(const Stage& sum, const GroupedSum& how, const Buffer& weights, int64_t joined) {
  std::vector<int64_t> shape = weights->shape;
  shape[how.channel_dim] *= joined;
  Stage stage = StageOver(absl::StrCat(sum.output->name, kWideWeights), weights->dtype, shape);
  std::vector<Expr> from = IndexOf(stage.axes);
  const Expr kernel = from[how.kernel_dim], channel = from[how.channel_dim];
  const Expr own = Mod(FloorDiv(kernel, how.kernels), joined);
  from[how.channel_dim] = Mod(channel, how.channels);
  const Expr zero = ReduceIdentity(ReduceOp::kSum, weights->dtype);
  stage.value = MakeSelect(MakeBinary(Op::kEq, FloorDiv(channel, how.channels), own),
                           Load(weights, std::move(from)), zero);
  return stage;
}

}  // namespace

std::optional<GroupedSum> FindGroupedSum(const Stage& stage) {
  if (!SumsProducts(stage)) return std::nullopt;
  const ExprNode* const loads[] = {LoadOfFactor(stage.value->args[0]), LoadOfFactor(stage.value->args[1])};
  if (loads[0] == nullptr || loads[1] == nullptr || loads[0]->buffer == loads[1]->buffer) return std::nullopt;
  for (const int input : {0, 1}) {
    for (size_t a = 0; a < stage.axes.size(); ++a) {
      for (size_t r = 0; r < stage.reduce_axes.size(); ++r) {
        const Var &kernel = stage.axes[a], &channel = stage.reduce_axes[r];
        std::optional<GroupedSum> found = GroupsOf(*loads[input], kernel, channel);
        if (!found) continue;
        found->axis = static_cast<int>(a);
        found->reduce_axis = static_cast<int>(r);
        found->input = input;
        found->kernel_dim = WholeDim(*loads[1 - input], kernel);
        found->channel_dim = WholeDim(*loads[1 - input], channel);
        if (found->kernel_dim >= 0 && found->channel_dim >= 0) return found;
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<Stage>> JoinedGroupsStages(const Stage& stage, int64_t joined) {
  const std::optional<GroupedSum> how = FindGroupedSum(stage);
  if (!how) {
    return absl::FailedPreconditionError(
        absl::StrCat(stage.output->name, " is not a sum of products in groups of channels"));
  }
  if (joined < 2 || how->groups % joined != 0) {
    return absl::FailedPreconditionError(absl::StrCat(joined, " groups in one; expected a divisor of the ",
                                                      how->groups, " groups of ", stage.output->name,
                                                      ", and at least 2"));
  }
  const ExprNode &x = *LoadOfFactor(stage.value->args[how->input]),
                 &w = *LoadOfFactor(stage.value->args[1 - how->input]);
  Stage wide = WideWeights(stage, *how, w.buffer, joined);
  Stage sum = stage;
  Var& channel = sum.reduce_axes[how->reduce_axis];
  channel = MakeVar(channel->name, how->channels * joined);
  sum.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
    std::vector<Expr> index = e->args;
    if (e.get() == &x) {
      const Expr group = FloorDiv(VarRef(stage.axes[how->axis]), how->kernels * joined);
      index[how->input_dim] = Simplify(group * (how->channels * joined) + VarRef(channel));
      return Load(x.buffer, std::move(index));
    }
    if (e.get() == &w) {
      index[how->channel_dim] = VarRef(channel);
      return Load(wide.output, std::move(index));
    }
    return nullptr;
  });
  return std::vector<Stage>{std::move(wide), std::move(sum)};
}

}  // namespace mycc

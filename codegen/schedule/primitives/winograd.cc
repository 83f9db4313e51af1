// winograd(B, m): a convolution of 3 x 3 windows that move by 1 becomes Winograd's F(m x m, 3 x 3): the
// stages of workload/winograd.h, each under its own naive loops. B keeps its name and computes the same
// tensor from tiles of m x m outputs; the others are called after it. What is made of a const filter alone is
// computed ahead of time.
//
//   for i, j, k: for r, s, c:                  for xi, nu, c, k: B.u: B.u[xi, nu, c, k] = .. w ..
//     B: t2[i, j, k] += x[i + r, j + s, c]     for xi, nu, t, c: B.v: B.v[xi, nu, t, c] = .. x ..
//                       * w[k, c, r, s]    ->  for xi, nu, t, k: for c: B.m:
//                                                B.m[xi, nu, t, k] += B.v[xi, nu, t, c] * B.u[xi, nu, c, k]
//                                              for i, j, k: B: t2[i, j, k] = .. B.m[.., i//m*J + j//m, k] ..
#include "codegen/workload/winograd.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

using TensorStage = struct Stage;  // of a workload; the primitive of that name hides it

TensorStage StageOf(const Block& block) {
  TensorStage stage{block.out, {}, block.reduce, {}, block.value};
  for (const IterVar& iter : block.iters) (iter.reduce ? stage.reduce_axes : stage.axes).push_back(iter.var);
  return stage;
}

// The stages' names must be free: a second function of the same name has a suffix already.
absl::Status CheckNamesAreFree(const Function& function, const std::vector<TensorStage>& stages) {
  for (size_t s = 0; s + 1 < stages.size(); ++s) {
    const std::string& name = stages[s].output->name;
    if (FreshName(function, name) != name)
      return absl::FailedPreconditionError(absl::StrCat("the name ", name, " is taken"));
  }
  return absl::OkStatus();
}

// A const input, or computed from such alone.
bool IsKnownAhead(const Function& function, const Buffer& buffer) {
  for (const Param& param : function.params) {
    if (param.buffer == buffer) return param.kind == ParamKind::kConst;
  }
  const Block* writer = WriterOf(function, buffer);
  bool known = writer != nullptr;
  Visit(known ? writer->value : IntConst(0), [&](const ExprNode& e) {
    if (e.op == Op::kLoad) known = known && IsKnownAhead(function, e.buffer);
  });
  return known;
}

}  // namespace

absl::StatusOr<Function> Winograd(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums)
    return absl::FailedPreconditionError(
        "the target is sums=direct: what is summed is added up as it stands");
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& block = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, block));
  const int64_t m = args.Int(1);
  if (m != 2 && m != 4)
    return absl::FailedPreconditionError(absl::StrCat("tiles of ", m, " x ", m, "; expected 2 or 4"));
  const TensorStage conv = StageOf(block);
  MYCC_ASSIGN_OR_RETURN(const WinogradShape shape, WinogradShapeOf(conv));
  const std::vector<TensorStage> stages = WinogradStages(conv, shape, static_cast<int>(m));
  MYCC_RETURN_IF_ERROR(CheckNamesAreFree(function, stages));

  // The whole nest is replaced, with its loops.
  Path nest = path;
  while (nest.nodes.size() > 1 && nest.nodes[nest.nodes.size() - 2]->kind == StmtKind::kFor)
    nest.nodes.pop_back();
  std::vector<Stmt> nests;
  nests.reserve(stages.size());
  for (const TensorStage& stage : stages) nests.push_back(BuildStage(stage, nullptr));
  Function result = WithBody(function, ReplaceAt(nest, MakeSeq(std::move(nests))));
  const bool known_ahead = IsKnownAhead(function, FilterOf(conv, shape));
  for (auto stage = stages.rbegin() + 1; stage != stages.rend(); ++stage) {
    Buffer made = stage->output;
    if (known_ahead && absl::EndsWith(made->name, kWinogradFilter)) {
      made = MakeBuffer(made->name, made->dtype, made->shape, Scope::kPacked);
      result.body = ReplaceBuffer(result.body, stage->output, made);
    }
    result.body = std::make_shared<Alloc>(made, std::move(result.body));
  }
  return result;
}

}  // namespace mycc

// Primitives that replace the stage of a naive block B by others, and with it the block by naive blocks. B
// keeps its name and writes the same tensor; the names of new blocks begin with B's. The last of them,
// split_chain, does so with a chain of stages.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/correction.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/split_chain.h"
#include "codegen/schedule/stage_rewrites.h"
#include "codegen/schedule/stride_phases.h"
#include "codegen/workload/folded_stride.h"
#include "codegen/workload/joined_groups.h"
#include "codegen/workload/winograd.h"

namespace mycc {
namespace {

// The stage that BuildNaive made the block from. FailedPrecondition for a reduction of tuples, and for one
// that another block began.
absl::StatusOr<Stage> StageOf(const Block& block) {
  if (block.reduce.tuple() != nullptr) {
    return Refusal(block.name, " reduces tuples (", block.reduce.name(), "), and is no stage of one value");
  }
  if (block.init != (block.reduce != ReduceOp::kNone))
    return Refusal(block.name, " goes on with a reduction that another block began, and is no stage");
  Stage stage{block.out, {}, block.reduce.op(), {}, block.value};
  for (const IterVar& iter : block.iters) (iter.reduce ? stage.reduce_axes : stage.axes).push_back(iter.var);
  return stage;
}

// The stage of an argmax or argmin too, which BuildNaive made a reduction of (position, value).
absl::StatusOr<Stage> AnyStageOf(const Block& block) {
  for (const ReduceOp op : {ReduceOp::kArgMax, ReduceOp::kArgMin}) {
    if (block.reduce.tuple() == nullptr || block.reduce.name() != ReduceOpName(op)) continue;
    Block of_values = block;
    of_values.reduce = op;
    of_values.value = block.more.front().value;
    return StageOf(of_values);
  }
  return StageOf(block);
}

// Whether the tensor is a const input, or computed only from const inputs.
bool IsKnownAhead(const Function& function, const Buffer& buffer) {
  if (IsParam(function, buffer)) return IsParam(function, buffer, ParamKind::kConst);
  const Block* writer = WriterOf(function, buffer);
  return writer != nullptr && std::ranges::all_of(LoadsOf(*writer), [&](const ExprNode* load) {
           return IsKnownAhead(function, load->buffer);
         });
}

// The workload whose naive function this is. FailedPrecondition when a block is not naive any more.
absl::StatusOr<Workload> WorkloadOf(const Function& function) {
  Workload workload;
  workload.name = function.name;
  for (const Param& param : function.params) {
    if (param.kind == ParamKind::kOutput) {
      workload.outputs.push_back(param.buffer);
    } else {
      workload.inputs.push_back({param.buffer, param.kind == ParamKind::kConst});
    }
  }
  for (const Block* block : BlocksUnder(function.body)) {
    MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, block->name));
    MYCC_RETURN_IF_ERROR(CheckNaive(path));
    MYCC_ASSIGN_OR_RETURN(Stage stage, AnyStageOf(*block));
    workload.stages.push_back(std::move(stage));
  }
  return workload;
}

// Replaces the naive block, with its loops, by the stages that `rewrite` makes of its stage. The last of them
// writes the block's tensor; the tensors of the others are allocated at the root. FailedPrecondition when the
// block is not naive any more, when another one writes that tensor too, or when a stage's name is taken.
template <typename RewriteFn>
absl::StatusOr<Function> Rewritten(const Function& function, const std::string& block,
                                   const RewriteFn& rewrite) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, block));
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(path.block()));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, rewrite(stage));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, path.block()));
  std::vector<Buffer> made;
  std::vector<Stmt> nests;
  nests.reserve(stages.size());
  for (const Stage& next : stages) {
    nests.push_back(BuildStage(next));
    if (&next == &stages.back()) break;
    made.push_back(next.output);
    const std::string& name = next.output->name;
    if (FreshName(function, name) != name) return Refusal("the name ", name, " is taken");
  }
  return WithBody(function, InAllocs(made, ReplaceAt(NestPath(path), MakeSeq(std::move(nests)))));
}

// The function with the allocated tensor of this name in scope `packed`, computed ahead of time, if it
// depends on const inputs alone.
absl::StatusOr<Function> PackedIfKnown(const Function& function, const std::string& tensor) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, tensor));
  if (!IsKnownAhead(function, buffer)) return function;
  const Buffer packed = MakeBuffer(buffer->name, buffer->dtype, buffer->shape, Scope::kPacked);
  return WithBody(function, ReplaceBuffer(function.body, buffer, packed));
}

}  // namespace

// elide_reduction(B): a reduction of one term is that term. Its readers can then be computed with it, element
// by element.
//
//   for i: for k in 1: B: t1[i] += t0[i,k]     ->     for i: B: t1[i] = 0.0 + t0[i,0]
absl::StatusOr<Function> ElideReduction(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0), [&](const Stage& stage) -> absl::StatusOr<std::vector<Stage>> {
    if (!HasSingleTerm(stage)) return Refusal(args.Name(0), " is no reduction of one term");
    return std::vector<Stage>{SingleTermStage(stage)};
  });
}

// factor_stage(B): gives B's value without its positive factor a block of its own, B.x. Where B is inlined
// then, its readers have the factor: a maximum is taken of the elements without it, and an exponent has it in
// the constant that it is multiplied by anyway (stream_reduction).
//
//   for i, j: B: t1[i,j] = select(j <= i, tanh(t0[i,j]) * 50, -inf)
//     ->
//   for i, j: B.x: B.x[i,j] = select(j <= i, tanh(t0[i,j]), -inf)
//   for i, j: B: t1[i,j] = B.x[i,j] * 50
absl::StatusOr<Function> FactorStage(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0), [](Stage stage) -> absl::StatusOr<std::vector<Stage>> {
    const PositiveFactor parts = PositiveFactorOf(stage.value);
    if (stage.reduce != ReduceOp::kNone || parts.factor == 1)
      return Refusal(stage.output->name,
                     " has no positive factor; expected c * x, or select(.., c * x, -inf)");
    const ValueStage rest = StageOfValue(absl::StrCat(stage.output->name, ".x"), parts.rest, stage.axes);
    stage.value = MakeBinary(Op::kMul, rest.load, FloatConst(parts.factor, stage.value->dtype));
    return std::vector<Stage>{rest.stage, stage};
  });
}

// operand_stage(B, 0): gives a factor of B's products (0: left, 1: right) a block of its own, B.a or B.b,
// that computes it once, in the type that it is rounded to.
//
//   for i, j: for k:                                         for i, k: B.a: B.a[i,k] = bf16(exp(t0[i,k]))
//     B: t2[i,j] += f32(bf16(exp(t0[i,k]))) * ..     ->      for i, j: for k: B: t2[i,j] += f32(B.a[i,k]) *
//     ..
absl::StatusOr<Function> OperandStage(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0), [&](const Stage& stage) -> absl::StatusOr<std::vector<Stage>> {
    const int64_t factor = args.Int(1);
    if (factor != 0 && factor != 1) return Refusal("factor ", factor, "; expected 0 (left) or 1 (right)");
    return OperandStages(stage, static_cast<int>(factor));
  });
}

// permute_axes(B, [1, 0]): B's tensor has its dimensions in another order, and so have the loops; a block B
// copies it to the tensor that it was. Inlined, the copy leaves readers of the new tensor.
//
//   for i, j: for k: B: t2[i,j] += ..     ->     for j, i: for k: B.p: B.p[j,i] += ..
//                                                for i, j: B: t2[i,j] = B.p[j,i]
absl::StatusOr<Function> PermuteAxes(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0),
                   [&](const Stage& stage) { return PermutedStages(stage, args.Ints(1)); });
}

// flip_sign(B, t0): turns a sum of products of two i8 tensors, or of two u8 tensors, into one of u8 times i8,
// by changing the type of operand t0.
//
//   for i, j: for k:                                for i, k: B.sign: B.sign[i,k] = u8(t0[i,k] - 128)
//     B: t2[i,j] += i32(t0[i,k]) * i32(t1[k,j])     for j: for k: B.sums: B.sums[j] += i32(t1[k,j]) * -128
//                                              ->   for i, j: for k: B.unlike: B.unlike[i,j] +=
//                                                                      i32(B.sign[i,k]) * i32(t1[k,j])
//                                                   for i, j: B: t2[i,j] = B.unlike[i,j] + B.sums[j]
absl::StatusOr<Function> FlipSign(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0), [&](const Stage& stage) -> absl::StatusOr<std::vector<Stage>> {
    MYCC_ASSIGN_OR_RETURN(const Buffer changed, FindBuffer(function, args.Name(1)));
    return FlippedSignStages(stage, changed);
  });
}

// split_stride_phases(B): splits a transposed convolution by the phases of its stride, so that each output
// uses only the taps of its phase (codegen/schedule/stride_phases.h).
//
//   for i: for r in 4:
//     B: y[i] += select((i + 1 - r) % 2 == 0 && .., x[(i + 1 - r) // 2], 0.0) * w[r]
//   ->
//   for u: B.in: t1.in[u] = select(.., x[u-1], 0.0)
//   for i: for r in 2:
//     B: y[i] += t1.in[i//2 - r + (i%2 + 1)//2 + 1] * w[r*2 + (i%2 + 1)%2]
absl::StatusOr<Function> SplitStridePhases(const Function& function, const Target&, const StepArgs& args) {
  return Rewritten(function, args.Name(0), [&](const Stage& stage) -> absl::StatusOr<std::vector<Stage>> {
    std::vector<Stage> stages = StridePhaseStages(stage);
    if (!stages.empty()) return stages;
    return Refusal(args.Name(0),
                   " is not a sum of select((i + p - r) % f == 0 && .., x[(i + p - r) // f], 0) * w[r] ",
                   "whose axis and taps f divides");
  });
}

// fold_stride(B): the pixels that a convolution steps over become channels
// (codegen/workload/folded_stride.h). Weights that are known ahead are folded ahead of time.
//
//   for i, k: for r in 3: for c in 2:       for j, q in 4: B.folded: B.folded[j, q] = x[j*2 + q//2, q % 2]
//     B: t2[i, k] += x[i*2 + r, c]     ->   for k, r in 2, q in 4: B.taps: B.taps[k, r, q] = w[.., q % 2],
//                    * w[k, r, c]                                          where r*2 + q//2 < 3; else 0
//                                           for i, k: for r in 2: for q in 4:
//                                             B: t2[i, k] += B.folded[i + r, q] * B.taps[k, r, q]
absl::StatusOr<Function> FoldStride(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums) return Refusal("the target is sums=direct, which forbids products beyond windows");
  MYCC_ASSIGN_OR_RETURN(const Function result, Rewritten(function, args.Name(0), FoldedStrideStages));
  return PackedIfKnown(result, args.Name(0) + kFoldedTaps);
}

// join_groups(B, 4): makes one group of each four of a sum of products in groups, by weights that are zero
// between them (codegen/workload/joined_groups.h). Weights that are known ahead are made ahead of time.
//
//   for k in 32: for c in 4:                  for k in 32: for c in 16: B.wide: B.wide[k, c] = w[k, c % 4],
//     B: t2[k] += x[k//4*4 + c] * w[k, c]  ->                             where c//4 = k//4 % 4; else 0
//                                             for k in 32: for c in 16:
//                                               B: t2[k] += x[k//16*16 + c] * B.wide[k, c]
absl::StatusOr<Function> JoinGroups(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums)
    return Refusal("the target is sums=direct, which forbids products with other groups");
  const auto joined = [&](const Stage& stage) { return JoinedGroupsStages(stage, args.Int(1)); };
  MYCC_ASSIGN_OR_RETURN(const Function result, Rewritten(function, args.Name(0), joined));
  return PackedIfKnown(result, args.Name(0) + kWideWeights);
}

// winograd(B, m): turns a convolution of 3 x 3 windows that move by 1 into Winograd's F(m x m, 3 x 3): the
// stages of workload/winograd.h, each under its own naive loops. B is computed from tiles of m x m outputs.
// A filter that is known ahead is transformed ahead of time.
//
//   for i, j, k: for r, s, c:                  for xi, nu, c, k: B.u: B.u[xi, nu, c, k] = .. w ..
//     B: t2[i, j, k] += x[i + r, j + s, c]     for xi, nu, t, c: B.v: B.v[xi, nu, t, c] = .. x ..
//                       * w[k, c, r, s]    ->  for xi, nu, t, k: for c: B.m:
//                                                B.m[xi, nu, t, k] += B.v[xi, nu, t, c] * B.u[xi, nu, c, k]
//                                              for i, j, k: B: t2[i, j, k] = .. B.m[.., i//m*J + j//m, k] ..
absl::StatusOr<Function> Winograd(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums) return Refusal("the target is sums=direct, which forbids Winograd");
  const auto tiled = [&](const Stage& conv) -> absl::StatusOr<std::vector<Stage>> {
    const int64_t m = args.Int(1);
    if (m != 2 && m != 4) return Refusal("tiles of ", m, " x ", m, "; expected 2 or 4");
    MYCC_ASSIGN_OR_RETURN(const WinogradShape shape, WinogradShapeOf(conv));
    return WinogradStages(conv, shape, static_cast<int>(m));
  };
  MYCC_ASSIGN_OR_RETURN(const Function result, Rewritten(function, args.Name(0), tiled));
  return PackedIfKnown(result, args.Name(0) + kWinogradFilter);
}

// split_chain(B, heads, rows, length): splits the chain of stages that ends in the sum B into parts of its
// axis, and lets the rows of several heads with the same keys share a tile (codegen/schedule/split_chain.h).
// All blocks are naive before and after.
absl::StatusOr<Function> SplitChain(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, WorkloadOf(function));
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  int sum = 0;
  while (workload.stages[sum].output != path.block().out) ++sum;
  const std::optional<StreamChain> chain = FindStreamChain(workload, StageLinks(workload), sum);
  if (!chain) {
    return Refusal(path.block().name, " does not end a chain of stages along one axis");
  }
  MYCC_ASSIGN_OR_RETURN(
      const Workload parts,
      WithChainParts(workload, *chain, {.heads = args.Int(1), .rows = args.Int(2), .length = args.Int(3)}));
  return BuildNaive(parts);
}

}  // namespace mycc

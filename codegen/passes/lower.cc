// The list of passes, with reasons for their order, and the pipeline that runs, verifies and prints them.
#include "codegen/passes/lower.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/ir/debug.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Limits of unrolled code: more takes seconds to compile and is not faster. A GPU's threads have more
// registers to unroll into.
constexpr double kMaxInstructions = 60000, kMaxGpuInstructions = 160000;

// Adapts a pass to the table's form: some passes take no target, and most cannot fail.
template <auto kPass>
absl::StatusOr<Stmt> Run(const Stmt& body, const Target& target) {
  if constexpr (std::is_invocable_v<decltype(kPass), const Stmt&, const Target&>) {
    return kPass(body, target);
  } else {
    return kPass(body);
  }
}

struct Pass {
  const char* name;
  absl::StatusOr<Stmt> (*run)(const Stmt& body, const Target& target);
};

// A comment names each constraint on the order.
constexpr Pass kCpuPasses[] = {
    {"lower_blocks", Run<LowerBlocks>},
    // Before partitioning, which cuts loops along single variables.
    {"unfuse_loops", Run<UnfuseLoops>},
    {"partition_loops", Run<PartitionLoops>},
    {"simplify", Run<SimplifyStmts>},
    // After partitioning, so that tails have their own sizes; before tensorization, which fixes strides.
    {"fit_locals", Run<FitLocals>},
    {"tensorize", Run<TensorizeLoops>},
    {"hoist_conditions", Run<HoistConditions>},
    {"split_reductions", Run<SplitReductions>},
    // After all that make loops.
    {"choose_lane_forms", Run<ChooseLaneForms>},
    {"place_locals", Run<PlaceLocals>},
    // Last, because other passes do not know these statements. Tiles first: their moves have no lanes.
    {"place_tiles", Run<PlaceTiles>},
    {"place_fetches", Run<PlaceFetches>},
    // After fetches, because loops with a mark are no longer directly inside others.
    {"place_bypasses", Run<PlaceBypasses>},
};

// Guards stay predicates on a GPU, and lanes are scalar code.
constexpr Pass kCudaPasses[] = {
    {"bind_nests", Run<BindNests>},
    {"lower_blocks", Run<LowerBlocks>},
    {"unfuse_loops", Run<UnfuseLoops>},
    {"simplify", Run<SimplifyStmts>},
    // Before conditions move out of the loops around a reduction, which is a barrier of all threads.
    {"split_thread_reductions", Run<SplitThreadReductions>},
    {"tensorize_tiles", Run<TensorizeTiles>},
    // After tensorization, which does not recognize tiles indexed by a ring's slot.
    {"pipeline_loops", Run<PipelineLoops>},
    {"fragment_loops", Run<FragmentLoopsOf>},
    // After fragments, whose registers are vectors; before conditions move out of loops.
    {"split_whole_vectors", Run<SplitWholeVectors>},
    // After fragments, which make loops over a thread's registers.
    {"split_conversions", Run<SplitConversions>},
    // After fragments, which make the threads that share a row; before a loop has parts.
    {"defer_sums", Run<DeferSums>},
    // After fragments, because its statements are whole nests; before waits are placed.
    {"rotate_products", Run<RotateProducts>},
    // After fragments, so that a mask compares the places of single elements.
    {"unmask_tiles", Run<UnmaskTiles>},
    // After masks, whose loops copy bodies; before waits are placed, which then come after the fetches.
    {"fetch_ahead", Run<FetchAhead>},
    // After pipelining, which releases slots, and after fragments, because waits stand before the nests that
    // touch accumulators.
    {"overlap_products", Run<OverlapProducts>},
    {"fit_locals", Run<FitLocals>},
    {"hoist_conditions", Run<HoistConditions>},
    // Before buffers move to the workspace, where those that are not live together overlap.
    {"join_launches", Run<JoinLaunches>},
};

// Launches, their shared memory, and the barriers of their threads. These come after the move of buffers to
// the workspace, which takes their Allocs from the root.
constexpr Pass kLaunchPasses[] = {
    {"launches", Run<MakeLaunches>},
    {"place_roles", Run<PlaceRoles>},
    // After roles, whose threads combine.
    {"place_combines", Run<PlaceCombines>},
    // After combines, which need memory.
    {"place_shared", Run<PlaceShared>},
    // After shared memory, because buffers with the same bytes need barriers.
    {"place_barriers", Run<PlaceBarriers>},
    // After roles, whose threads share a copy, and barriers, which are planned for whole copies.
    {"divide_copies", Run<DivideCopies>},
    // After the other passes, which do not know its statements.
    {"place_vectors", Run<PlaceVectors>},
    // After vectors, which store pairs.
    {"place_registers", Run<PlaceRegisters>},
};

// Runs the passes over one body; verifies, times and prints after each.
class Pipeline {
 public:
  // `function` is one of those of `lowered`.
  Pipeline(const Target& target, LoweredFunction* lowered, Function* function)
      : target_(target), lowered_(lowered), function_(*function) {}

  absl::Status Run() {
    const bool on_gpu = target_.kind == TargetKind::kCuda;
    MYCC_RETURN_IF_ERROR(on_gpu ? RunPasses(kCudaPasses) : RunPasses(kCpuPasses));
    const double instructions = EstimateInstructions(function_.body, target_);
    const double most = on_gpu ? kMaxGpuInstructions : kMaxInstructions;
    if (instructions > most) {
      return Refusal("unrolled, the code has about ", static_cast<int64_t>(instructions),
                     " instructions; at most ", static_cast<int64_t>(most), " are emitted");
    }
    function_.body = MoveToWorkspace(function_.body, target_, lowered_);
    return on_gpu ? RunPasses(kLaunchPasses) : absl::OkStatus();
  }

 private:
  absl::Status RunPasses(std::span<const Pass> passes) {
    for (const Pass& pass : passes) {
      MYCC_ASSIGN_OR_RETURN(Stmt after, Timed(pass));
      const bool changed = after != function_.body;
      function_.body = std::move(after);
      Print(pass.name, changed);
      if (changed) MYCC_RETURN_IF_ERROR(Verify(pass.name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Stmt> Timed(const Pass& pass) const {
    const TimedStep step(pass.name);
    return pass.run(function_.body, target_);
  }

  absl::Status Verify(const std::string& name) const {
    std::vector<Buffer> outside;
    for (const PackedBuffer& packed : lowered_->packed) outside.push_back(packed.buffer);
    for (const WorkspaceBuffer& moved : lowered_->workspace) outside.push_back(moved.buffer);
    Function closed = function_;
    closed.body = InAllocs(outside, closed.body);
    const absl::Status status = VerifyFunction(closed);
    if (status.ok()) return status;
    return absl::InternalError(absl::StrCat("after ", name, " of ", function_.name, ": ", status.message()));
  }

  void Print(const std::string& name, bool changed) const {
    if (GetPassDebug().level < kDebugPasses && GetPassDebug().print_after != name) return;
    std::fprintf(stderr, "// %s after %s%s\n%s", function_.name.c_str(), name.c_str(),
                 changed ? "" : " (unchanged)", changed ? PrintStmt(function_.body).c_str() : "");
  }

  const Target& target_;
  LoweredFunction* lowered_;
  Function& function_;
};

bool HasParallel(const Stmt& body) {
  return AnyOf<For>(body, [](const For& loop) { return loop.loop_kind == LoopKind::kParallel; });
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kCpuPasses) names.push_back(pass.name);
  for (const Pass& pass : kCudaPasses) {
    if (std::ranges::find(names, pass.name) == names.end()) names.push_back(pass.name);
  }
  for (const Pass& pass : kLaunchPasses) names.push_back(pass.name);
  return names;
}

absl::StatusOr<LoweredFunction> Lower(const Function& scheduled, const Target& target) {
  LoweredFunction lowered = HoistPacked(scheduled);
  MYCC_RETURN_IF_ERROR(Pipeline(target, &lowered, &lowered.kernel).Run());
  if (!IsEmpty(lowered.pack.body)) MYCC_RETURN_IF_ERROR(Pipeline(target, &lowered, &lowered.pack).Run());
  lowered.parallel = HasParallel(lowered.kernel.body) || HasParallel(lowered.pack.body);
  return lowered;
}

std::vector<ArgumentBuffer> ArgumentsOfKernel(const LoweredFunction& lowered) {
  std::vector<ArgumentBuffer> buffers;
  for (size_t i = 0; i < lowered.kernel.params.size(); ++i) {
    const auto& [buffer, kind] = lowered.kernel.params[i];
    if (kind == ParamKind::kConst) continue;
    buffers.push_back({buffer, static_cast<int>(i), 0, kind == ParamKind::kInput, /*packed=*/false});
  }
  for (const PackedBuffer& packed : lowered.packed)
    buffers.push_back({packed.buffer, packed.param, packed.offset, /*read_only=*/true, /*packed=*/true});
  return buffers;
}

std::vector<ArgumentBuffer> ArgumentsOfPack(const LoweredFunction& lowered) {
  const std::vector<Param>& consts = lowered.pack.params;
  std::vector<ArgumentBuffer> buffers;
  buffers.reserve(consts.size() + lowered.packed.size());
  for (const Param& param : consts)
    buffers.push_back(
        {param.buffer, static_cast<int>(buffers.size()), 0, /*read_only=*/true, /*packed=*/false});
  for (const auto& [buffer, param, offset] : lowered.packed) {
    const auto of = std::ranges::find(consts, lowered.kernel.params[param].buffer, &Param::buffer);
    MYCC_CHECK(of != consts.end()) << "a packed buffer of no const";
    const auto position = static_cast<int>(consts.size()) + static_cast<int>(of - consts.begin());
    buffers.push_back({buffer, position, offset, /*read_only=*/false, /*packed=*/true});
  }
  return buffers;
}

std::string PrintLowered(const LoweredFunction& lowered) {
  std::string text = PrintFunction(lowered.kernel);
  for (const PackedBuffer& packed : lowered.packed) {
    absl::StrAppend(&text, "packed ", packed.buffer->name, ": ", TypeText(packed.buffer), " in ",
                    lowered.kernel.params[packed.param].buffer->name, " at ", packed.offset, "\n");
  }
  for (const WorkspaceBuffer& workspace : lowered.workspace) {
    absl::StrAppend(&text, "workspace ", workspace.buffer->name, ": ", TypeText(workspace.buffer),
                    workspace.per_thread ? " per thread" : "", " at ", workspace.offset, "\n");
  }
  if (!lowered.packed.empty()) absl::StrAppend(&text, PrintFunction(lowered.pack));
  return text;
}

std::string CodeDigest(const LoweredFunction& lowered, const Target& target, const std::string& toolchain) {
  return Sha256Hex(absl::StrCat(PrintLowered(lowered), PrintTarget(target), "\n", toolchain, "\n"));
}

}  // namespace mycc

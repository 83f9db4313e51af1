// The list of passes, with reasons for their order, and the pipeline that runs, verifies and prints them.
#include "codegen/passes/lower.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/ir/debug.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

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
  Pipeline(Function function, std::vector<Buffer> outside)
      : function_(std::move(function)), outside_(std::move(outside)) {}

  const Stmt& body() const { return function_.body; }

  // Buffers that outlive the body move out of it. The two bodies of a function share one workspace, because
  // they never run at the same time.
  void MoveToWorkspace(const Target& target, LoweredFunction* lowered) {
    StoragePlan plan = PlanStorage(function_.body, target);
    lowered->workspace.insert(lowered->workspace.end(), plan.workspace.begin(), plan.workspace.end());
    lowered->workspace_shared_bytes = std::max(lowered->workspace_shared_bytes, plan.shared_bytes);
    lowered->workspace_thread_bytes = std::max(lowered->workspace_thread_bytes, plan.thread_bytes);
    for (const WorkspaceBuffer& moved : plan.workspace) outside_.push_back(moved.buffer);
    function_.body = std::move(plan.body);
  }

  Function Take() { return std::move(function_); }

  absl::Status Run(std::span<const Pass> passes, const Target& target) {
    for (const Pass& pass : passes) {
      absl::StatusOr<Stmt> after = Timed(pass, target);
      MYCC_RETURN_IF_ERROR(after.status());
      const bool changed = *after != function_.body;
      function_.body = *std::move(after);
      Print(pass.name, changed);
      if (changed) MYCC_RETURN_IF_ERROR(Verify(pass.name));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Stmt> Timed(const Pass& pass, const Target& target) const {
    const TimedStep step(pass.name);
    return pass.run(function_.body, target);
  }

  absl::Status Verify(const std::string& name) const {
    Function closed = function_;
    closed.body = InAllocs(outside_, closed.body);
    const absl::Status status = VerifyFunction(closed);
    if (status.ok()) return status;
    return absl::InternalError(absl::StrCat("after ", name, " of ", function_.name, ": ", status.message()));
  }

  void Print(const std::string& name, bool changed) const {
    if (GetPassDebug().level < kDebugPasses && GetPassDebug().print_after != name) return;
    std::fprintf(stderr, "// %s after %s%s\n%s", function_.name.c_str(), name.c_str(),
                 changed ? "" : " (unchanged)", changed ? PrintStmt(function_.body).c_str() : "");
  }

  Function function_;
  std::vector<Buffer> outside_;  // packed and workspace buffers, for the verifier
};

absl::Status RunPasses(const Target& target, Pipeline* pipeline, LoweredFunction* lowered) {
  const bool on_gpu = target.kind == TargetKind::kCuda;
  MYCC_RETURN_IF_ERROR(on_gpu ? pipeline->Run(kCudaPasses, target) : pipeline->Run(kCpuPasses, target));
  const double instructions = EstimateInstructions(pipeline->body(), target);
  const double most = on_gpu ? kMaxGpuInstructions : kMaxInstructions;
  if (instructions > most) {
    return Refusal("unrolled, the code has about ", static_cast<int64_t>(instructions),
                   " instructions; at most ", static_cast<int64_t>(most), " are emitted");
  }
  pipeline->MoveToWorkspace(target, lowered);
  return on_gpu ? pipeline->Run(kLaunchPasses, target) : absl::OkStatus();
}

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
  LoweredFunction lowered;
  PackSplit split = HoistPacked(scheduled);
  lowered.packed = std::move(split.packed);
  lowered.packed_bytes = std::move(split.packed_bytes);
  std::vector<Buffer> outside;
  for (const PackedBuffer& packed : lowered.packed) outside.push_back(packed.buffer);

  Pipeline kernel(Function{scheduled.name, scheduled.params, split.kernel}, outside);
  MYCC_RETURN_IF_ERROR(RunPasses(target, &kernel, &lowered));
  lowered.kernel = kernel.Take();

  lowered.pack.name = absl::StrCat(scheduled.name, "_pack");
  for (const Param& param : scheduled.params) {
    if (param.kind == ParamKind::kConst) lowered.pack.params.push_back(param);
  }
  lowered.pack.body = MakeSeq({});
  if (split.pack) {
    lowered.pack.body = split.pack;
    Pipeline pack(std::move(lowered.pack), outside);
    MYCC_RETURN_IF_ERROR(RunPasses(target, &pack, &lowered));
    lowered.pack = pack.Take();
  }
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
  std::vector<ArgumentBuffer> buffers;
  std::map<int, int> positions;  // among the const parameters, by the parameter's number
  for (size_t i = 0; i < lowered.kernel.params.size(); ++i) {
    const auto& [buffer, kind] = lowered.kernel.params[i];
    if (kind != ParamKind::kConst) continue;
    const int position = static_cast<int>(positions.size());
    positions[static_cast<int>(i)] = position;
    buffers.push_back({buffer, position, 0, /*read_only=*/true, /*packed=*/false});
  }
  const int consts = static_cast<int>(positions.size());
  for (const auto& [buffer, param, offset] : lowered.packed)
    buffers.push_back({buffer, consts + positions.at(param), offset, /*read_only=*/false, /*packed=*/true});
  return buffers;
}

std::string PrintLowered(const LoweredFunction& lowered) {
  std::string text = PrintFunction(lowered.kernel);
  const auto layout = [](const Buffer& buffer) {
    std::string shape;
    for (const int64_t extent : buffer->shape) absl::StrAppend(&shape, shape.empty() ? "" : ",", extent);
    return absl::StrCat(buffer->name, ": ", DTypeName(buffer->dtype), "[", shape, "]");
  };
  for (const PackedBuffer& packed : lowered.packed) {
    absl::StrAppend(&text, "packed ", layout(packed.buffer), " in ",
                    lowered.kernel.params[packed.param].buffer->name, " at ", packed.offset, "\n");
  }
  for (const WorkspaceBuffer& workspace : lowered.workspace) {
    absl::StrAppend(&text, "workspace ", layout(workspace.buffer), workspace.per_thread ? " per thread" : "",
                    " at ", workspace.offset, "\n");
  }
  if (!lowered.packed.empty()) absl::StrAppend(&text, PrintFunction(lowered.pack));
  return text;
}

std::string CodeDigest(const LoweredFunction& lowered, const Target& target, const std::string& toolchain) {
  return Sha256Hex(absl::StrCat(PrintLowered(lowered), PrintTarget(target), "\n", toolchain, "\n"));
}

}  // namespace mycc

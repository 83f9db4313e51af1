#include "codegen/artifact/program_library.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/cuda_library.h"
#include "codegen/artifact/cuda_model.h"
#include "codegen/artifact/describe.h"
#include "codegen/artifact/link.h"
#include "codegen/artifact/pack_weights.h"
#include "codegen/artifact/program_glue.h"
#include "codegen/cuda/emit.h"
#include "codegen/llvm/emit.h"
#include "codegen/program/gpu_check.h"
#include "codegen/runtime/artifact/embed.h"
#include "codegen/workload/print.h"

namespace mycc {
namespace {

using Json = nlohmann::ordered_json;

Json KernelsJson(const ProgramSpec& spec) {
  Json kernels = Json::array();
  for (const KernelSpec& kernel : spec.kernels) {
    Json row = {{"name", kernel.workload.name},
                {"launches", kernel.workload.count},
                {"reason", ReasonName(kernel.reason)},
                {"record", nullptr}};
    if (kernel.record) row["record"] = *kernel.record;
    if (kernel.expected_seconds) row["expected_seconds"] = *kernel.expected_seconds;
    if (kernel.predicted_seconds) row["predicted_seconds"] = *kernel.predicted_seconds;
    row["workload"] = absl::StrCat("v1 ", PrintWorkload(kernel.workload));
    row["trace"] = PrintTrace(kernel.trace);
    kernels.push_back(row);
  }
  return kernels;
}

std::string ProgramJson(const ProgramSpec& spec, const Entry& entry, int64_t weight_bytes) {
  Json args = Json::array(), launches = Json::array();
  for (const EntryArg& arg : entry.args) {
    args.push_back({{"name", arg.name},
                    {"kind", arg.is_output ? "output" : "input"},
                    {"dtype", TypeName(arg)},
                    {"shape", arg.shape}});
    if (!arg.bounded.empty()) args.back()["bounded"] = arg.bounded;
  }
  for (const KernelLaunch& launch : spec.program.launches) {
    launches.push_back(
        {{"kernel", launch.kernel < 0 ? launch.call.function : spec.kernels[launch.kernel].workload.name},
         {"nodes", launch.origins}});
  }
  const int64_t team = entry.parallel ? spec.target.threads : 1;
  const Json json = {
      {"module", spec.module},
      {"target", PrintTarget(spec.target)},
      {"functions", Json::array({{{"name", entry.symbol},
                                  {"args", args},
                                  {"workspace_bytes", entry.shared_bytes + team * entry.thread_bytes}}})},
      {"memory",
       {{"peak_bytes", spec.program.arena_bytes},
        {"tensor_bytes", spec.program.tensor_bytes},
        {"weight_bytes", weight_bytes}}},
      {"profile", spec.profile},
      {"kernels", KernelsJson(spec)},
      {"launches", launches}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The objects that a library is linked from, besides its weights.
struct Objects {
  std::vector<std::string> own;
  std::string_view runtime;
  BuildReport report;
};

absl::StatusOr<Objects> CpuObjects(const ProgramSpec& spec, const Entry& entry, const WeightLayout& weights,
                                   const std::string& json) {
  std::vector<EmitUnit> units;
  for (const KernelSpec& kernel : spec.kernels) {
    units.push_back({ProgramKernelSymbol(spec, kernel), kernel.lowered});
    units.back().lowered.pack.body = MakeSeq({});  // the weights are packed here
  }
  MYCC_ASSIGN_OR_RETURN(std::string kernels, EmitModule(units, spec.target, EmitKind::kObject));
  MYCC_ASSIGN_OR_RETURN(std::string glue, EmitProgramGlue(spec, entry, weights, json));
  return Objects{{std::move(kernels), std::move(glue)}, CpuArtifactObject(), {}};
}

absl::StatusOr<Objects> CudaObjects(const ProgramSpec& spec, const Entry& entry, const WeightLayout& weights,
                                    const std::string& json) {
  std::vector<CudaProgram> programs;
  for (const KernelSpec& kernel : spec.kernels)
    programs.push_back(WithSymbol(kernel.program, ProgramKernelSymbol(spec, kernel)));
  const CudaModel model = CudaModelOf(spec, programs, weights);
  for (CudaProgram& program : programs) program.pack.clear();
  MYCC_ASSIGN_OR_RETURN(const CudaCode code, CompilePrograms(programs, spec.target));
  MYCC_ASSIGN_OR_RETURN(std::string glue,
                        EmitCudaGlue({spec.module, spec.target, {}}, {entry}, code.units, json, &model));
  return Objects{{std::move(glue)}, CudaArtifactObject(), code.report};
}

}  // namespace

absl::StatusOr<BuildReport> BuildProgramLibrary(ProgramSpec spec, const std::string& dir) {
  MYCC_ASSIGN_OR_RETURN(const Entry entry, ProgramEntry(spec));
  const WeightLayout weights = LayOutWeights(spec.program, spec.kernels);
  const std::string json = ProgramJson(spec, entry, weights.bytes);
  const bool on_cuda = spec.target.kind == TargetKind::kCuda;
  if (on_cuda) MYCC_RETURN_IF_ERROR(CheckForGpu(spec.program));
  if (on_cuda && spec.profile)
    return absl::UnimplementedError("a profile of a model on a GPU is not supported; expected a CPU target");
  MYCC_ASSIGN_OR_RETURN(const Objects objects, on_cuda ? CudaObjects(spec, entry, weights, json)
                                                       : CpuObjects(spec, entry, weights, json));
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string weights_file = folder.path() + "/weights.o";
  MYCC_RETURN_IF_ERROR(WriteWeights(&spec.program, spec.kernels, weights, WeightsSymbol(spec), weights_file));
  const LibrarySpec exported{spec.module, spec.target, {}};
  std::vector<std::string> exports = ExportedSymbols(exported, {entry});
  if (spec.profile) exports.push_back(ProfileSymbol(spec));
  std::vector<std::string_view> linked(objects.own.begin(), objects.own.end());
  linked.push_back(objects.runtime);
  MYCC_ASSIGN_OR_RETURN(std::string object,
                        LinkSharedObject(linked, exports, absl::StrCat(spec.module, ".so"), {weights_file}));
  const std::string stem = absl::StrCat(dir, "/", spec.module);
  MYCC_RETURN_IF_ERROR(WriteFilesAtomically({{absl::StrCat(dir, "/dlpack.h"), std::string(DlpackHeader())},
                                             {stem + ".h", LibraryHeader(exported, {entry})},
                                             {stem + ".json", json},
                                             {stem + ".so", std::move(object), /*executable=*/true}}));
  return objects.report;
}

}  // namespace mycc

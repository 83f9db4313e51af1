#include "mycc/library_workload.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

// A model's function computes what its kernels compute, each as often as it is launched.
absl::StatusOr<FunctionOrigin> OriginOfModel(const ArtifactFunction& function, const nlohmann::json& json) {
  FunctionOrigin origin;
  origin.workload.name = function.name;
  origin.identity = "model";
  for (const ArtifactArg& arg : function.args) {
    const std::optional<DType> dtype = arg.is_text() ? DType::kU64 : ParseDType(arg.dtype);
    if (!dtype)
      return absl::FailedPreconditionError(absl::StrCat("argument `", arg.name, "` is of an unknown type"));
    const Buffer tensor = MakeBuffer(arg.name, *dtype, arg.shape);
    absl::StrAppend(&origin.identity, "\n", arg.kind, " ", arg.name, " ", arg.dtype, " ",
                    absl::StrJoin(arg.shape, ","));
    if (arg.kind == "output") {
      origin.workload.outputs.push_back(tensor);
    } else {
      origin.workload.inputs.push_back({tensor, false});
    }
  }
  double seconds = 0, of_kernels = 0;
  bool all_known = true;
  for (const nlohmann::json& kernel : json.value("kernels", nlohmann::json::array())) {
    MYCC_ASSIGN_OR_RETURN(const Workload workload,
                          ParseWorkload(kernel.value("workload", ""), function.name));
    const double launches = kernel.value("launches", 1.0);
    origin.flops += launches * CountFlops(workload);
    const Tolerance own = ToleranceOf(workload);
    origin.tolerance.of_value += launches * own.of_value;
    origin.tolerance.of_scale += launches * own.of_scale;
    all_known &= kernel.contains("expected_seconds");
    seconds += launches * kernel.value("expected_seconds", 0.0);
    of_kernels += launches;
  }
  // Nothing is known of library kernels, which are launches of none of these.
  all_known &= of_kernels == static_cast<double>(json.at("launches").size());
  if (all_known && seconds > 0) origin.expected_seconds = seconds;
  return origin;
}

}  // namespace

absl::StatusOr<FunctionOrigin> OriginOf(const Library& library, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* description, library.Find(function));
  const nlohmann::json json = nlohmann::json::parse(library.json(), nullptr, /*allow_exceptions=*/false);
  for (const nlohmann::json& row : json.value("functions", nlohmann::json::array())) {
    if (!row.is_object() || row.value("name", "") != description->name) continue;
    FunctionOrigin origin;
    if (json.contains("launches")) return OriginOfModel(*description, json);
    MYCC_ASSIGN_OR_RETURN(origin.workload, ParseWorkload(row.value("workload", ""), description->name));
    origin.identity = WorkloadHash(origin.workload);
    origin.tolerance = ToleranceOf(origin.workload);
    origin.flops = CountFlops(origin.workload);
    if (row.contains("expected_seconds")) origin.expected_seconds = row.value("expected_seconds", 0.0);
    if (origin.workload.inputs.size() + origin.workload.outputs.size() != description->args.size()) break;
    return origin;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the library's JSON has no workload for `", description->name, "`"));
}

void Fill(const std::vector<NDArray>& inputs, Arguments* arguments) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    HostTensor& tensor = arguments->tensor(static_cast<int>(i));
    MYCC_CHECK(static_cast<int64_t>(inputs[i].bytes.size()) == tensor.bytes())
        << arguments->arg(static_cast<int>(i)).name;
    if (tensor.is_text()) continue;  // they stay empty
    std::memcpy(tensor.data(), inputs[i].bytes.data(), tensor.bytes());
  }
}

void FillRandom(const Workload& workload, uint64_t seed, Arguments* arguments) {
  Fill(RandomInputs(workload, seed), arguments);
}

}  // namespace mycc

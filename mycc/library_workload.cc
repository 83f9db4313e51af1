#include "mycc/library_workload.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"

namespace mycc {

absl::StatusOr<FunctionOrigin> OriginOf(const Library& library, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* description, library.Find(function));
  const nlohmann::json json = nlohmann::json::parse(library.json(), nullptr, /*allow_exceptions=*/false);
  for (const nlohmann::json& row : json.value("functions", nlohmann::json::array())) {
    if (!row.is_object() || row.value("name", "") != description->name) continue;
    FunctionOrigin origin;
    MYCC_ASSIGN_OR_RETURN(origin.workload, ParseWorkload(row.value("workload", ""), description->name));
    if (row.contains("expected_seconds")) origin.expected_seconds = row.value("expected_seconds", 0.0);
    if (origin.workload.inputs.size() + origin.workload.outputs.size() != description->args.size()) break;
    return origin;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the library's JSON has no workload for `", description->name, "`"));
}

void FillRandom(const Workload& workload, uint64_t seed, Arguments* arguments) {
  const std::vector<NDArray> inputs = RandomInputs(workload, seed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    HostTensor& tensor = arguments->tensor(static_cast<int>(i));
    MYCC_CHECK(static_cast<int64_t>(inputs[i].bytes.size()) == tensor.bytes())
        << arguments->arg(static_cast<int>(i)).name;
    std::memcpy(tensor.data(), inputs[i].bytes.data(), tensor.bytes());
  }
}

}  // namespace mycc

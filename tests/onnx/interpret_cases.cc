// Imports the cases of the onnx package and evaluates them with the interpreter: importer and meaning of
// every operator, without a compiler behind them.
//
// Usage: interpret_cases CASE_FOLDER...   Prints a line for each case, `passed`, `failed: why` or
// `unsupported: why`, and the counts.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/graph/interpret.h"
#include "codegen/onnx/importer.h"
#include "codegen/onnx/model.h"

namespace mycc {
namespace {

// The tolerances of onnx's own runner.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

absl::StatusOr<std::vector<NDArray>> ReadTensors(const std::string& folder, const std::string& prefix) {
  std::vector<NDArray> tensors;
  for (int i = 0;; ++i) {
    const std::string file = absl::StrCat(folder, "/", prefix, "_", i, ".pb");
    if (!std::filesystem::exists(file)) return tensors;
    MYCC_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    MYCC_ASSIGN_OR_RETURN(const onnx::TypedConstant tensor, onnx::ParseTensor(bytes));
    if (tensor.value == nullptr) return absl::UnimplementedError("strings are not interpreted here");
    tensors.push_back(*tensor.value);
  }
}

std::string Difference(const NDArray& got, const NDArray& expected) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    std::string text = absl::StrCat(DTypeName(got.dtype), "[");
    for (int64_t extent : got.shape) absl::StrAppend(&text, extent, ",");
    absl::StrAppend(&text, "], expected ", DTypeName(expected.dtype), "[");
    for (int64_t extent : expected.shape) absl::StrAppend(&text, extent, ",");
    return text + "]";
  }
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const Scalar a = got.Get(i), b = expected.Get(i);
    if (!IsFloat(got.dtype)) {
      if (a.i != b.i) return absl::StrCat("element ", i, " is ", a.i, ", expected ", b.i);
      continue;
    }
    if (std::isnan(a.f) && std::isnan(b.f)) continue;
    if (a.f == b.f) continue;
    const double relative = DTypeBytes(got.dtype) == 1 ? 0.15 : DTypeBytes(got.dtype) == 2 ? 1e-2 : kRelative;
    if (!(std::abs(a.f - b.f) <= kAbsolute + relative * std::abs(b.f)))
      return absl::StrCat("element ", i, " is ", a.f, ", expected ", b.f);
  }
  return "";
}

absl::Status RunCase(const std::string& folder) {
  MYCC_ASSIGN_OR_RETURN(const onnx::OnnxModel model, onnx::ReadModel(folder + "/model.onnx"));
  const std::string data = folder + "/test_data_set_0";
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> inputs, ReadTensors(data, "input"));
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> expected, ReadTensors(data, "output"));
  OnnxOptions options;
  size_t next = 0;
  for (const onnx::DeclaredValue& input : model.graph.inputs) {
    if (model.graph.initializers.count(input.name) || next >= inputs.size()) continue;
    options.shapes[input.name] = inputs[next++].shape;
  }
  MYCC_ASSIGN_OR_RETURN(const Graph graph, ImportOnnx(folder + "/model.onnx", options));
  if (std::getenv("PRINT_GRAPH") != nullptr) std::fputs(PrintGraph(graph).c_str(), stderr);
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> outputs, InterpretGraph(graph, inputs));
  if (outputs.size() != expected.size())
    return absl::InternalError(absl::StrCat(outputs.size(), " outputs, expected ", expected.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (const std::string difference = Difference(outputs[i], expected[i]); !difference.empty())
      return absl::InternalError(absl::StrCat("output ", i, ": ", difference));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  std::map<std::string, int> counts;
  for (int i = 1; i < argc; ++i) {
    const absl::Status status = mycc::RunCase(argv[i]);
    const std::string kind = status.ok()                                         ? "passed"
                             : status.code() == absl::StatusCode::kUnimplemented ? "unsupported"
                                                                                 : "failed";
    ++counts[kind];
    std::printf("%s: %s: %s\n", std::filesystem::path(argv[i]).filename().c_str(), kind.c_str(),
                std::string(status.message()).c_str());
    std::fflush(stdout);
  }
  for (const auto& [kind, count] : counts) std::printf("%s: %d\n", kind.c_str(), count);
  return 0;
}

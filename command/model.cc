#include "command/model.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/graph/optimize.h"
#include "codegen/onnx/importer.h"
#include "codegen/program/gpu_check.h"
#include "command/misuse.h"
#include "command/model_values.h"
#include "command/npy.h"
#include "command/sources.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

absl::Status AddShape(const std::string& text, OnnxOptions* options) {
  const size_t equals = text.rfind('=');
  const auto bad = [&] {
    return Misuse(
        absl::StrCat("--shape: `", text, "`; expected NAME=1x3x48x192, or NAME=scalar, empty or absent"));
  };
  if (equals == std::string::npos || equals == 0) return bad();
  const std::string name = text.substr(0, equals), word = text.substr(equals + 1);
  if (options->shapes.count(name) || options->forms.count(name))
    return Misuse(absl::StrCat("--shape: `", name, "` is given twice"));
  if (word == "empty" || word == "absent") {
    options->forms[name] = word == "empty" ? OnnxForm::kEmpty : OnnxForm::kAbsent;
    return absl::OkStatus();
  }
  std::vector<int64_t>& shape = options->shapes[name];
  if (word == "scalar") return absl::OkStatus();
  const std::vector<std::string> extents = absl::StrSplit(word, 'x');
  for (const std::string& extent : extents) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(extent, &number) || number < 0) return bad();
    shape.push_back(number);
  }
  return absl::OkStatus();
}

absl::Status AddValue(const std::string& text, OnnxOptions* options) {
  MYCC_ASSIGN_OR_RETURN(const ModelValue value, ParseModelValue(text));
  if (!options->values.emplace(value.name, ValueFor(value)).second)
    return Misuse(absl::StrCat("--value: `", value.name, "` is given twice"));
  return absl::OkStatus();
}

absl::StatusOr<GraphOptions> PassesFor(const std::string& dtype) {
  if (dtype.empty()) return GraphOptions{};
  if (dtype == "bf16") return GraphOptions{DType::kBF16};
  if (dtype == "f16") return GraphOptions{DType::kF16};
  return Misuse(absl::StrCat("--dtype: `", dtype, "`; expected bf16 or f16"));
}

// The indented lines behind the first one, such as a line for each node that is not supported, become a
// listing. A newline in a name that the message quotes has no indentation.
absl::Status Listed(const absl::Status& status) {
  const std::string message = Printable(std::string(status.message()));
  const size_t end = message.find("\n  ");
  if (end == std::string::npos) return status;
  return WithListing(absl::Status(status.code(), message.substr(0, end)), message.substr(end + 1) + "\n");
}

}  // namespace

bool IsModel(const std::string& file) { return absl::EndsWith(file, ".onnx"); }

absl::StatusOr<std::map<std::string, std::string>> OptionsOf(const ModelSource& source) {
  std::map<std::string, std::string> options;
  OnnxOptions shapes;
  for (const std::string& text : source.shapes) MYCC_RETURN_IF_ERROR(AddShape(text, &shapes));
  for (const auto& [name, shape] : shapes.shapes)
    options[absl::StrCat("--shape ", name)] = shape.empty() ? "scalar" : absl::StrJoin(shape, "x");
  for (const auto& [name, form] : shapes.forms)
    options[absl::StrCat("--shape ", name)] = form == OnnxForm::kEmpty ? "empty" : "absent";
  for (const std::string& text : source.values) {
    MYCC_ASSIGN_OR_RETURN(const ModelValue value, ParseModelValue(text));
    std::string& option = options[absl::StrCat("--value ", value.name)];
    option = value.value;
    if (!value.is_file()) continue;
    MYCC_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(value.value));
    option = absl::StrCat("a file of sha256 ", Sha256Hex(PrintNpy(array)));
  }
  if (!source.dtype.empty()) options["--dtype"] = source.dtype;
  return options;
}

absl::StatusOr<Tasks> ReadTasks(const ModelSource& source, const Target& target) {
  if (!IsModel(source.file)) {
    if (!source.shapes.empty()) return Misuse("--shape is for models (.onnx)");
    if (!source.values.empty()) return Misuse("--value is for models (.onnx)");
    if (!source.dtype.empty()) return Misuse("--dtype is for models (.onnx)");
    MYCC_ASSIGN_OR_RETURN(std::vector<Workload> workloads, ReadWorkloads(source.file));
    return Tasks{std::move(workloads), {}};
  }
  MYCC_ASSIGN_OR_RETURN(std::vector<LaidOutModel> models, ReadLaidOut(source, target));
  ModelProgram& program = models[0].program;
  return Tasks{std::move(program.kernels), std::move(program.alternatives)};
}

absl::StatusOr<std::vector<LaidOutModel>> ReadLaidOut(const ModelSource& source, const Target& target) {
  OnnxOptions options;
  for (const std::string& shape : source.shapes) MYCC_RETURN_IF_ERROR(AddShape(shape, &options));
  for (const std::string& value : source.values) MYCC_RETURN_IF_ERROR(AddValue(value, &options));
  MYCC_ASSIGN_OR_RETURN(const GraphOptions passes, PassesFor(source.dtype));
  absl::StatusOr<Graph> graph = ImportOnnx(source.file, options);
  if (!graph.ok()) return Listed(graph.status());
  MYCC_ASSIGN_OR_RETURN(std::vector<LaidOutModel> models, LayOut(*std::move(graph), target, passes));
  if (target.kind != TargetKind::kCuda) return models;
  // Nothing is tuned for a library that cannot be written.
  if (const absl::Status status = CheckForGpu(models[0].program); !status.ok())
    return absl::Status(status.code(), absl::StrCat(source.file, ": ", std::string(status.message())));
  return models;
}

}  // namespace mycc

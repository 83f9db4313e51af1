#include "codegen/program/digest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "codegen/workload/print.h"

namespace mycc {
namespace {

// The kind of a tensor that is not one of numbers of a fixed size.
std::string KindText(const NamedTensor& tensor) {
  if (!tensor.is_text && !tensor.is_extent && tensor.bounded.empty()) return "";
  return absl::StrCat(tensor.is_text ? " texts" : "", tensor.is_extent ? " extent" : "", " bounded ",
                      absl::StrJoin(tensor.bounded, ","));
}

std::string LaunchText(const KernelLaunch& launch) {
  std::string text = absl::StrCat("launch ", launch.kernel, " ", launch.call.function, "<",
                                  absl::StrJoin(launch.call.attributes, ","), ">");
  for (size_t i = 0; i < launch.tensors.size(); ++i) {
    absl::StrAppend(&text, " ", TypeText(launch.tensors[i]), "@", static_cast<int>(launch.places[i].kind),
                    ":", launch.places[i].at);
  }
  return absl::StrCat(text, " # ", absl::StrJoin(launch.origins, " + "), "\n");
}

}  // namespace

std::string ProgramDigest(const ModelProgram& program) {
  std::string text = absl::StrCat("program ", program.name, " ", program.arena_bytes, "\n");
  for (const NamedTensor& input : program.inputs)
    absl::StrAppend(&text, "input ", input.name, " ", TypeText(input.tensor), KindText(input), "\n");
  for (const NamedTensor& output : program.outputs)
    absl::StrAppend(&text, "output ", output.name, " ", TypeText(output.tensor), KindText(output), "\n");
  for (const Workload& kernel : program.kernels) text += PrintWorkload(kernel);
  for (const KernelLaunch& launch : program.launches) text += LaunchText(launch);
  for (const Constant& constant : program.constants) {
    const auto* bytes = reinterpret_cast<const char*>(constant->bytes.data());
    absl::StrAppend(&text, "constant ", Sha256Hex(std::string_view(bytes, constant->bytes.size())), "\n");
  }
  return Sha256Hex(text);
}

}  // namespace mycc

#include "codegen/artifact/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/workload/print.h"

namespace mycc {
namespace {

using Json = nlohmann::ordered_json;

Json ArgJson(const Buffer& tensor, const std::string& kind) {
  return {
      {"name", tensor->name}, {"kind", kind}, {"dtype", DTypeName(tensor->dtype)}, {"shape", tensor->shape}};
}

Json FunctionJson(const LibrarySpec& spec, const KernelSpec& kernel) {
  Json args = Json::array();
  for (size_t i = 0; i < kernel.workload.inputs.size(); ++i) {
    const Argument& input = kernel.workload.inputs[i];
    args.push_back(ArgJson(input.tensor, input.is_const ? "const" : "input"));
    if (input.is_const) args.back()["packed_bytes"] = kernel.lowered.packed_bytes[i];
  }
  for (const Buffer& output : kernel.workload.outputs) args.push_back(ArgJson(output, "output"));
  Json function = {{"name", KernelSymbol(spec, kernel)},
                   {"args", args},
                   {"workspace_bytes", WorkspaceBytes(kernel, spec.target)},
                   {"reason", ReasonName(kernel.reason)},
                   {"record", nullptr}};
  if (kernel.record) function["record"] = *kernel.record;
  if (kernel.expected_seconds) function["expected_seconds"] = *kernel.expected_seconds;
  if (kernel.predicted_seconds) function["predicted_seconds"] = *kernel.predicted_seconds;
  Workload once = kernel.workload;
  once.count = 1;  // the number of occurrences in a model is not part of the function
  function["workload"] = absl::StrCat("v1 ", PrintWorkload(once));
  function["trace"] = PrintTrace(kernel.trace);
  return function;
}

constexpr char kHeader[] = R"(/* $MODULE: compiled by mycc for
 *   $TARGET
 *
 * Every function takes DLPack tensors in $MEMORY that the caller owns, and returns 0, or
 * non-zero with the reason in $MODULE_last_error(). Tensors are compact and row-major (strides NULL, or so; those of
 * extents of 1 are ignored) and aligned to $ALIGNMENT; an output overlaps nothing. bool is code 6 or u8, bf16 is
 * code 4, f8e4m3 is code 10 (e4m3fn), f8e5m2 is code 12. Functions may be called from several threads at once.
 *$NOTES
 $STREAM
 */
#ifndef MYCC_$MODULE_H_
#define MYCC_$MODULE_H_

#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* $PREPARE */
int32_t $MODULE_prepare(int32_t device_id);
/* Why the last call on this thread that failed did so. */
const char* $MODULE_last_error(void);
/* The text of $MODULE.json. */
const char* $MODULE_json(void);
$FUNCTIONS
#ifdef __cplusplus
}
#endif

#endif  /* MYCC_$MODULE_H_ */
)";

// The conventions of arguments that few functions have.
constexpr char kTextNote[] = R"(
 * An element of a string tensor is a const char* in 64 bits (code 3): UTF-8 that a NUL ends; NULL is the empty text.
 * The texts of inputs must live during the call. Those of outputs are the inputs', the library's, or made by the call:
 * they live until the next call on the same thread, the thread's end, or the unloading of the library.
 *)";
constexpr char kBoundNote[] = R"(
 * "at most N" in a shape is an extent that the data decide. The caller's tensor has an extent and room of N; a call
 * that succeeds writes the actual extent into its `shape`, and the elements are compact in the actual shape.
 *)";

std::string NotesOf(const std::vector<Entry>& entries) {
  bool has_texts = false, has_bounds = false;
  for (const Entry& entry : entries) {
    for (const EntryArg& arg : entry.args) {
      has_texts |= arg.is_text;
      has_bounds |= !arg.bounded.empty();
    }
  }
  return absl::StrCat(has_texts ? kTextNote : "", has_bounds ? kBoundNote : "");
}

// The header's description of a device.
struct DeviceWords {
  const char* memory;
  const char* alignment;
  const char* stream;
  const char* prepare;
};
constexpr DeviceWords kCpuWords = {
    "host memory", "one element", "* `stream` is ignored on a CPU.",
    "Optional: checks the machine and allocates workspaces before the first call. device_id is 0."};
constexpr DeviceWords kCudaWords = {
    "the memory of a CUDA device", "16 bytes",
    R"(* Work is enqueued on `stream`, a cudaStream_t or CUstream (NULL: the default stream), in the current context
 * where that is of the tensors' device, else in the device's primary one; nothing waits for it. After
 * $MODULE_prepare() a call allocates nothing and can be captured into a CUDA graph. A packed buffer that this
 * process has not packed is looked at once, which waits for the stream, and so not during a capture.)",
    R"(Optional: checks the device, loads the code and allocates a workspace before the first call, or before the
 * first one on a further stream or in a further capture.)"};

// "[3, at most 10]"
std::string ShapeText(const EntryArg& arg) {
  std::string text = "[";
  for (size_t i = 0; i < arg.shape.size(); ++i) {
    const bool is_bounded = std::ranges::count(arg.bounded, static_cast<int>(i)) > 0;
    absl::StrAppend(&text, i > 0 ? ", " : "", is_bounded ? "at most " : "", arg.shape[i]);
  }
  return text + "]";
}

std::string RoleText(const Entry& entry, const EntryArg& arg) {
  if (arg.header.empty()) return arg.is_output ? "output" : "input";
  return arg.is_output ? "output, the packed buffer, 64-byte aligned"
                       : absl::StrCat("packed once by ", entry.packer, ", 64-byte aligned");
}

// A model's name for a tensor, which must not end the comment.
std::string InComment(const std::string& name) {
  return absl::StrReplaceAll(name, {{"*", "_"}, {"\n", " "}, {"\r", " "}});
}

std::string FunctionComment(const Entry& entry) {
  std::string text = entry.is_packer ? absl::StrCat("/* The const inputs of ", entry.title,
                                                    ", packed into the layout that this build reads.\n")
                                     : absl::StrCat("/* ", InComment(entry.title), "\n");
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const EntryArg& arg = entry.args[i];
    absl::StrAppend(&text, " *   args[", i, "]  ", InComment(arg.name), ": ", TypeName(arg), ShapeText(arg),
                    "  ", RoleText(entry, arg), "\n");
  }
  return text + " */\n";
}

}  // namespace

int64_t WorkspaceBytes(const KernelSpec& kernel, const Target& target) {
  const int64_t team = kernel.lowered.parallel ? target.threads : 1;
  return kernel.lowered.workspace_shared_bytes + kernel.lowered.workspace_thread_bytes * team;
}

std::string LibraryJson(const LibrarySpec& spec) {
  Json functions = Json::array();
  for (const KernelSpec& kernel : spec.kernels) functions.push_back(FunctionJson(spec, kernel));
  const Json json = {{"module", spec.module}, {"target", PrintTarget(spec.target)}, {"functions", functions}};
  return json.dump(2) + "\n";
}

std::string LibraryHeader(const LibrarySpec& spec, const std::vector<Entry>& entries) {
  std::string functions;
  for (const Entry& entry : entries) {
    absl::StrAppend(&functions, "\n", FunctionComment(entry), "int32_t ", entry.symbol,
                    "(DLTensor** args, int32_t num_args, void* stream);\n");
  }
  const DeviceWords& words = spec.target.kind == TargetKind::kCuda ? kCudaWords : kCpuWords;
  const std::string text = absl::StrReplaceAll(kHeader, {{"$MEMORY", words.memory},
                                                         {"$ALIGNMENT", words.alignment},
                                                         {"$STREAM", words.stream},
                                                         {"$NOTES", NotesOf(entries)},
                                                         {"$PREPARE", words.prepare}});
  return absl::StrReplaceAll(
      text, {{"$MODULE", spec.module}, {"$TARGET", PrintTarget(spec.target)}, {"$FUNCTIONS", functions}});
}

}  // namespace mycc

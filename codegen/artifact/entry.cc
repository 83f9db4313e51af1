#include "codegen/artifact/entry.h"

#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/ir/function.h"

namespace mycc {
namespace {

bool IsIdentifier(const std::string& name) {
  if (name.empty() || name.size() > 200 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) return false;
  }
  return true;
}

// Everything that determines the content of a packed buffer: the code that fills it, and its layout.
std::string PackedDigest(const LoweredFunction& lowered, int param) {
  std::string text = absl::StrCat("param ", param, "\n", PrintFunction(lowered.pack));
  for (const PackedBuffer& packed : lowered.packed) {
    absl::StrAppend(&text, packed.param, " ", packed.offset, " ", DTypeName(packed.buffer->dtype));
    for (int64_t extent : packed.buffer->shape) absl::StrAppend(&text, " ", extent);
    absl::StrAppend(&text, "\n");
  }
  return Sha256Hex(text);
}

int HexDigit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// The header: a magic word, the size of the buffer, and the digest; the rest is zero.
std::string PackedHeader(const LoweredFunction& lowered, int param) {
  std::string header(kPackedHeaderBytes, '\0');
  std::memcpy(header.data(), "myccpack", 8);
  std::memcpy(header.data() + 8, &lowered.packed_bytes[param], 8);
  const std::string digest = PackedDigest(lowered, param);
  for (int i = 0; i < 32; ++i)
    header[16 + i] = static_cast<char>(HexDigit(digest[2 * i]) << 4 | HexDigit(digest[2 * i + 1]));
  return header;
}

EntryArg PackedArg(const KernelSpec& kernel, int param, bool is_output) {
  return {kernel.workload.inputs[param].tensor->name,
          DType::kU8,
          {kernel.lowered.packed_bytes[param]},
          is_output,
          PackedHeader(kernel.lowered, param)};
}

Entry EntryOf(const KernelSpec& kernel, const std::string& symbol) {
  Entry entry;
  entry.symbol = symbol;
  entry.body = symbol + "_body";
  entry.kernel = &kernel;
  entry.title = kernel.workload.name;
  entry.shared_bytes = kernel.lowered.workspace_shared_bytes;
  entry.thread_bytes = kernel.lowered.workspace_thread_bytes;
  entry.parallel = kernel.lowered.parallel;
  return entry;
}

Entry CallEntry(const KernelSpec& kernel, const std::string& symbol) {
  Entry entry = EntryOf(kernel, symbol);
  const auto& inputs = kernel.workload.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    entry.args.push_back(inputs[i].is_const ? PackedArg(kernel, i, false)
                                            : TensorArg(inputs[i].tensor->name, inputs[i].tensor, false));
    if (inputs[i].is_const) entry.packer = symbol + "_pack";
  }
  for (const Buffer& output : kernel.workload.outputs)
    entry.args.push_back(TensorArg(output->name, output, true));
  return entry;
}

Entry PackEntry(const KernelSpec& kernel, const std::string& symbol) {
  Entry entry = EntryOf(kernel, symbol + "_pack");
  entry.body = symbol + "_pack_body";
  entry.is_packer = true;
  const auto& inputs = kernel.workload.inputs;
  for (const Argument& input : inputs) {
    if (input.is_const) entry.args.push_back(TensorArg(input.tensor->name, input.tensor, false));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_const) continue;
    entry.args.push_back(PackedArg(kernel, i, true));
    entry.args.back().name += "_packed";
  }
  return entry;
}

}  // namespace

int64_t EntryArg::bytes() const {
  int64_t bytes = DTypeBytes(dtype);
  for (int64_t extent : shape) bytes *= extent;
  return bytes;
}

absl::Status CheckSymbolName(const std::string& what, const std::string& name) {
  if (IsIdentifier(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " `", name,
                   "` is not a C identifier of at most 200 characters; expected letters, digits and _, not "
                   "beginning with a digit"));
}

EntryArg TensorArg(const std::string& name, const Buffer& tensor, bool is_output) {
  return {name, tensor->dtype, tensor->shape, is_output, ""};
}

std::string TypeName(const EntryArg& arg) { return arg.is_text ? "string" : DTypeName(arg.dtype); }

std::string KernelSymbol(const LibrarySpec& spec, const KernelSpec& kernel) {
  return absl::StrCat(spec.module, "_", kernel.workload.name);
}

absl::StatusOr<std::vector<Entry>> EntriesOf(const LibrarySpec& spec) {
  MYCC_RETURN_IF_ERROR(CheckSymbolName("the module's name", spec.module));
  std::vector<Entry> entries;
  for (const KernelSpec& kernel : spec.kernels) {
    MYCC_RETURN_IF_ERROR(CheckSymbolName("the function's name", kernel.workload.name));
    MYCC_CHECK(kernel.lowered.packed_bytes.size() ==
               kernel.workload.inputs.size() + kernel.workload.outputs.size())
        << kernel.workload.name;
    entries.push_back(CallEntry(kernel, KernelSymbol(spec, kernel)));
    if (!entries.back().packer.empty()) entries.push_back(PackEntry(kernel, KernelSymbol(spec, kernel)));
  }
  std::set<std::string> seen;
  for (const std::string& symbol : ExportedSymbols(spec, entries)) {
    if (!seen.insert(symbol).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "module `", spec.module, "` would export `", symbol,
          "` twice; expected functions with distinct names, none of them `prepare`, `last_error` or `json`, "
          "and none that is another's with the suffix _pack"));
    }
  }
  return entries;
}

std::vector<std::string> ExportedSymbols(const LibrarySpec& spec, const std::vector<Entry>& entries) {
  std::vector<std::string> symbols = {spec.module + "_prepare", spec.module + "_last_error",
                                      spec.module + "_json"};
  for (const Entry& entry : entries) symbols.push_back(entry.symbol);
  return symbols;
}

}  // namespace mycc

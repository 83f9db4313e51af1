// The exported functions of a library, and the arguments that a caller must pass. The tables inside the .so,
// the header and the list of exported symbols are written from this. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/library.h"

namespace mycc {

// A tensor, or the packed buffer of a const input: u8, beginning with a header that identifies the packing
// function.
struct EntryArg {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool is_output = false;
  std::string header;             // kPackedHeaderBytes bytes; empty for a plain tensor
  bool is_text = false;           // handles of texts, held as u64
  std::vector<int> bounded = {};  // axes of an output whose extents are at most those of the shape

  int64_t bytes() const;
};

struct Entry {
  std::string symbol;
  std::string body;    // the symbol of the kernel, hidden
  std::string packer;  // the symbol of the function that fills the packed buffers; empty without any
  bool is_packer = false;
  const KernelSpec* kernel = nullptr;  // null for a whole model
  std::string title;                   // for the header's comment
  std::vector<EntryArg> args;
  // The memory that a call needs on a CPU.
  int64_t shared_bytes = 0, thread_bytes = 0;
  bool parallel = false;
};

// For each kernel MODULE_NAME, followed by MODULE_NAME_pack where it has const inputs. The entries point into
// `spec`. InvalidArgument when a name is not a C identifier, or two exported symbols would be equal.
absl::StatusOr<std::vector<Entry>> EntriesOf(const LibrarySpec& spec);

// A tensor as an argument.
EntryArg TensorArg(const std::string& name, const Buffer& tensor, bool is_output);

// The name of the argument's type: "f32", or "string" for texts.
std::string TypeName(const EntryArg& arg);

// InvalidArgument unless `name` is a C identifier of a moderate length; `what` names it in the error.
absl::Status CheckSymbolName(const std::string& what, const std::string& name);

// The symbol of a kernel before the suffixes _body and _pack_body; see EmitUnit.
std::string KernelSymbol(const LibrarySpec& spec, const KernelSpec& kernel);

// All exported symbols.
std::vector<std::string> ExportedSymbols(const LibrarySpec& spec, const std::vector<Entry>& entries);

}  // namespace mycc

// The exports of a library: its functions and their arguments as a caller must pass them. The tables inside
// the .so, the header and the list of exported symbols are all written from this. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/library.h"

namespace mycc {

// A tensor, or the packed buffer of a const input: u8, with the header by which a function knows what it has
// packed itself.
struct EntryArg {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool is_output = false;
  std::string header;  // kPackedHeaderBytes, or empty

  int64_t bytes() const;
};

struct Entry {
  std::string symbol;
  std::string body;    // the symbol of the kernel, hidden
  std::string packer;  // the symbol of the function that fills the packed buffers, or empty
  bool is_packer = false;
  const KernelSpec* kernel = nullptr;
  std::vector<EntryArg> args;
};

// For each kernel MODULE_NAME, followed by MODULE_NAME_pack where it has const inputs. The entries point into
// `spec`. InvalidArgument when a name is no C identifier or two exported symbols would be equal.
absl::StatusOr<std::vector<Entry>> EntriesOf(const LibrarySpec& spec);

// The symbol of a kernel before the suffixes _body and _pack_body; see EmitUnit.
std::string KernelSymbol(const LibrarySpec& spec, const KernelSpec& kernel);

// All exported symbols.
std::vector<std::string> ExportedSymbols(const LibrarySpec& spec, const std::vector<Entry>& entries);

}  // namespace mycc

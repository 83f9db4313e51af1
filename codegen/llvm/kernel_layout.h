// The origin of each buffer of a kernel, and which buffers may overlap. Thread rule: values; one KernelLayout
// for each emitted body.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/passes/lower.h"
#include "llvm/IR/Metadata.h"

namespace mycc {

// The place of a buffer that the caller of a body provides: tensors[tensor] + offset, or an offset into one
// of the workspaces, in bytes.
struct BufferOrigin {
  enum Kind { kTensor, kSharedWorkspace, kThreadWorkspace } kind = kTensor;
  int tensor = 0;
  int64_t offset = 0;
  bool read_only = false;
  bool aligned = false;  // to 64 bytes; 64 bytes after its end may be read too
  int alias_group = 0;   // buffers of different groups never overlap
};

struct KernelLayout {
  std::unordered_map<const BufferNode*, BufferOrigin> origins;
  int64_t thread_bytes = 0;  // bytes of workspace for each thread
  int alias_groups = 0;
};

KernelLayout LayoutOf(const LoweredFunction& lowered, const std::vector<ArgumentBuffer>& arguments);

// LLVM's metadata for an alias group: an access of the group has its scope, and the noalias set of the other
// groups' scopes.
struct AliasScope {
  llvm::MDNode* scope;
  llvm::MDNode* others;
};
std::vector<AliasScope> AliasScopesOf(llvm::LLVMContext& context, const std::string& name, int groups);

}  // namespace mycc

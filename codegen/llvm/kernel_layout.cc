#include "codegen/llvm/kernel_layout.h"

#include <algorithm>

#include "llvm/IR/MDBuilder.h"

namespace mycc {

KernelLayout LayoutOf(const LoweredFunction& lowered, const std::vector<ArgumentBuffer>& arguments) {
  KernelLayout layout;
  layout.thread_bytes = lowered.workspace_thread_bytes;
  for (const auto& [buffer, argument, offset, read_only, packed] : arguments) {
    layout.origins[buffer.get()] =
        BufferOrigin{BufferOrigin::kTensor, argument, offset, read_only, packed, layout.alias_groups++};
  }
  // Workspace buffers that overlap, because they are never live at the same time, must be in one alias group.
  // Otherwise LLVM could move stores to one before loads of the other.
  const auto& buffers = lowered.workspace;
  std::vector<int> group(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    group[i] = layout.alias_groups++;
    for (size_t j = 0; j < i; ++j) {
      const bool apart = buffers[i].offset >= buffers[j].offset + buffers[j].buffer->bytes() ||
                         buffers[j].offset >= buffers[i].offset + buffers[i].buffer->bytes();
      if (buffers[i].per_thread != buffers[j].per_thread || apart) continue;
      const int joined = group[i], merged = group[j];
      std::replace(group.begin(), group.begin() + i + 1, joined, merged);
    }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto kind = buffers[i].per_thread ? BufferOrigin::kThreadWorkspace : BufferOrigin::kSharedWorkspace;
    layout.origins[buffers[i].buffer.get()] = BufferOrigin{kind, 0, buffers[i].offset, false, true, group[i]};
  }
  return layout;
}

std::vector<AliasScope> AliasScopesOf(llvm::LLVMContext& context, const std::string& name, int groups) {
  llvm::MDBuilder builder(context);
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain(name);
  std::vector<llvm::Metadata*> all;
  for (int g = 0; g < groups; ++g) all.push_back(builder.createAnonymousAliasScope(domain));
  std::vector<AliasScope> scopes;
  for (int g = 0; g < groups; ++g) {
    std::vector<llvm::Metadata*> rest = all;
    rest.erase(rest.begin() + g);
    scopes.push_back({llvm::MDNode::get(context, {all[g]}), llvm::MDNode::get(context, rest)});
  }
  return scopes;
}

}  // namespace mycc

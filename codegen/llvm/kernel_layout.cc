#include "codegen/llvm/kernel_layout.h"

#include <map>

#include "llvm/IR/MDBuilder.h"

namespace mycc {
namespace {

void AddTensor(KernelLayout* layout, const Buffer& buffer, int tensor, bool read_only) {
  layout->origins[buffer.get()] = BufferOrigin{
      BufferOrigin::kTensor, tensor, 0, read_only, false, buffer->bytes(), layout->alias_groups++};
}

void AddPacked(KernelLayout* layout, const PackedBuffer& packed, int tensor, bool read_only) {
  layout->origins[packed.buffer.get()] =
      BufferOrigin{BufferOrigin::kTensor, tensor, packed.offset, read_only, true, packed.buffer->bytes(),
                   layout->alias_groups++};
}

// Workspace buffers that overlap, because they are never live at the same time, must be in one alias group.
// Otherwise LLVM could move stores to one before loads of the other.
void AddWorkspace(KernelLayout* layout, const LoweredFunction& lowered) {
  const auto& buffers = lowered.workspace;
  std::vector<int> group(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    group[i] = layout->alias_groups++;
    for (size_t j = 0; j < i; ++j) {
      const bool apart = buffers[i].offset >= buffers[j].offset + buffers[j].buffer->bytes() ||
                         buffers[j].offset >= buffers[i].offset + buffers[i].buffer->bytes();
      if (buffers[i].per_thread != buffers[j].per_thread || apart) continue;
      const int merged = group[j];
      for (size_t k = 0; k < i; ++k) {
        if (group[k] == group[i]) group[k] = merged;
      }
      group[i] = merged;
    }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto kind = buffers[i].per_thread ? BufferOrigin::kThreadWorkspace : BufferOrigin::kSharedWorkspace;
    layout->origins[buffers[i].buffer.get()] =
        BufferOrigin{kind, 0, buffers[i].offset, false, true, buffers[i].buffer->bytes(), group[i]};
  }
}

}  // namespace

KernelLayout LayoutOfKernel(const LoweredFunction& lowered) {
  KernelLayout layout;
  layout.thread_bytes = lowered.workspace_thread_bytes;
  const auto& params = lowered.kernel.params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].kind == ParamKind::kConst) continue;
    AddTensor(&layout, params[i].buffer, static_cast<int>(i), params[i].kind == ParamKind::kInput);
  }
  for (const PackedBuffer& packed : lowered.packed)
    AddPacked(&layout, packed, packed.param, /*read_only=*/true);
  AddWorkspace(&layout, lowered);
  return layout;
}

KernelLayout LayoutOfPack(const LoweredFunction& lowered) {
  KernelLayout layout;
  layout.thread_bytes = lowered.workspace_thread_bytes;
  const std::map<int, int> positions = ConstPositions(lowered);
  for (const auto& [param, position] : positions)
    AddTensor(&layout, lowered.kernel.params[param].buffer, position, /*read_only=*/true);
  const int consts = static_cast<int>(positions.size());
  for (const PackedBuffer& packed : lowered.packed)
    AddPacked(&layout, packed, consts + positions.at(packed.param), /*read_only=*/false);
  AddWorkspace(&layout, lowered);
  return layout;
}

AliasScopes::AliasScopes(llvm::LLVMContext& context, const std::string& name, int groups) {
  llvm::MDBuilder builder(context);
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain(name);
  std::vector<llvm::Metadata*> all;
  for (int g = 0; g < groups; ++g) all.push_back(builder.createAnonymousAliasScope(domain));
  for (int g = 0; g < groups; ++g) {
    std::vector<llvm::Metadata*> rest = all;
    rest.erase(rest.begin() + g);
    scopes_.push_back(llvm::MDNode::get(context, {all[g]}));
    others_.push_back(llvm::MDNode::get(context, rest));
  }
}

}  // namespace mycc

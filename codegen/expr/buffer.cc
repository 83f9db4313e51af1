#include "codegen/expr/buffer.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace mycc {
namespace {

constexpr std::string_view kScopeNames[] = {"global", "packed", "local", "shared", "fragment", "accumulator"};

}  // namespace

std::string ScopeName(Scope scope) { return std::string(kScopeNames[static_cast<int>(scope)]); }

bool ParseScope(const std::string& name, Scope* scope) {
  for (size_t i = 0; i < std::size(kScopeNames); ++i) {
    if (kScopeNames[i] != name) continue;
    *scope = static_cast<Scope>(i);
    return true;
  }
  return false;
}

int64_t BufferNode::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

int64_t BufferNode::stride(int dim) const {
  int64_t stride = 1;
  for (int d = rank() - 1; d > dim; --d) stride *= shape[d];
  return stride;
}

Buffer MakeBuffer(std::string name, DType dtype, std::vector<int64_t> shape, Scope scope) {
  return std::make_shared<BufferNode>(BufferNode{std::move(name), dtype, std::move(shape), scope});
}

Buffer WithSuffix(const Buffer& buffer, const std::string& suffix) {
  BufferNode renamed = *buffer;
  renamed.name += suffix;
  return std::make_shared<BufferNode>(std::move(renamed));
}

}  // namespace mycc

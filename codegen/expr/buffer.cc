#include "codegen/expr/buffer.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mycc {
namespace {

constexpr std::string_view kScopeNames[] = {"global", "packed", "local", "shared", "fragment", "accumulator"};

}  // namespace

std::string ScopeName(Scope scope) { return std::string(kScopeNames[static_cast<int>(scope)]); }

bool ParseScope(const std::string& name, Scope* scope) {
  const auto* found = std::ranges::find(kScopeNames, name);
  if (found == std::end(kScopeNames)) return false;
  *scope = static_cast<Scope>(found - kScopeNames);
  return true;
}

int64_t BufferNode::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
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

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(DTypeName(dtype), "[", absl::StrJoin(shape, ","), "]");
}

std::string TypeText(const Buffer& buffer) { return TypeText(buffer->dtype, buffer->shape); }

}  // namespace mycc

// A tensor in memory, which the language calls a tensor and the IR a buffer. Immutable; its identity is the
// pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/expr/dtype.h"
#include "codegen/expr/layout.h"

namespace mycc {

// The memory that a buffer lives in. kPacked holds a const input in a layout chosen ahead of time;
// kAccumulator is a register tile that must be addressed by constants after unrolling (zmm/ymm registers, AMX
// tiles, tensor-core fragments).
enum class Scope : uint8_t { kGlobal, kPacked, kLocal, kShared, kFragment, kAccumulator };

std::string ScopeName(Scope scope);  // "global"
bool ParseScope(const std::string& name, Scope* scope);

// Elements are numbered row-major over `shape`; another order is another shape (see the pack primitive). The
// layout is where they lie. It is row-major, except in a GPU's shared memory, where it avoids bank conflicts
// and follows the formats of the tensor cores and the copy engine. It changes addresses and sizes, never
// results.
struct BufferNode {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Scope scope = Scope::kGlobal;
  Layout layout = Layout::RowMajor(shape);

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * DTypeBytes(dtype); }
  int64_t stride(int dim) const;  // between the numbers of elements
  // The bytes of memory that the layout takes, and those of a swizzled row (0: no swizzle).
  int64_t memory_bytes() const { return layout.footprint() * DTypeBytes(dtype); }
  int64_t swizzle_bytes() const { return layout.SwizzledRow() * DTypeBytes(dtype); }
};
using Buffer = std::shared_ptr<const BufferNode>;
using BufferSet = std::unordered_set<const BufferNode*>;

Buffer MakeBuffer(std::string name, DType dtype, std::vector<int64_t> shape, Scope scope = Scope::kGlobal);
// A new buffer like another one, called by the same name and `suffix`.
Buffer WithSuffix(const Buffer& buffer, const std::string& suffix);
// "f32[8,16]".
std::string TypeText(DType dtype, const std::vector<int64_t>& shape);
std::string TypeText(const Buffer& buffer);

}  // namespace mycc

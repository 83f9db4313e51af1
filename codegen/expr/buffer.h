// A tensor in memory, which the language calls a tensor and the IR a buffer. Immutable; its identity is the
// pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/expr/dtype.h"

namespace mycc {

// The memory that a buffer lives in. kPacked holds a const input in a layout chosen ahead of time;
// kAccumulator is a register tile that must be addressed by constants after unrolling (zmm/ymm registers, AMX
// tiles, tensor-core fragments).
enum class Scope : uint8_t { kGlobal, kPacked, kLocal, kShared, kFragment, kAccumulator };

std::string ScopeName(Scope scope);  // "global"
bool ParseScope(const std::string& name, Scope* scope);

// The layout of a buffer in a GPU's shared memory, beyond row-major. It avoids bank conflicts and follows the
// formats of the tensor cores and the copy engine. It changes addresses and sizes, never results.
struct SharedLayout {
  int64_t row_pad = 0;  // elements between one row (of the last dimension) and the next
  // Bytes of a swizzled row: 32, 64 or 128; 0: no swizzle. The number of each 16-byte chunk of a row is XORed
  // with a function of the row's number (128: row % 8, 64: row / 2 % 4, 32: row / 4 % 2).
  int swizzle_bytes = 0;
  // The first dimension numbers separate tiles (the slots of a ring); rows are counted in each tile. A
  // swizzled tile whose rows are longer than the swizzle is stored as panels of the swizzle's width, one
  // after the other.
  bool ring = false;

  bool operator==(const SharedLayout&) const = default;
};

// Compact row-major over `shape`; another layout is another shape (see the pack primitive).
struct BufferNode {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Scope scope = Scope::kGlobal;
  SharedLayout layout = {};  // kShared alone

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * DTypeBytes(dtype); }
  int64_t stride(int dim) const;  // in elements
};
using Buffer = std::shared_ptr<const BufferNode>;

Buffer MakeBuffer(std::string name, DType dtype, std::vector<int64_t> shape, Scope scope = Scope::kGlobal);

}  // namespace mycc

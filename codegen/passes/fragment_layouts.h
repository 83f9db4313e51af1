// Finds the layouts of tiles in registers (fragments.h). Those of tensor-core accumulators and of left
// operands in registers follow from the instructions. They spread through nests of loops: a buffer in
// registers that a nest indexes by the rows and columns of a laid-out tile has the tile's layout, and one
// that it indexes by the rows alone is a vector of the rows. fragment_loops.cc divides these nests, each
// around one store, among threads. Pure.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/passes/fragments.h"

namespace mycc {

// Serial loops of constant extents, and conditions, around one store.
struct FragmentNest {
  std::vector<const For*> loops;  // outermost first
  std::vector<Expr> conditions;   // all must hold
  const Store* store;

  // Every element that is stored or loaded, in values, indices and conditions.
  void ForEachAccess(
      const std::function<void(const Buffer& buffer, const std::vector<Expr>& indices)>& visit) const;
};

// The nests that a loop consists of when each statement in it gets loops of its own, in order; none when
// there is other code in it. The pointers are into `root`.
std::vector<FragmentNest> NestsOf(const Stmt& root);

// FailedPrecondition unless the nests may run one after the other instead of in common loops: what one writes
// and another touches must have the common loops' variables as indices, so that iterations share no element.
absl::Status CheckSeparable(const std::vector<FragmentNest>& nests);

// A buffer with a layout. Its first `row_dims` dimensions number the rows, the others the columns.
struct LaidBuffer {
  FragmentLayout layout;
  size_t row_dims;
  Buffer tile;  // in its place: of two dimensions, or one for a vector of rows
};

// The loops of a nest over laid-out buffers, by what they run along.
struct NestFrame {
  FragmentLayout layout;  // of 0 columns: the nest is over rows alone
  std::vector<const For*> rows, columns, rest;
};

class FragmentLayouts {
 public:
  // FailedPrecondition, naming the buffers, when a tile cannot be divided, or would have two layouts.
  static absl::StatusOr<FragmentLayouts> Of(const Stmt& body, const Target& target);

  bool empty() const { return laid_.empty(); }
  const LaidBuffer* Find(const Buffer& buffer) const;
  // Whether the buffer is an operand of a product, which reads all of it.
  bool IsOperand(const Buffer& buffer) const { return operands_.count(buffer.get()) != 0; }
  // The outermost loops of nests that may be divided.
  bool IsRoot(const Stmt& stmt) const { return roots_.count(stmt.get()) != 0; }
  // nullopt for a nest that touches no buffer with a layout.
  absl::StatusOr<std::optional<NestFrame>> FrameOf(const FragmentNest& nest) const;

 private:
  absl::Status AddProducts(const Stmt& body, const Target& target);
  absl::Status AddOperand(const Mma& mma, const FragmentLayout& layout);
  absl::Status Lay(const Buffer& buffer, size_t row_dims, const FragmentLayout& layout);
  absl::Status Spread(const FragmentNest& nest, bool* more);
  std::vector<FragmentNest> CollectRoots(const Stmt& body);

  BufferSet in_registers_;  // allocated outside of thread loops
  BufferSet operands_;
  std::unordered_map<const BufferNode*, LaidBuffer> laid_;
  std::unordered_set<const StmtNode*> roots_;
};

// "the accumulator t3.acc: why".
absl::Status RefuseFragment(const Buffer& buffer, const std::string& why);
constexpr char kOutsideOfNest[] = "it is used outside of a nest of loops over the whole tile";

}  // namespace mycc

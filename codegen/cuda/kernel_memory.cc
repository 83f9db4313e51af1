// Emits addresses: the place of each buffer of a kernel, the address of an element, and the layout of shared
// memory.
#include <algorithm>

#include "base/check.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {

const KernelEmitter::Place& KernelEmitter::PlaceOf(const Buffer& buffer) {
  const auto found = places_.find(buffer.get());
  MYCC_CHECK(found != places_.end()) << "buffer " << buffer->name << " is not declared";
  return found->second;
}

Linear KernelEmitter::Flat(const Place& place, const std::vector<Expr>& indices) {
  const std::vector<Expr> own =
      place.distribution == nullptr ? indices : OwnIndices(*place.distribution, indices, threads_);
  Expr flat = IntConst(0);
  for (size_t d = 0; d < own.size(); ++d) {
    // A dimension of extent 1 has a single index, which needs no code.
    if (place.extents[d] != 1) flat = flat + own[d] * place.strides[d];
  }
  if (place.panel_elements != 0) {
    // For rows longer than the swizzle: the panel, and the position in the panel.
    const Expr& column = indices.back();
    flat = flat + FloorDiv(column, place.panel_elements) * (place.panel_rows * place.panel_elements) +
           Mod(column, place.panel_elements);
  }
  return ToLinear(Simplify(flat));
}

std::string KernelEmitter::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  return At(place, Flat(place, indices));
}

std::string KernelEmitter::At(const Place& place, const Linear& flat) {
  return absl::StrCat(place.name, "[", Swizzled(place, Index(FromLinear(flat)).text), "]");
}

std::string KernelEmitter::Swizzled(const Place& place, const std::string& flat) {
  if (place.layout.swizzle_bytes == 0) return flat;
  const int bits = place.layout.swizzle_bytes == 128 ? 3 : place.layout.swizzle_bytes == 64 ? 2 : 1;
  return absl::StrCat(prelude_.Use("swizzle"), "<", bits, ", ", place.element_bytes, ">(", flat, ")");
}

// Dynamic shared memory has the planned tiles, then the scratch of reductions, then the barriers.
void KernelEmitter::DeclareShared() {
  size_t barriers = 0;
  VisitStmts(launch_.body, [&](const Stmt& stmt) {
    if (const Roles* roles = DynAs<Roles>(stmt)) barriers = std::max(barriers, roles->barrier_counts.size());
    return true;
  });
  for (const auto& [tile, offset] : launch_.shared.buffers) {
    const int64_t element = DTypeBytes(tile->dtype), row = tile->rank() > 0 ? tile->shape.back() : 1;
    const SharedLayout& layout = tile->layout;
    Place place;
    place.name = Name(tile->name);
    place.layout = layout;
    place.element_bytes = element;
    place.extents = tile->shape;
    int64_t rows = 1;
    for (int d = layout.ring ? 1 : 0; d + 1 < tile->rank(); ++d) rows *= tile->shape[d];
    const bool panels = layout.swizzle_bytes != 0 && row * element > layout.swizzle_bytes;
    const int64_t pitch = panels ? layout.swizzle_bytes / element : row + layout.row_pad;
    for (int d = 0; d < tile->rank(); ++d) {
      const int64_t stride = d + 1 == tile->rank() ? 1 : tile->stride(d) / row * pitch;
      // Slots of a ring are whole tiles apart, including all panels.
      const bool slot = layout.ring && d == 0 && panels;
      place.strides.push_back(slot ? rows * row : panels && d + 1 == tile->rank() ? 0 : stride);
    }
    if (panels) {
      place.panel_elements = pitch;
      place.panel_rows = rows;
    }
    Line(arithmetic_.MemoryType(tile->dtype), "* const ", place.name, " = reinterpret_cast<",
         arithmetic_.MemoryType(tile->dtype), "*>(shared + ", offset, ");");
    places_[tile.get()] = std::move(place);
  }
  sends_ = launch_.cluster_reduce > 1 && Contains(launch_.body, StmtKind::kCombine);
  if (sends_) barriers = kReceiveBuffers;
  barriers_offset_ = ReceivedOffset(launch_) + ReceivedBytes(launch_);
  shared_bytes_ = barriers_offset_ + static_cast<int64_t>(8 * barriers);
}

}  // namespace mycc

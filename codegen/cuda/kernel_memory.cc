// Emits addresses: the place of each buffer of a kernel, the address of an element, and the layout of shared
// memory.
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
  return ToLinear(Simplify(OffsetOf(place.layout, own)));
}

std::string KernelEmitter::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  if (place.vector == 0) return At(place, Flat(place, indices));
  const std::string lane = Index(indices[0]).text;
  if (place.layout.size() == place.vector) return absl::StrCat(place.name, ".at[", lane, "]");
  return absl::StrCat(place.name, "[", lane, " / ", place.vector, "].at[", lane, " % ", place.vector, "]");
}

std::string KernelEmitter::At(const Place& place, const Linear& flat) {
  return absl::StrCat(place.name, "[", Swizzled(place, Index(FromLinear(flat)).text), "]");
}

std::string KernelEmitter::Swizzled(const Place& place, const std::string& flat) {
  const int bits = place.layout.swizzle.bits;
  if (bits == 0) return flat;
  return absl::StrCat(prelude_.Use("swizzle"), "<", bits, ", ", place.element_bytes, ">(", flat, ")");
}

void KernelEmitter::DeclareShared() {
  VisitEach<Alloc>(launch_.body, [&](const Alloc& alloc) {
    const Buffer& tile = alloc.buffer;
    if (tile->scope != Scope::kShared) return;
    Place place;
    place.name = Name(tile->name);
    place.layout = tile->layout.Coalesced();
    place.element_bytes = DTypeBytes(tile->dtype);
    Line(arithmetic_.MemoryType(tile->dtype), "* const ", place.name, " = reinterpret_cast<",
         arithmetic_.MemoryType(tile->dtype), "*>(shared + ", alloc.offset, ");");
    places_[tile.get()] = std::move(place);
  });
  sends_ = launch_.cluster_reduce > 1 && Contains(launch_.body, StmtKind::kCombine);
}

}  // namespace mycc

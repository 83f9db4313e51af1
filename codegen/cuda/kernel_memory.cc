#include "base/check.h"
#include "codegen/cuda/kernel_emitter.h"

namespace mycc {

const KernelEmitter::Place& KernelEmitter::PlaceOf(const Buffer& buffer) {
  const auto found = places_.find(buffer.get());
  MYCC_CHECK(found != places_.end()) << "buffer " << buffer->name << " is not declared";
  return found->second;
}

Linear KernelEmitter::Flat(const Place& place, const std::vector<Expr>& indices) {
  Expr flat = IntConst(0);
  for (size_t d = 0; d < indices.size(); ++d) flat = flat + indices[d] * place.strides[d];
  return ToLinear(Simplify(flat));
}

std::string KernelEmitter::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  return At(place, Flat(place, indices));
}

std::string KernelEmitter::At(const Place& place, const Linear& flat) {
  return absl::StrCat(place.name, "[", Index(FromLinear(flat)).text, "]");
}

}  // namespace mycc

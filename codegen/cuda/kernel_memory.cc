// Emits addresses: the place of each buffer of a kernel, the address of an element, and the layout of shared
// memory.
#include "base/check.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// An offset into a swizzled buffer in three parts, with which
//
//   swizzle(within + chunks + periods) == (swizzle(within) ^ chunks) + periods
//
// `chunks` are whole 16 bytes, less than a row of the swizzle, and `within` has none; `periods` are whole
// repetitions of the swizzle. Terms of unrolled loops are constants there, and the rest is the same for all
// their iterations.
struct SwizzleParts {
  Linear within, chunks, periods;
};

// nullopt where a part of a row is not known to be within a chunk.
std::optional<SwizzleParts> SplitBySwizzle(const Linear& flat, int bits, int64_t element_bytes) {
  const int64_t chunk = 16 / element_bytes, row = chunk << bits, period = 8 * row;  // elements
  const int64_t constant = flat.constant;
  if (constant < 0) return std::nullopt;
  SwizzleParts parts;
  parts.periods.constant = constant / period * period;
  parts.chunks.constant = constant % row / chunk * chunk;
  parts.within.constant = constant % period - parts.chunks.constant;
  int64_t most_chunks = parts.chunks.constant, most_within = constant % chunk;
  for (const auto& [atom, coefficient] : flat.terms) {
    const std::optional<Interval> range = RangeOf(atom);
    if (!range || range->min < 0 || coefficient < 0) return std::nullopt;
    const int64_t most = range->max * coefficient;
    if (coefficient % period == 0) {
      parts.periods.terms.emplace_back(atom, coefficient);
    } else if (coefficient % row != 0 && coefficient % chunk == 0) {
      parts.chunks.terms.emplace_back(atom, coefficient);
      most_chunks += most;
    } else {
      parts.within.terms.emplace_back(atom, coefficient);
      most_within += coefficient % row == 0 ? 0 : most;
    }
  }
  if (most_chunks >= row || most_within >= chunk) return std::nullopt;
  return parts;
}

bool IsNothing(const Linear& linear) { return linear.terms.empty() && linear.constant == 0; }

}  // namespace

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

Code KernelEmitter::Offset(const Buffer& buffer, const std::vector<Expr>& indices) {
  return Index(FromLinear(Flat(PlaceOf(buffer), indices)));
}

std::string KernelEmitter::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Place& place = PlaceOf(buffer);
  if (place.vector == 0) return At(place, Flat(place, indices));
  const std::string lane = Index(indices[0]).text;
  if (place.layout.size() == place.vector) return absl::StrCat(place.name, ".at[", lane, "]");
  return absl::StrCat(place.name, "[", lane, " / ", place.vector, "].at[", lane, " % ", place.vector, "]");
}

std::string KernelEmitter::At(const Place& place, const Linear& flat) {
  const auto text = [&](const Linear& linear) { return Index(FromLinear(linear)).text; };
  const int bits = place.layout.swizzle.bits;
  std::optional<SwizzleParts> parts;
  if (bits != 0) parts = SplitBySwizzle(flat, bits, place.element_bytes);
  if (!parts) return absl::StrCat(place.name, "[", Swizzled(place, text(flat)), "]");
  std::string at = Swizzled(place, text(parts->within));
  if (!IsNothing(parts->chunks))
    at = absl::StrCat("(", at, " ^ ", Index(FromLinear(parts->chunks)).At(kSum), ")");
  if (!IsNothing(parts->periods)) absl::StrAppend(&at, " + ", text(parts->periods));
  return absl::StrCat(place.name, "[", at, "]");
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
    const std::string name = Name(tile->name), type = arithmetic_.MemoryType(tile->dtype);
    Line(type, "* const ", name, " = reinterpret_cast<", type, "*>(shared + ", alloc.offset, ");");
    places_[tile.get()] = {name, tile->layout.Coalesced(), DTypeBytes(tile->dtype)};
  });
  sends_ = launch_.cluster_reduce > 1 && Contains(launch_.body, StmtKind::kCombine);
}

}  // namespace mycc

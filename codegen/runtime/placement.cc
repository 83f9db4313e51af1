#include "codegen/runtime/placement.h"

#include <sys/mman.h>

namespace mycc {
namespace {

constexpr int64_t kLine = 64, kPage = 4096, kReach = 65536;
constexpr uint64_t kFewestPieces = 64;
constexpr size_t kPieceBytes = kPage;

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t Mixed(uint64_t placement, uint64_t what) {
  uint64_t x = (placement << 32 | what) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

MemoryPlace PlaceOf(int placement, int tensor) {
  if (placement == 0) return {};
  const uint64_t line =
      Mixed(static_cast<uint64_t>(placement), static_cast<uint64_t>(tensor)) % (kReach / kLine);
  return {kPage, static_cast<int64_t>(line) * kLine};
}

Spacer::Spacer(int placement) {
  constexpr uint64_t kOfCode = 0xffffffff;  // no tensor's number
  const uint64_t pieces = kFewestPieces + Mixed(static_cast<uint64_t>(placement), kOfCode) % kFewestPieces;
  for (uint64_t i = 0; i < pieces; ++i) {
    void* const piece = mmap(nullptr, kPieceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece != MAP_FAILED) addresses_.push_back(piece);
  }
}

Spacer::~Spacer() {
  for (void* const piece : addresses_) munmap(piece, kPieceBytes);
}

}  // namespace mycc

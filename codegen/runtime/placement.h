// Placements: where a kernel's tensors and code lie in memory. Caches, translation buffers and store buffers
// look at the low bits of addresses, so the time of the same code depends on them, by several percent. A time
// at one placement therefore says less than it seems to (Mytkowicz et al. 2009, "Producing wrong data without
// doing anything obviously wrong"; Curtsinger and Berger 2013, "Stabilizer"). Placements are numbered: the
// same number places tensors alike, in every process. Pure, but for Spacer. Thread rule: re-entrant.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

// Bytes: a multiple of `alignment`, plus `offset`, which is a multiple of 64.
struct MemoryPlace {
  int64_t alignment = 64, offset = 0;
};
// The place of the `tensor`-th tensor of a call. Placement 0 is wherever the allocator puts it; in the
// others, tensors begin at unrelated cache lines of 64 KiB.
MemoryPlace PlaceOf(int placement, int tensor);

// Reserves addresses while it lives, small pieces of them, which fill the gap that a library left. So one
// that is loaded meanwhile lies elsewhere.
class Spacer {
 public:
  explicit Spacer(int placement);
  ~Spacer();
  Spacer(const Spacer&) = delete;
  Spacer& operator=(const Spacer&) = delete;

 private:
  std::vector<void*> addresses_;  // fewer where none are to be had, which does no harm
};

}  // namespace mycc

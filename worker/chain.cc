#include "worker/chain.h"

#include <cpuid.h>
#include <immintrin.h>

#include <utility>

// libgomp's own entry points: the team of threads is the kernel's.
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
}

namespace mycc {
namespace {

constexpr int64_t kLineBytes = 64;

struct LineWork {
  const std::vector<MemorySpan>* spans;
  void (*line)(uint8_t* line);
};

// This thread's part of each span, line by line.
void OnOwnLines(void* data) {
  const LineWork& work = *static_cast<const LineWork*>(data);
  const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
  for (const MemorySpan& span : *work.spans) {
    const int64_t lines = (span.bytes + kLineBytes - 1) / kLineBytes;
    for (int64_t i = lines * thread / threads; i < lines * (thread + 1) / threads; ++i)
      work.line(span.data + i * kLineBytes);
  }
}

void WriteLine(uint8_t* line) {
  volatile uint8_t* const byte = line;
  *byte = *byte;
}

void EvictLine(uint8_t* line) { _mm_clflush(line); }

__attribute__((target("clflushopt"))) void EvictLineUnordered(uint8_t* line) { _mm_clflushopt(line); }

bool HasUnorderedEviction() {
  constexpr unsigned kBit = 1U << 23;  // of EBX, leaf 7
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kBit) != 0;
}

void InTeam(int threads, const std::vector<MemorySpan>& spans, void (*line)(uint8_t*)) {
  if (spans.empty()) return;
  LineWork work{&spans, line};
  GOMP_parallel(OnOwnLines, &work, static_cast<unsigned>(threads), 0);
}

}  // namespace

Chain::Chain(int threads, std::vector<MemorySpan> inputs_and_outputs,
             const std::vector<MemorySpan>& constants, int64_t cache_bytes)
    : threads_(threads), written_(std::move(inputs_and_outputs)) {
  for (const MemorySpan& constant : constants) {
    if (constant.bytes > cache_bytes) evicted_.push_back(constant);
  }
}

void Chain::Place() {
  static const bool kUnordered = HasUnorderedEviction();
  InTeam(threads_, evicted_, kUnordered ? EvictLineUnordered : EvictLine);
  InTeam(threads_, written_, WriteLine);
}

}  // namespace mycc

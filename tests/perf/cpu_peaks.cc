// Measures what the machine at hand can do at most: arithmetic in registers, and bytes from each size of
// working set, with all threads at once. Each core has a thread of its own.
//
//   cpu_peaks [WHAT] [THREADS] [SECONDS]    WHAT: f32, bf16, i8, memory or all, which it is if not given;
//   THREADS: 1;
//                                           SECONDS: 0.5 for each measurement
//
// Prints `f32_gops: VALUE` and `f32_isa: NAME` (for bf16 and i8 likewise: 10^9 operations a second, a
// multiply-add being two, with the best instructions that this CPU has), and `read_gbs_BYTES: VALUE`,
// `copy_gbs_BYTES: VALUE` for working sets of BYTES bytes, a copy's being read and written ones together.
#include <cpuid.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Instructions of up to six cycles' latency, two a cycle, need twelve chains in flight.
constexpr int kChains = 12;
constexpr int kSteps = 100'000, kTileSteps = 10'000;

// Defines a function that steps independent chains of one instruction, in registers.
#define MYCC_CHAINS(Name, isa, Vector, first, next)                                \
  __attribute__((target(isa))) void Name() {                                       \
    const Vector one = first;                                                      \
    Vector chains[kChains];                                                        \
    for (Vector & chain : chains) chain = one;                                     \
    for (int step = 0; step < kSteps; ++step) {                                    \
      _Pragma("GCC unroll 12") for (Vector & chain : chains) chain = next;         \
    }                                                                              \
    for (Vector & chain : chains) asm volatile("" : : "x"(chain)); /* is needed */ \
  }

MYCC_CHAINS(FmaAvx2, "avx2,fma", __m256, _mm256_set1_ps(0.5f), _mm256_fmadd_ps(chain, one, one))
MYCC_CHAINS(FmaAvx512, "avx512f", __m512, _mm512_set1_ps(0.5f), _mm512_fmadd_ps(chain, one, one))
MYCC_CHAINS(DotBf16, "avx512bf16", __m512, _mm512_set1_ps(0.5f),
            _mm512_dpbf16_ps(chain, (__m512bh)one, (__m512bh)one))
MYCC_CHAINS(MaddAvx2, "avx2", __m256i, _mm256_set1_epi16(1), _mm256_madd_epi16(chain, one))
MYCC_CHAINS(MaddAvx512, "avx512bw", __m512i, _mm512_set1_epi16(1), _mm512_madd_epi16(chain, one))
MYCC_CHAINS(DotVnni, "avx512vnni", __m512i, _mm512_set1_epi8(1), _mm512_dpbusd_epi32(chain, one, one))

// Tiles 0 to 3 are sums, 4 and 5 operands: 16 rows of 64 bytes each.
struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
// In memory, all of it: of a variable on the stack GCC 12 stores no more than the eight bytes that it takes
// the instruction to read.
constexpr TileConfig kTileConfig;

#define MYCC_TILES(Name, isa, multiply)                  \
  __attribute__((target("amx-tile," isa))) void Name() { \
    _tile_loadconfig(&kTileConfig);                      \
    _tile_zero(0);                                       \
    _tile_zero(1);                                       \
    _tile_zero(2);                                       \
    _tile_zero(3);                                       \
    _tile_zero(4);                                       \
    _tile_zero(5);                                       \
    for (int step = 0; step < kTileSteps; ++step) {      \
      multiply(0, 4, 5);                                 \
      multiply(1, 4, 5);                                 \
      multiply(2, 4, 5);                                 \
      multiply(3, 4, 5);                                 \
    }                                                    \
    _tile_release();                                     \
  }

MYCC_TILES(TilesBf16, "amx-bf16", _tile_dpbf16ps)
MYCC_TILES(TilesI8, "amx-int8", _tile_dpbusd)

// Whether the CPU has tiles with this bit of leaf 7 of cpuid (in EDX), and the kernel lets this process use
// them.
bool HasTiles(unsigned bit) {
  constexpr unsigned kAmxTile = 1u << 24;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxTile) != 0 && (edx & bit) != 0 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct Kernel {
  std::string_view type;  // of the operands
  const char* isa;
  bool supported;
  double operations;  // of one call
  void (*run)();
};

// A type's kernels with the best last.
std::vector<Kernel> Kernels() {
  constexpr double kCalls = 1.0 * kChains * kSteps, kTileCalls = 4.0 * kTileSteps;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return {{"f32", "avx2", avx2, 16 * kCalls, FmaAvx2},
          {"f32", "avx512", avx512, 32 * kCalls, FmaAvx512},
          {"bf16", "avx2", avx2, 16 * kCalls, FmaAvx2},
          {"bf16", "avx512", avx512, 32 * kCalls, FmaAvx512},
          {"bf16", "avx512_bf16", avx512 && __builtin_cpu_supports("avx512bf16"), 64 * kCalls, DotBf16},
          {"bf16", "amx", HasTiles(1u << 22), 2.0 * 16 * 16 * 32 * kTileCalls, TilesBf16},
          {"i8", "avx2", avx2, 32 * kCalls, MaddAvx2},
          {"i8", "avx512", avx512, 64 * kCalls, MaddAvx512},
          {"i8", "avx512_vnni", avx512 && __builtin_cpu_supports("avx512vnni"), 128 * kCalls, DotVnni},
          {"i8", "amx", HasTiles(1u << 25), 2.0 * 16 * 16 * 64 * kTileCalls, TilesI8}};
}

// The cores that this process may use, as many as there are threads.
std::vector<int> Cores(int threads) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && static_cast<int>(cores.size()) < threads; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void PinTo(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  sched_setaffinity(0, sizeof only, &only);
}

// Runs `work(thread)` over and over on all cores at once. Returns the sum over threads of the most calls a
// second that each reached in one call.
double CallsPerSecond(const std::vector<int>& cores, double seconds,
                      const std::function<void(size_t)>& work) {
  std::vector<double> best(cores.size());
  std::barrier start(static_cast<std::ptrdiff_t>(cores.size()));
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < cores.size(); ++thread) {
    threads.emplace_back([&, thread] {
      PinTo(cores[thread]);
      work(thread);
      start.arrive_and_wait();
      const auto end = Clock::now() + std::chrono::duration<double>(seconds);
      do {
        const auto begin = Clock::now();
        work(thread);
        best[thread] =
            std::max(best[thread], 1 / std::chrono::duration<double>(Clock::now() - begin).count());
      } while (Clock::now() < end);
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double calls : best) sum += calls;
  return sum;
}

bool PrintArithmetic(std::string_view type, const std::vector<int>& cores, double seconds) {
  double best = 0;
  const char* isa = nullptr;
  for (const Kernel& kernel : Kernels()) {
    if (kernel.type != type || !kernel.supported) continue;
    const double rate =
        CallsPerSecond(cores, seconds, [&](size_t) { kernel.run(); }) * kernel.operations / 1e9;
    if (rate > 0.98 * best) isa = kernel.isa;  // of equals, the later one
    best = std::max(best, rate);
  }
  if (isa == nullptr) return false;
  std::printf("%s_gops: %.1f\n%s_isa: %s\n", type.data(), best, type.data(), isa);
  return true;
}

#define MYCC_FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

MYCC_FOR_THIS_CPU uint64_t ReadAll(const uint64_t* from, size_t count) {
  constexpr size_t kSums = 64;  // eight vectors at the widest
  uint64_t sums[kSums] = {};
  for (size_t i = 0; i + kSums <= count; i += kSums) {
    for (size_t j = 0; j < kSums; ++j) sums[j] += from[i + j];
  }
  uint64_t sum = 0;
  for (const uint64_t one : sums) sum += one;
  return sum;
}

// Past the caches, as memcpy does for large blocks alone.
void CopyStreaming(uint64_t* to, const uint64_t* from, size_t count) {
  for (size_t i = 0; i + 2 <= count; i += 2) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();
}

// One thread's part of a working set, in aligned memory.
class Part {
 public:
  explicit Part(size_t bytes)
      : count_(bytes / sizeof(uint64_t)),
        words_(static_cast<uint64_t*>(std::aligned_alloc(4096, std::max<size_t>(bytes, 4096)))) {
    std::fill_n(words_, count_, 1);
  }
  Part(Part&& other) noexcept : count_(other.count_), words_(std::exchange(other.words_, nullptr)) {}
  ~Part() { std::free(words_); }

  void Read() const {
    for (int i = 0; i < Repeats(); ++i) sink_ = sink_ + ReadAll(words_, count_);
  }
  void Copy() const {
    for (int i = 0; i < Repeats(); ++i)
      std::memcpy(words_ + count_ / 2, words_, count_ / 2 * sizeof(uint64_t));
  }
  void Stream() const {
    for (int i = 0; i < Repeats(); ++i) CopyStreaming(words_ + count_ / 2, words_, count_ / 2);
  }
  // Enough for a call to take longer than the clock's steps.
  int Repeats() const {
    return static_cast<int>(std::max<size_t>(1, (4 << 20) / (count_ * sizeof(uint64_t))));
  }

 private:
  size_t count_;
  uint64_t* words_;
  mutable volatile uint64_t sink_ = 0;
};

void PrintMemory(const std::vector<int>& cores, double seconds) {
  for (size_t bytes = 64 << 10; bytes <= 256 << 20; bytes *= 4) {
    std::vector<Part> parts;
    for (size_t i = 0; i < cores.size(); ++i) parts.emplace_back(bytes / cores.size());
    const auto rate = [&](void (Part::*pass)() const) {
      const double passes = CallsPerSecond(cores, seconds, [&](size_t thread) { (parts[thread].*pass)(); });
      return passes * parts[0].Repeats() * static_cast<double>(bytes) / static_cast<double>(cores.size()) /
             1e9;
    };
    std::printf("read_gbs_%zu: %.1f\n", bytes, rate(&Part::Read));
    std::printf("copy_gbs_%zu: %.1f\n", bytes, std::max(rate(&Part::Copy), rate(&Part::Stream)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "all";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 0.5;
  const bool all = what == "all";
  if (argc > 4 || threads < 1 || seconds <= 0 ||
      !(all || what == "f32" || what == "bf16" || what == "i8" || what == "memory")) {
    std::fprintf(stderr, "usage: cpu_peaks [f32|bf16|i8|memory|all] [THREADS] [SECONDS]\n");
    return 2;
  }
  const std::vector<int> cores = Cores(threads);
  if (static_cast<int>(cores.size()) < threads) {
    std::fprintf(stderr, "cpu_peaks: this process may use %zu cores; expected %d\n", cores.size(), threads);
    return 1;
  }
  for (const char* type : {"f32", "bf16", "i8"}) {
    if (!all && what != type) continue;
    if (!PrintArithmetic(type, cores, seconds)) {
      std::fprintf(stderr, "cpu_peaks: this CPU has neither AVX2 with FMA nor AVX-512\n");
      return 1;
    }
  }
  if (all || what == "memory") PrintMemory(cores, seconds);
  return 0;
}

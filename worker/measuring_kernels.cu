// The kernels with which a GPU's runner measures: they draw inputs on the device, compare outputs there, and
// are the baseline. The source is plain C++ but for CUDA's names of a thread's index; NVRTC compiles it, and
// tests compile it for the host with definitions of those names. Type numbers are those of
// codegen/expr/dtype.h. Any grid covers any number of elements.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

enum { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8, kBool, kF8E4M3, kF8E5M2, kI16, kU16, kU32, kU64 };

// A check's findings; all zero but for first_wrong, which begins as the largest number.
struct Findings {
  u64 wrong;        // elements
  u64 first_wrong;  // the place of the first one
  u64 max_abs_error, max_rel_error;  // the bits of a double that is not negative: their order is the numbers'
};

static __device__ i64 FirstElement() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ i64 ElementStep() { return (i64)gridDim.x * blockDim.x; }

static __device__ u64 BitsOf(double value) {
  union { double f; u64 bits; } same;
  same.f = value;
  return same.bits;
}
static __device__ double DoubleOf(u64 bits) {
  union { double f; u64 bits; } same;
  same.bits = bits;
  return same.f;
}
static __device__ double PowerOfTwo(int exponent) { return DoubleOf((u64)(exponent + 1023) << 52); }
static __device__ bool IsNan(double value) { return value != value; }
static __device__ bool IsFinite(double value) { return value - value == 0; }
static __device__ double Magnitude(double value) { return DoubleOf(BitsOf(value) & ~(1ull << 63)); }

static __device__ bool IsFloatType(int dtype) { return dtype <= kBF16 || dtype == kF8E4M3 || dtype == kF8E5M2; }

// A float of few bits: sign, exponent, `mantissa` bits, all-ones exponents being infinities and NaNs; of e4m3
// (8 bits and 3) only all ones are a NaN.
static __device__ double DecodeSmall(u32 bits, int width, int mantissa) {
  const int exponent_bits = width - 1 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const u32 fraction = bits & ((1u << mantissa) - 1);
  const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
  const u64 sign = (u64)(bits >> (width - 1)) << 63;
  const bool is_e4m3 = width == 8 && mantissa == 3;
  if (exponent == (1 << exponent_bits) - 1 && (!is_e4m3 || fraction == 7))
    return DoubleOf(sign | 0x7ff0000000000000ull | ((u64)fraction << (52 - mantissa)));
  const double magnitude = exponent == 0
                               ? fraction * PowerOfTwo(1 - bias - mantissa)
                               : (fraction + (1u << mantissa)) * PowerOfTwo(exponent - bias - mantissa);
  return sign != 0 ? -magnitude : magnitude;
}

// The nearest such float to a number of magnitude at most 1, ties to even.
static __device__ u32 EncodeSmall(double value, int width, int mantissa) {
  const int exponent_bits = width - 1 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const u32 sign = (u32)(BitsOf(value) >> 63) << (width - 1);
  int exponent = (int)((BitsOf(value) >> 52) & 0x7ff) - 1023;
  if (exponent < 1 - bias) exponent = 1 - bias;
  // In units of the last place; a carry out of the fraction moves on to the next exponent by itself.
  const u32 units = (u32)rint(Magnitude(value) * PowerOfTwo(mantissa - exponent));
  return sign | ((u32)(exponent + bias - 1) << mantissa) + units;
}

static __device__ double LoadFloat(int dtype, const void* tensor, i64 i) {
  switch (dtype) {
    case kF64: return ((const double*)tensor)[i];
    case kF32: return ((const float*)tensor)[i];
    case kF16: return DecodeSmall(((const u16*)tensor)[i], 16, 10);
    case kBF16: return DecodeSmall(((const u16*)tensor)[i], 16, 7);
    case kF8E4M3: return DecodeSmall(((const u8*)tensor)[i], 8, 3);
    default: return DecodeSmall(((const u8*)tensor)[i], 8, 2);
  }
}

// bool as the byte that stands there: true is 1 and nothing else. u64 as its bits.
static __device__ i64 LoadInt(int dtype, const void* tensor, i64 i) {
  switch (dtype) {
    case kI64:
    case kU64: return ((const i64*)tensor)[i];
    case kI32: return ((const int*)tensor)[i];
    case kU32: return ((const u32*)tensor)[i];
    case kI16: return ((const short*)tensor)[i];
    case kU16: return ((const u16*)tensor)[i];
    case kI8: return ((const signed char*)tensor)[i];
    default: return ((const u8*)tensor)[i];
  }
}

// Number `n` of the sequence that RandomInputs draws from.
static __device__ u64 Draw(u64 seed, u64 n) {
  u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
static __device__ double DrawFloat(u64 drawn) { return (double)(drawn >> 11) * PowerOfTwo(-52) - 1.0; }

// A number of magnitude at most 1 in a float type's storage form.
static __device__ u64 EncodeFloat(int dtype, double value) {
  switch (dtype) {
    case kF64: return BitsOf(value);
    case kF32: {
      union { float f; u32 bits; } same;
      same.f = (float)value;
      return same.bits;
    }
    case kF16: return EncodeSmall(value, 16, 10);
    case kBF16: return EncodeSmall(value, 16, 7);
    case kF8E4M3: return EncodeSmall(value, 8, 3);
    default: return EncodeSmall(value, 8, 2);
  }
}

// An element in storage form, drawn as codegen/workload/reference.h's RandomInputs draws it.
static __device__ u64 DrawnBits(int dtype, u64 drawn, i64 low, u64 range) {
  return IsFloatType(dtype) ? EncodeFloat(dtype, DrawFloat(drawn)) : (u64)(low + (i64)(drawn % range));
}

// Elements are taken by their bytes, as unsigned numbers.
static __device__ u64 LoadBits(int bytes, const void* tensor, i64 i) {
  switch (bytes) {
    case 8: return ((const u64*)tensor)[i];
    case 4: return ((const u32*)tensor)[i];
    case 2: return ((const u16*)tensor)[i];
    default: return ((const u8*)tensor)[i];
  }
}
static __device__ void StoreBits(int bytes, void* tensor, i64 i, u64 value) {
  switch (bytes) {
    case 8: ((u64*)tensor)[i] = value; break;
    case 4: ((u32*)tensor)[i] = (u32)value; break;
    case 2: ((u16*)tensor)[i] = (u16)value; break;
    default: ((u8*)tensor)[i] = (u8)value; break;
  }
}

static __device__ void NoteWrong(Findings* findings, u64 place) {
  atomicAdd(&findings->wrong, 1ull);
  atomicMin(&findings->first_wrong, place);
}

extern "C" __global__ void mycc_draw(void* tensor, i64 count, int dtype, int bytes, u64 seed, u64 first, i64 low,
                                     u64 range) {
  for (i64 i = FirstElement(); i < count; i += ElementStep())
    StoreBits(bytes, tensor, i, DrawnBits(dtype, Draw(seed, first + i), low, range));
}

// Special values among what mycc_draw wrote, as SpecialDraw of codegen/workload/reference.h has them.
extern "C" __global__ void mycc_sprinkle(void* tensor, i64 count, int dtype, int bytes, u64 seed, u64 one_in, i64 row,
                                         double small, const u64* values, int num_values) {
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    const u64 kind = row > 0 ? Draw(~seed ^ (u64)(i / row), 0) % 16 : 16;
    const u64 drawn = Draw(seed ^ (u64)i, 0);
    if (kind == 0) StoreBits(bytes, tensor, i, 0);
    if (kind == 1) StoreBits(bytes, tensor, i, EncodeFloat(dtype, LoadFloat(dtype, tensor, i) * small));
    if (kind > 1 && drawn % one_in == 0) StoreBits(bytes, tensor, i, values[(drawn >> 40) % num_values]);
  }
}

// The elements at some places, one after the other.
extern "C" __global__ void mycc_gather(void* to, const void* from, const i64* places, i64 count, int bytes) {
  for (i64 i = FirstElement(); i < count; i += ElementStep())
    StoreBits(bytes, to, i, LoadBits(bytes, from, places[i]));
}

// Does the tensor still hold what mycc_draw wrote?
extern "C" __global__ void mycc_check_drawn(const void* tensor, i64 count, int dtype, int bytes, u64 seed, u64 first,
                                            i64 low, u64 range, Findings* findings) {
  const u64 mask = bytes == 8 ? ~0ull : (1ull << (8 * bytes)) - 1;
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    const u64 drawn = DrawnBits(dtype, Draw(seed, first + i), low, range) & mask;
    if (LoadBits(bytes, tensor, i) != drawn) NoteWrong(findings, i);
  }
}

extern "C" __global__ void mycc_check_bytes(const u8* memory, i64 count, int byte, Findings* findings) {
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    if (memory[i] != (u8)byte) NoteWrong(findings, i);
  }
}

// Do two tensors hold the same bits?
extern "C" __global__ void mycc_differ(const void* one, const void* other, i64 count, int bytes, Findings* findings) {
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    if (LoadBits(bytes, one, i) != LoadBits(bytes, other, i)) NoteWrong(findings, i);
  }
}

// A number that stands for the bytes, added to `sum`.
extern "C" __global__ void mycc_digest(const u8* memory, i64 count, u64* sum) {
  u64 own = 0;
  for (i64 i = FirstElement(); i < count; i += ElementStep()) own += Draw(memory[i], (u64)i);
  atomicAdd(sum, own);
}

// The largest finite magnitude, as the bits of a double, into `scale`, which begins as those of the type's
// smallest normal number.
extern "C" __global__ void mycc_scale(const void* expected, i64 count, int dtype, u64* scale) {
  double largest = 0;
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    const double value = Magnitude(LoadFloat(dtype, expected, i));
    if (IsFinite(value) && value > largest) largest = value;
  }
  atomicMax(scale, BitsOf(largest));
}

static __device__ bool FloatIsRight(double want, double have, double of_value, double of_scale, double scale,
                                    double* abs_error, double* rel_error) {
  if (!IsFinite(want) || !IsFinite(have)) return (IsNan(want) && IsNan(have)) || have == want;
  const double error = Magnitude(have - want);
  double magnitude = Magnitude(want);
  const bool right = error <= of_value * magnitude + of_scale * scale;
  if (magnitude < 1e-2 * scale) magnitude = 1e-2 * scale;
  if (error > *abs_error) *abs_error = error;
  if (magnitude > 0 && error / magnitude > *rel_error) *rel_error = error / magnitude;
  return right;
}

// The same verdict as Compare (codegen/workload/compare.h), without its excuses. `places` may be null: all of
// `got`, in order. `scale` is mycc_scale's.
extern "C" __global__ void mycc_compare(const void* expected, const void* got, const i64* places, i64 count, int dtype,
                                        double of_value, double of_scale, const u64* scale, Findings* findings) {
  const double largest = DoubleOf(*scale);
  double abs_error = 0, rel_error = 0;
  for (i64 i = FirstElement(); i < count; i += ElementStep()) {
    const i64 place = places != 0 ? places[i] : i;
    if (IsFloatType(dtype)) {
      const double want = LoadFloat(dtype, expected, i), have = LoadFloat(dtype, got, place);
      if (!FloatIsRight(want, have, of_value, of_scale, largest, &abs_error, &rel_error)) NoteWrong(findings, i);
      continue;
    }
    const i64 want = LoadInt(dtype, expected, i), have = LoadInt(dtype, got, place);
    if (want == have) continue;
    const double error = Magnitude(dtype == kU64 ? (double)(u64)have - (double)(u64)want
                                                 : (double)have - (double)want);
    if (error > abs_error) abs_error = error;
    NoteWrong(findings, i);
  }
  if (abs_error > 0) atomicMax(&findings->max_abs_error, BitsOf(abs_error));
  if (rel_error > 0) atomicMax(&findings->max_rel_error, BitsOf(rel_error));
}

// A neighbour that takes a kernel's multiprocessors and its L2: each thread reads and writes scattered words,
// one after the other. Their values are nobody's concern.
extern "C" __global__ void mycc_neighbour(u32* memory, i64 words, int rounds) {
  u32 at = (u32)FirstElement() * 2654435761u, sum = 0;
  for (int round = 0; round < rounds; ++round) {
    at = at * 1664525u + 1013904223u;
    sum += memory[at % words];
    memory[(at >> 7) % words] = sum;
  }
}

// For the device's constants (worker/gpu_constants.h): multiply-adds in registers alone. Nothing is stored, which
// the compiler cannot know.
extern "C" __global__ void mycc_fma(float* to, int rounds) {
  float chain[8];
  for (int k = 0; k < 8; ++k) chain[k] = (float)(threadIdx.x + k);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 8; ++k) chain[k] = chain[k] * 0.5f + 1.0f;
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += chain[k];
  if (sum < 0) *to = sum;
}

struct alignas(16) TwoWords {
  u64 first, second;
};

// Reads `count` elements in order, all threads beside each other, each `loads` of them in a pass, a multiple of
// four. In each pass a multiprocessor reads what others read before, so that it does not find it in its own cache.
// The memory is zero.
extern "C" __global__ void mycc_read(TwoWords* memory, i64 count, i64 loads, int passes) {
  const i64 step = ElementStep() % count;
  u64 all = 0;
  for (int pass = 0; pass < passes; ++pass) {
    i64 i = (FirstElement() + (i64)pass * 37 * blockDim.x) % count;
    for (i64 left = loads; left > 0; left -= 4) {
      u64 some[4];
      for (int k = 0; k < 4; ++k) {
        const TwoWords words = memory[i];
        some[k] = words.first | words.second;
        i += step;
        if (i >= count) i -= count;
      }
      all |= some[0] | some[1] | some[2] | some[3];
    }
  }
  if (all != 0) memory[0].first = all;
}

// Loads that wait for each other, by one thread, from lines that lie apart. The memory is zero.
extern "C" __global__ void mycc_chase(u64* memory, i64 lines, i64 first, int loads) {
  const i64 words_of_line = 16;
  const u64 step = 4099 % (u64)lines;
  if (FirstElement() != 0) return;
  u64 at = (u64)first % (u64)lines;
  for (int load = 0; load < loads; ++load) {
    at += step + memory[at * words_of_line];
    if (at >= (u64)lines) at -= (u64)lines;
  }
  if (at == (u64)lines) memory[0] = at;
}

extern "C" __global__ void mycc_nothing(float* to) { (void)to; }

// The baseline: multiply-adds in registers, then a copy. A slower clock shows in the first half, a neighbour
// in both.
extern "C" __global__ void mycc_baseline(float* to, const float* from, i64 count, int rounds) {
  float chain[8];
  for (int k = 0; k < 8; ++k) chain[k] = (float)(threadIdx.x + k);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 8; ++k) chain[k] = chain[k] * 0.5f + 1.0f;
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += chain[k];
  for (i64 i = FirstElement(); i < count; i += ElementStep()) to[i] = from[i] * sum;
}

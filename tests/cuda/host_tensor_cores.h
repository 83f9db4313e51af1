// The instructions of Ampere's tensor cores, in place of their PTX: copies to shared memory, at once;
// fragments, as the PTX ISA lays them out; products of a warp. Included by host_cuda.h.

static inline unsigned __cvta_generic_to_shared(const void* at) { return (const unsigned char*)at - shared; }

static void HostRequire(bool holds) {
  if (!holds) __builtin_trap();
}

template <int kBytes>
static void HostCopyAsync(unsigned to, unsigned long long from, bool inside) {
  HostRequire(to % kBytes == 0 && (!inside || from % kBytes == 0));
  if (inside) {
    memcpy(shared + to, (const void*)from, kBytes);
  } else {
    memset(shared + to, 0, kBytes);
  }
}

static void HostLoad16(void* to, unsigned long long from) {
  HostRequire(from % 16 == 0);
  memcpy(to, (const void*)from, 16);
}

// The operands that the threads of a block bring to an instruction of their warps.
static unsigned host_brought[1024][6];
static void WarpBarrierOnHost() { host.ballot(~0u, true); }

// Matrices of 8 x 8 elements of 16 bits: rows from the addresses of 8 lanes each. A lane has two elements of
// each: of row lane / 4, or, transposed, of column lane / 4.
template <int kMatrices>
static void HostLoadMatrices(unsigned (&to)[kMatrices], unsigned from, bool transposed) {
  HostRequire(from % 16 == 0);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread - lane;
  host_brought[thread][0] = from;
  WarpBarrierOnHost();
  for (int matrix = 0; matrix < kMatrices; ++matrix) {
    to[matrix] = 0;
    for (int i = 0; i < 2; ++i) {
      const int row = transposed ? lane % 4 * 2 + i : lane / 4,
                column = transposed ? lane / 4 : lane % 4 * 2 + i;
      uint16_t element;
      memcpy(&element, shared + host_brought[warp + matrix * 8 + row][0] + 2 * column, 2);
      to[matrix] |= (unsigned)element << 16 * i;
    }
  }
  WarpBarrierOnHost();
}

// Element `i` of a register.
struct HostOfF16 {
  static constexpr int kCount = 2;
  static float Get(unsigned bits, int i) { return HostFromF16(bits >> 16 * i & 0xffffu); }
};
struct HostOfBF16 {
  static constexpr int kCount = 2;
  static float Get(unsigned bits, int i) { return __uint_as_float(bits >> 16 * i << 16); }
};
// Bits below the tenth of the mantissa are not seen.
struct HostOfTF32 {
  static constexpr int kCount = 1;
  static float Get(unsigned bits, int) { return __uint_as_float(bits & ~0x1fffu); }
};
struct HostOfS8 {
  static constexpr int kCount = 4;
  static int Get(unsigned bits, int i) { return (int8_t)(bits >> 8 * i); }
};

struct HostOfE4M3 {
  static constexpr int kCount = 4;
  static float Get(unsigned bits, int i) {
    const int byte = (int)(bits >> 8 * i & 0xff), exponent = byte >> 3 & 15, fraction = byte & 7;
    if ((byte & 0x7f) == 0x7f) return NAN;
    const float value = exponent == 0 ? ldexpf(fraction, -9) : ldexpf(8 + fraction, exponent - 10);
    return byte & 0x80 ? -value : value;
  }
};
struct HostOfE5M2 {
  static constexpr int kCount = 4;
  static float Get(unsigned bits, int i) { return HostFromF16((bits >> 8 * i & 0xffu) << 8); }
};

// d (16 x 8) += a * b, 32 bytes deep, or 16 where a has two registers. Registers of a: rows 0..7 and 8..15 of
// the upper half of the depth, then of the lower; a lane has 4 bytes of row lane / 4. Registers of b: columns
// so, upper and lower half.
template <typename Of, typename Sum, int kRegisters>
static void HostMma(Sum& d0, Sum& d1, Sum& d2, Sum& d3, const unsigned (&a)[kRegisters], unsigned b0,
                    unsigned b1 = 0) {
  const int thread = threadIdx.x, lane = thread % 32, warp = thread - lane;
  for (int i = 0; i < kRegisters; ++i) host_brought[thread][i] = a[i];
  host_brought[thread][4] = b0;
  host_brought[thread][5] = b1;
  WarpBarrierOnHost();
  Sum* const d[4] = {&d0, &d1, &d2, &d3};
  for (int element = 0; element < 4; ++element) {
    const int row = lane / 4, lower_rows = element / 2, column = lane % 4 * 2 + element % 2;
    for (int half = 0; half < kRegisters / 2; ++half) {
      for (int four = 0; four < 4; ++four) {
        const unsigned x = host_brought[warp + row * 4 + four][half * 2 + lower_rows],
                       y = host_brought[warp + column * 4 + four][4 + half];
        for (int i = 0; i < Of::kCount; ++i) *d[element] += Of::Get(x, i) * Of::Get(y, i);
      }
    }
  }
  WarpBarrierOnHost();
}

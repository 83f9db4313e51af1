#include "codegen/cuda/prelude.h"

#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/check.h"
#include "codegen/cuda/prelude_fragments.h"

namespace mycc {
namespace {

// Texts of several functions: $0 stands for the name, $1 and $2 for what differs besides.
constexpr char kPack[] = R"(
// Two neighbouring elements of an operand, rounded, in one register.
__device__ __forceinline__ unsigned $0(float even, float odd) {
  unsigned pair;
  asm("cvt.rn.$1.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
  return pair;
}
)";

constexpr char kToPacked[] = R"(
// In pairs: the instruction for one value is slower.
__device__ __forceinline__ $1 $0(float value) { return $1{(unsigned short)pack_$1(value, 0.0f)}; }
)";

constexpr char kToInteger[] = R"(
__device__ __forceinline__ $1 $0(float value) { return value != value ? 0 : __float2$2_rz(value); }
__device__ __forceinline__ $1 $0(double value) { return value != value ? 0 : __double2$2_rz(value); }
)";

constexpr char kWrap[] = R"(
template <typename T>
__device__ __forceinline__ T $0(T a, T b) { return T(u64(a) $1 u64(b)); }
)";

constexpr char kExtremum[] = R"(
__device__ __forceinline__ float $0(float a, float b) {
  float result;
  asm("$1.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ double $0(double a, double b) { return a != a ? a : b != b ? b : f$1(a, b); }
template <typename T>
__device__ __forceinline__ T $0(T a, T b) { return a $2 b ? a : b; }
)";

// In the order in which they are printed.
constexpr PreludeFragment kFragments[] = {
    {"BLOCK_OF", "", R"(
// ptxas makes room for several blocks on an SM. Where that spills registers, the program is compiled again for
// ONE_BLOCK.
#ifdef ONE_BLOCK
#define BLOCK_OF(threads) __launch_bounds__(threads, 1)
#else
#define BLOCK_OF(threads) __launch_bounds__(threads)
#endif
)"},
    {"TURNS", "", R"(
// Unrolls a pipeline's loop by `times` iterations. Without the pragma, the compiler unrolls a short loop whole: it then
// compiles several times longer. ptxas serializes the wgmmas of some unrolled loops (C7517, C7520): such a program is
// compiled again with ROLLED_TURNS. It serializes those of other loops when they are rolled (C7514).
#define PRAGMA(text) _Pragma(#text)
#ifdef ROLLED_TURNS
#define TURNS(times) PRAGMA(unroll 1)
#else
#define TURNS(times) PRAGMA(unroll times)
#endif
)"},
    {"divide", "", R"(
// Within 2 ulp over the full range, without a branch.
__device__ __forceinline__ float divide(float a, float b) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
)"},
    {"choose", "", R"(
// Both values are computed before one is taken.
__device__ __forceinline__ float choose(bool condition, float then, float otherwise) {
  return condition ? then : otherwise;
}
)"},
    {"exp2_approx", "", R"(
// Within 2 ulp; results below 2^-126 are 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
)"},
    {"i8", "", "using i8 = signed char;\n"},
    {"u8", "", "using u8 = unsigned char;\n"},
    {"i16", "", "using i16 = short;\n"},
    {"u16", "", "using u16 = unsigned short;\n"},
    {"u32", "", "using u32 = unsigned;\n"},
    {"i64", "", "using i64 = long long;\n"},
    {"u64", "", "using u64 = unsigned long long;\n"},
    {"f16", "", "struct f16 {\n  unsigned short bits;\n};\n"},
    {"bf16", "", "struct bf16 {\n  unsigned short bits;\n};\n"},
    {"f8e4m3", "", "struct f8e4m3 {\n  unsigned char bits;\n};\n"},
    {"f8e5m2", "", "struct f8e5m2 {\n  unsigned char bits;\n};\n"},
    {"Vec", "", R"(
// Elements that are loaded or stored by one instruction.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Vec {
  T at[kCount];
};
)"},
    {"load_vec", "Vec", R"(
template <int kCount, typename T>
__device__ __forceinline__ Vec<T, kCount> load_vec(const T* from) {
  return *reinterpret_cast<const Vec<T, kCount>*>(from);
}
)"},
    Ptx("wait_for_launch", "", "griddepcontrol.wait;",
        "For the end of the launch before this one, and of those before that, with all that they write."),
    Ptx("allow_next_launch", "", "griddepcontrol.launch_dependents;"),
    {"from_here_on", "", R"(
// The same address, of which the compiler knows nothing before this place.
template <typename T>
__device__ __forceinline__ T* from_here_on(T* address) {
  asm volatile("" : "+l"(address) :: "memory");
  return address;
}
)"},
    {"load_once", "Vec", R"(
// The same of what nobody reads again: the first to leave the caches.
template <int kCount, typename T>
__device__ __forceinline__ Vec<T, kCount> load_once(const T* from) {
  Vec<T, kCount> value;
  if constexpr (sizeof(value) % 16 == 0) {
    for (int i = 0; i < int(sizeof(value) / 16); ++i)
      reinterpret_cast<uint4*>(&value)[i] = __ldcs(reinterpret_cast<const uint4*>(from) + i);
  } else if constexpr (sizeof(value) == 8) {
    *reinterpret_cast<uint2*>(&value) = __ldcs(reinterpret_cast<const uint2*>(from));
  } else {
    value = *reinterpret_cast<const Vec<T, kCount>*>(from);
  }
  return value;
}
)"},
    {"store_vec", "Vec", R"(
template <int kCount, typename T>
__device__ __forceinline__ void store_vec(T* to, const Vec<T, kCount>& value) {
  *reinterpret_cast<Vec<T, kCount>*>(to) = value;
}
)"},
    {"in_other_registers", "Vec", R"(
// The same numbers. A vector is stored from neighbouring registers. Sums in these registers would each be in the
// bank that its place in the vector determines, also where they are computed, and an instruction with all three
// operands in one bank takes longer. A compiler does not know that blockIdx.z is 0, so that it moves them.
template <int kCount>
__device__ __forceinline__ Vec<float, kCount> in_other_registers(const Vec<float, kCount>& sums) {
  Vec<float, kCount> moved;
#pragma unroll
  for (int i = 0; i < kCount; ++i) moved.at[i] = __uint_as_float(__float_as_uint(sums.at[i]) ^ blockIdx.z);
  return moved;
}
)"},
    {"swizzle", "", R"(
// Where element `at` of a swizzled buffer is: rows of 16 << kBits bytes, the 16-byte chunks XORed with the row.
template <int kBits, int kBytes>
__device__ __forceinline__ int swizzle(int at) {
  constexpr int kChunk = 16 / kBytes;
  return at ^ (at / (8 * kChunk) & ((1 << kBits) - 1)) * kChunk;
}
)"},
    {"pack_f16", "", kPack, "f16x2"},
    {"pack_bf16", "", kPack, "bf16x2"},
    {"to_f16", "f16 pack_f16", kToPacked, "f16"},
    {"from_f16", "f16", R"(
__device__ __forceinline__ float from_f16(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
)"},
    {"to_bf16", "bf16 pack_bf16", kToPacked, "bf16"},
    {"from_bf16", "bf16", R"(
// The bits become the upper half of a register, in one instruction for each element of a pair. Shifts took two
// for one of them.
__device__ __forceinline__ float from_bf16(bf16 value) {
  float result;
  asm("mov.b32 %0, {%1, %2};" : "=f"(result) : "h"((unsigned short)0), "h"(value.bits));
  return result;
}
)"},
    {"to_f8e4m3", "f8e4m3", R"(
__device__ __forceinline__ f8e4m3 to_f8e4m3(float value) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return f8e4m3{(unsigned char)pair};
#else
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  unsigned result = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u) - (120u << 23)) >> 20;
  if (result > 0x7eu) result = 0x7eu;
  // Below the normal numbers the addition rounds.
  if (magnitude < 0x3c800000u) result = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - 0x46800000u;
  if (magnitude > 0x7f800000u) result = 0x7fu;
  return f8e4m3{(unsigned char)((bits >> 24 & 0x80u) | result)};
#endif
}
)"},
    {"from_f8e4m3", "f8e4m3 from_f16", R"(
__device__ __forceinline__ float from_f8e4m3(f8e4m3 value) {
#if __CUDA_ARCH__ >= 890
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)value.bits));
  return from_f16(f16{(unsigned short)pair});
#else
  const unsigned sign = unsigned(value.bits & 0x80) << 24, magnitude = value.bits & 0x7f;
  const unsigned small = __float_as_uint(float(magnitude) * 0.001953125f);
  const unsigned wide = magnitude < 8u ? small : magnitude == 0x7fu ? 0x7fc00000u : (magnitude << 20) + (120u << 23);
  return __uint_as_float(sign | wide);
#endif
}
)"},
    {"to_f8e5m2", "f8e5m2", R"(
__device__ __forceinline__ f8e5m2 to_f8e5m2(float value) {
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
#if __CUDA_ARCH__ >= 890
  unsigned short result;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(result) : "f"(0.0f), "f"(value));
  // The instruction makes infinity the largest number.
  if (magnitude == 0x7f800000u) ++result;
  return f8e5m2{(unsigned char)result};
#else
  unsigned result = (magnitude + 0xfffffu + (magnitude >> 21 & 1u) - (112u << 23)) >> 21;
  if (result > 0x7bu) result = 0x7bu;
  // Below the normal numbers the addition rounds.
  if (magnitude < 0x38800000u) result = __float_as_uint(__uint_as_float(magnitude) + 128.0f) - 0x43000000u;
  if (magnitude >= 0x7f800000u) result = magnitude == 0x7f800000u ? 0x7cu : 0x7fu;
  return f8e5m2{(unsigned char)((bits >> 24 & 0x80u) | result)};
#endif
}
)"},
    {"from_f8e5m2", "f8e5m2 from_f16", R"(
// The upper byte of an f16.
__device__ __forceinline__ float from_f8e5m2(f8e5m2 value) { return from_f16(f16{(unsigned short)(value.bits << 8)}); }
)"},
    {"round_tf32", "", R"(
__device__ __forceinline__ float round_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}
)"},
    {"narrow_f64", "", R"(
// A double as a float that still rounds to narrower floats as the double does: what is lost is one sticky bit.
__device__ __forceinline__ float narrow_f64(double value) {
  const float chopped = __double2float_rz(value);
  if (double(chopped) == value || value != value) return chopped;
  return __uint_as_float(__float_as_uint(chopped) | 1u);
}
)"},
    {"narrow_int", "", R"(
// An integer of 64 bits as a double that rounds to narrower floats as the integer does.
template <typename T>
__device__ __forceinline__ double narrow_int(T value) {
  constexpr T kLost = T(-1) < 0 ? 0x7ff : 0xfff, kMost = T(1) << 53;
  if (value > kMost || (T(-1) < 0 && value < -kMost))
    value = (value & ~kLost) | ((value & kLost) != 0 ? kLost / 2 + 1 : 0);
  return double(value);
}
)"},
    {"to_i32", "", R"(
// Floats to integers: towards zero, saturating, NaN to 0.
__device__ __forceinline__ int to_i32(float value) { return __float2int_rz(value); }
__device__ __forceinline__ int to_i32(double value) { return value != value ? 0 : __double2int_rz(value); }
)"},
    {"to_i64", "i64", kToInteger, "i64", "ll"},
    {"to_u32", "u32", kToInteger, "u32", "uint"},
    {"to_u64", "u64", kToInteger, "u64", "ull"},
    {"clamp_i32", "", R"(
__device__ __forceinline__ int clamp_i32(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}
)"},
    {"wrap_add", "u64", kWrap, "+", "", "Integers wrap."},
    {"wrap_sub", "u64", kWrap, "-"},
    {"wrap_mul", "u64", kWrap, "*"},
    {"floor_div", "wrap_sub", R"(
// Floored division; by zero it is 0.
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  constexpr T kMinusOne = T(-1) < 0 ? T(-1) : T(0);  // no unsigned integer is -1
  if (b == 0) return 0;
  if (b == kMinusOne) return wrap_sub(T(0), a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
)"},
    {"floor_mod", "", R"(
template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  constexpr T kMinusOne = T(-1) < 0 ? T(-1) : T(0);
  if (b == 0 || b == kMinusOne) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"max_of", "", kExtremum, "max", ">", "NaN passes through."},
    {"min_of", "", kExtremum, "min", "<"},
};

std::string TextOf(const PreludeFragment& fragment) {
  const std::string comment = absl::StrReplaceAll(fragment.comment, {{"\n", "\n// "}});
  const std::string head = comment.empty() ? "" : absl::StrCat("\n// ", comment);
  if (fragment.text != nullptr)
    return head + absl::Substitute(fragment.text, fragment.name, fragment.first, fragment.second);
  const std::string parameters = fragment.first;
  const bool is_template = absl::StartsWith(parameters, "k");
  std::vector<std::string> operands;
  for (const absl::string_view parameter : absl::StrSplit(parameters, ", ", absl::SkipEmpty())) {
    const char* constraint = is_template ? "n" : absl::StrContains(parameter, "*") ? "l" : "r";
    const absl::string_view name = parameter.substr(parameter.rfind(' ') + 1);
    operands.push_back(absl::StrCat("\"", constraint, "\"(", name, ")"));
  }
  const char* clobber = !fragment.of_memory ? "" : operands.empty() ? ": \"memory\"" : " : \"memory\"";
  return absl::StrCat(head, is_template ? absl::StrCat("\ntemplate <int ", parameters, ">\n") : "\n",
                      "__device__ __forceinline__ void ", fragment.name, "(", is_template ? "" : parameters,
                      ") {\n  asm volatile(\"", fragment.second, "\" ::", absl::StrJoin(operands, ", "),
                      clobber, ");\n}\n");
}

// All fragments, in the order in which they are printed.
std::array<std::span<const PreludeFragment>, 2> Fragments() { return {kFragments, TensorCoreFragments()}; }

const PreludeFragment& Find(const std::string& name) {
  for (const auto& fragments : Fragments()) {
    for (const PreludeFragment& fragment : fragments) {
      if (fragment.name == name) return fragment;
    }
  }
  MYCC_CHECK(false) << "no device function " << name;
  return kFragments[0];
}

}  // namespace

std::string Prelude::Use(const std::string& name) {
  if (used_.insert(name).second) {
    for (const auto& needed : absl::StrSplit(Find(name).needs, ' ', absl::SkipEmpty()))
      Use(std::string(needed));
  }
  return name;
}

std::string Prelude::Add(const DeviceFunction& function) {
  return added_.emplace(function.name, function.text).first->first;
}

std::string Prelude::Text() const {
  std::string text;
  for (const auto& fragments : Fragments()) {
    for (const PreludeFragment& fragment : fragments) {
      if (used_.count(fragment.name) != 0) text += TextOf(fragment);
    }
  }
  for (const auto& [name, function] : added_) text += function;
  return text;
}

}  // namespace mycc

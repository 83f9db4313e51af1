// Integer arithmetic of the language: two's complement without C++'s undefined overflow; quotients are
// floored, and division by zero gives 0. Pure.
#pragma once

#include <cstdint>

namespace mycc {

inline int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

inline int64_t FloorDivInt(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return WrapSub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

inline int64_t FloorModInt(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Quotients that are rounded up, and numbers rounded up to a multiple; none is negative.
inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t a, int64_t multiple) { return CeilDiv(a, multiple) * multiple; }

// A u64 is held as its bits.
inline int64_t DivUnsigned(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
}
inline int64_t ModUnsigned(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
}

}  // namespace mycc

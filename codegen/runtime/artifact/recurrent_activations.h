// Sigmoids and tanhs of f32 for one instruction set, four numbers or more at once: they would otherwise take
// longer than the products. Included with BYTES (of a vector), TARGET (the attributes of its functions) and
// FOR_SET (which makes names of the set's own) defined.

typedef float FOR_SET(Floats) __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t FOR_SET(Ints) __attribute__((vector_size(BYTES), aligned(4), may_alias));

// 2^n and exp(r) - 1, where x = n * log(2) + r and r is at most log(2) / 2: a series,
// whose next term is below the last bit. |x| is at most 87, or x is NaN, and then so is `rest`.
TARGET static inline void FOR_SET(SplitExp)(const FOR_SET(Floats) * at, FOR_SET(Floats) * power,
                                            FOR_SET(Floats) * rest) {
  const float magic = 12582912;  // 1.5 * 2^23: the lowest bits of a sum are those of the rounded number
  const FOR_SET(Floats) x = *at, rounded = x * 1.44269504F + magic, n = rounded - magic;
  // log(2) is in two parts, the first of 16 bits.
  const FOR_SET(Floats) r = x - n * 0.693145752F - n * 1.42860677e-6F;
  *power = (FOR_SET(Floats))(((FOR_SET(Ints))rounded << 23) + 0x3F800000);
  *rest =
      r +
      r * r *
          (0.5F + r * (1 / 6.0F + r * (1 / 24.0F + r * (1 / 120.0F + r * (1 / 720.0F + r * (1 / 5040.0F))))));
}

TARGET static inline void FOR_SET(Limit)(FOR_SET(Floats) * x, float most) {
  const FOR_SET(Floats) high = (FOR_SET(Floats)){0} + most, low = -high;
  const FOR_SET(Ints) above = (FOR_SET(Ints))(*x > high), below = (FOR_SET(Ints))(*x < low);
  *x = (FOR_SET(Floats))((above & (FOR_SET(Ints))high) | (below & (FOR_SET(Ints))low) |
                         (~(above | below) & (FOR_SET(Ints)) * x));
}

// `n` is a multiple of a panel.
TARGET static void FOR_SET(SigmoidsF32)(int64_t n, float* numbers) {
  for (int64_t j = 0; j < n; j += BYTES / 4) {
    FOR_SET(Floats) x = -*(FOR_SET(Floats)*)(numbers + j), power, rest;
    FOR_SET(Limit)(&x, 87);
    FOR_SET(SplitExp)(&x, &power, &rest);
    *(FOR_SET(Floats)*)(numbers + j) = 1.0F / (1.0F + (power * rest + power));
  }
}

// e / (e + 2) with e = exp(2 x) - 1, which keeps its bits where x is small. Beyond 9.5 it is 1.
TARGET static void FOR_SET(TanhsF32)(int64_t n, float* numbers) {
  for (int64_t j = 0; j < n; j += BYTES / 4) {
    FOR_SET(Floats) x = *(FOR_SET(Floats)*)(numbers + j), power, rest;
    FOR_SET(Limit)(&x, 9.5F);
    x *= 2.0F;
    FOR_SET(SplitExp)(&x, &power, &rest);
    const FOR_SET(Floats) e = power * rest + (power - 1.0F);
    *(FOR_SET(Floats)*)(numbers + j) = e / (e + 2.0F);
  }
}

TARGET static void FOR_SET(SigmoidsF64)(int64_t n, double* x) {
  for (int64_t j = 0; j < n; ++j) x[j] = 1 / (1 + exp(-x[j]));
}

TARGET static void FOR_SET(TanhsF64)(int64_t n, double* x) {
  for (int64_t j = 0; j < n; ++j) x[j] = tanh(x[j]);
}

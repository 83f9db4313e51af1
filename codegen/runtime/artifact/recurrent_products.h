// Products of rows and one panel of weights, to[j] = sum over k of from[k] * w[k, j], for one type and one
// instruction set. There are eight sums in flight, as many as hide the time of one multiply-add. The order of
// a row's sums depends on the number of rows at once alone.

typedef Real NAMED(Vector) __attribute__((vector_size(BYTES), aligned(sizeof(Real)), may_alias));
enum {
  NAMED(kLanes) = BYTES / sizeof(Real),
  NAMED(kVectors) = kMyccPanel / NAMED(kLanes),  // of a panel's row
};

// One row, where a panel's row is two vectors: k in four phases.
TARGET static void NAMED(RowByPairs)(const Real* from, const Real* w, int64_t hidden, Real* to) {
  NAMED(Vector) a0 = {0}, a1 = {0}, b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0}, d0 = {0}, d1 = {0};
  const NAMED(Vector)* row = (const NAMED(Vector)*)w;
  int64_t k = 0;
  for (; k + 4 <= hidden; k += 4, row += 8) {
    a0 += from[k] * row[0], a1 += from[k] * row[1], b0 += from[k + 1] * row[2], b1 += from[k + 1] * row[3];
    c0 += from[k + 2] * row[4], c1 += from[k + 2] * row[5];
    d0 += from[k + 3] * row[6], d1 += from[k + 3] * row[7];
  }
  for (; k < hidden; ++k, row += 2) a0 += from[k] * row[0], a1 += from[k] * row[1];
  NAMED(Vector)* sums = (NAMED(Vector)*)to;
  sums[0] = (a0 + b0) + (c0 + d0), sums[1] = (a1 + b1) + (c1 + d1);
}

// One row, where a panel's row is four vectors or more: even and odd k.
TARGET static void NAMED(RowByFours)(const Real* from, const Real* w, int64_t hidden, Real* to) {
  for (int64_t j = 0; j < NAMED(kVectors); j += 4) {
    NAMED(Vector) a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
    const NAMED(Vector)* row = (const NAMED(Vector)*)w + j;
    int64_t k = 0;
    for (; k + 2 <= hidden; k += 2, row += 2 * NAMED(kVectors)) {
      const NAMED(Vector)* odd = row + NAMED(kVectors);
      a0 += from[k] * row[0], a1 += from[k] * row[1], a2 += from[k] * row[2], a3 += from[k] * row[3];
      b0 += from[k + 1] * odd[0], b1 += from[k + 1] * odd[1];
      b2 += from[k + 1] * odd[2], b3 += from[k + 1] * odd[3];
    }
    if (k < hidden)
      a0 += from[k] * row[0], a1 += from[k] * row[1], a2 += from[k] * row[2], a3 += from[k] * row[3];
    NAMED(Vector)* sums = (NAMED(Vector)*)to + j;
    sums[0] = a0 + b0, sums[1] = a1 + b1, sums[2] = a2 + b2, sums[3] = a3 + b3;
  }
}

// Four rows, two vectors of each at once.
TARGET static void NAMED(FourRows)(const Real* const* from, const Real* w, int64_t hidden, Real* const* to) {
  const Real *p = from[0], *q = from[1], *r = from[2], *s = from[3];
  for (int64_t j = 0; j < NAMED(kVectors); j += 2) {
    NAMED(Vector) p0 = {0}, p1 = {0}, q0 = {0}, q1 = {0}, r0 = {0}, r1 = {0}, s0 = {0}, s1 = {0};
    const NAMED(Vector)* row = (const NAMED(Vector)*)w + j;
    for (int64_t k = 0; k < hidden; ++k, row += NAMED(kVectors)) {
      p0 += p[k] * row[0], p1 += p[k] * row[1], q0 += q[k] * row[0], q1 += q[k] * row[1];
      r0 += r[k] * row[0], r1 += r[k] * row[1], s0 += s[k] * row[0], s1 += s[k] * row[1];
    }
    NAMED(Vector)* of_p = (NAMED(Vector)*)to[0] + j, *of_q = (NAMED(Vector)*)to[1] + j;
    NAMED(Vector)* of_r = (NAMED(Vector)*)to[2] + j, *of_s = (NAMED(Vector)*)to[3] + j;
    of_p[0] = p0, of_p[1] = p1, of_q[0] = q0, of_q[1] = q1;
    of_r[0] = r0, of_r[1] = r1, of_s[0] = s0, of_s[1] = s1;
  }
}

// `count` rows of [.., padded] from `from`, at most four, into rows of [.., to_stride] at `to`.
TARGET static void NAMED(Rows)(int64_t count, const Real* from, int64_t padded, const Real* w, int64_t hidden,
                               Real* to, int64_t to_stride) {
  if (count == 1) {
    (NAMED(kVectors) == 2 ? NAMED(RowByPairs) : NAMED(RowByFours))(from, w, hidden, to);
    return;
  }
  const Real* rows[kMyccRowsAtOnce];
  Real* sums[kMyccRowsAtOnce];
  for (int64_t i = 0; i < kMyccRowsAtOnce; ++i) {
    const int64_t row = i < count ? i : count - 1;  // missing ones are the last one again
    rows[i] = from + row * padded;
    sums[i] = to + row * to_stride;
  }
  NAMED(FourRows)(rows, w, hidden, sums);
}

// The cells of recurrent.c for one type: included with Real, NAMED (which makes names of the type's own) and
// MATH (which makes those of libm) defined.

typedef Real NAMED(Vector) __attribute__((vector_size(32), aligned(4), may_alias));

// A row's recurrent products, `count` panels of a gate or more: to[j] = sum over k of h[k] * w[k, j].
#define MYCC_PRODUCT(name, attributes)                                                             \
  attributes static void NAMED(name)(const Real* h, const Real* w, int64_t hidden, int64_t panels, \
                                     Real* to) {                                                   \
    enum { kLanes = 32 / sizeof(Real), kBlock = 4 * kLanes };                                      \
    for (int64_t panel = 0; panel < panels; ++panel, w += hidden * kMyccPanel, to += kMyccPanel) { \
      for (int64_t j = 0; j < kMyccPanel; j += kBlock) {                                           \
        NAMED(Vector) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                      \
        for (int64_t k = 0; k < hidden; ++k) {                                                     \
          const NAMED(Vector)* row = (const NAMED(Vector)*)(w + k * kMyccPanel + j);               \
          s0 += h[k] * row[0], s1 += h[k] * row[1], s2 += h[k] * row[2], s3 += h[k] * row[3];      \
        }                                                                                          \
        NAMED(Vector)* block = (NAMED(Vector)*)(to + j);                                           \
        block[0] = s0, block[1] = s1, block[2] = s2, block[3] = s3;                                \
      }                                                                                            \
    }                                                                                              \
  }
MYCC_PRODUCT(ProductBase, )
MYCC_PRODUCT(ProductFma, __attribute__((target("avx2,fma"))))
#undef MYCC_PRODUCT

// The state of a call in one direction.
struct NAMED(State) {
  const struct Recurrence* r;
  int64_t direction;
  const Real* weights;  // of the direction
  Real *h, *c;          // [batch, hidden]
  Real* reset;          // [batch, hidden]: a GRU's hidden state times its reset gate
  Real* gates;          // [batch, gates, padded]
  void (*product)(const Real* h, const Real* w, int64_t hidden, int64_t panels, Real* to);
};

// x[j] = function(x[j]), clipped before where it is a gate. (ONNX does not say whether an LSTM's cell state
// is clipped as well; ONNX Runtime leaves it.)
static void NAMED(Activate)(const struct NAMED(State) * s, int which, Real* x) {
  const int64_t* activation = s->r->activations + 9 * s->direction + 3 * which;
  const Real a = (Real)DoubleOf(activation[1]), b = (Real)DoubleOf(activation[2]), clip = (Real)s->r->clip;
  const int64_t n = s->r->hidden;
  for (int64_t j = 0; clip > 0 && which < 2 && j < n; ++j)
    x[j] = x[j] > clip ? clip : x[j] < -clip ? -clip : x[j];
#define MYCC_FOR_EACH(value)                      \
  for (int64_t j = 0; j < n; ++j) x[j] = (value); \
  break
  switch (activation[0]) {
    case kMyccRelu: MYCC_FOR_EACH(x[j] < 0 ? 0 : x[j]);
    case kMyccTanh: NAMED(Tanhs)(n, x); break;
    case kMyccSigmoid: NAMED(Sigmoids)(n, x); break;
    case kMyccAffine: MYCC_FOR_EACH(a * x[j] + b);
    case kMyccLeakyRelu: MYCC_FOR_EACH(x[j] < 0 ? a * x[j] : x[j]);
    case kMyccThresholdedRelu: MYCC_FOR_EACH(x[j] < a ? 0 : x[j]);
    case kMyccScaledTanh: MYCC_FOR_EACH(a * MATH(tanh)(b * x[j]));
    case kMyccHardSigmoid: MYCC_FOR_EACH(a * x[j] + b < 0 ? 0 : a * x[j] + b > 1 ? 1 : a * x[j] + b);
    case kMyccElu: MYCC_FOR_EACH(x[j] < 0 ? a * MATH(expm1)(x[j]) : x[j]);
    case kMyccSoftsign: MYCC_FOR_EACH(x[j] / (1 + MATH(fabs)(x[j])));
    case kMyccSoftplus: MYCC_FOR_EACH((x[j] > 0 ? x[j] : 0) + MATH(log1p)(MATH(exp)(-MATH(fabs)(x[j]))));
  }
#undef MYCC_FOR_EACH
}

// The recurrent products of some gates of a row, from `from`.
static void NAMED(Multiply)(const struct NAMED(State) * s, const Real* from, int64_t gate, int64_t count,
                            Real* gates) {
  const struct Recurrence* r = s->r;
  s->product(from, s->weights + gate * r->hidden * r->padded, r->hidden, count * (r->padded / kMyccPanel),
             gates + gate * r->padded);
}

static void NAMED(Add)(int64_t n, const Real* from, Real* to) {
  for (int64_t j = 0; j < n; ++j) to[j] += from[j];
}

static void NAMED(AddProduct)(int64_t n, const Real* a, const Real* b, Real* to) {
  for (int64_t j = 0; j < n; ++j) to[j] += a[j] * b[j];
}

static void NAMED(RnnStep)(const struct NAMED(State) * s, const Real* x, int64_t row) {
  const int64_t n = s->r->hidden;
  Real *h = s->h + row * n, *gates = s->gates + row * s->r->padded;
  NAMED(Multiply)(s, h, 0, 1, gates);
  NAMED(Add)(n, x, gates);
  NAMED(Activate)(s, 0, gates);
  memcpy(h, gates, (size_t)n * sizeof(Real));
}

// The gates are z, r and h.
static void NAMED(GruStep)(const struct NAMED(State) * s, const Real* x, int64_t row) {
  const struct Recurrence* r = s->r;
  const int64_t n = r->hidden;
  Real *h = s->h + row * n, *reset = s->reset + row * n, *z = s->gates + row * 3 * r->padded;
  Real *gate_r = z + r->padded, *fresh = gate_r + r->padded;
  const int is_linear_first = r->bias != 0;
  NAMED(Multiply)(s, h, 0, is_linear_first ? 3 : 2, z);
  NAMED(Add)(n, x, z);
  NAMED(Add)(n, x + n, gate_r);
  NAMED(Activate)(s, 0, z);
  NAMED(Activate)(s, 0, gate_r);
  if (is_linear_first) {
    NAMED(Add)(n, (const Real*)r->bias + s->direction * n, fresh);
    for (int64_t j = 0; j < n; ++j) fresh[j] *= gate_r[j];
  } else {
    for (int64_t j = 0; j < n; ++j) reset[j] = gate_r[j] * h[j];
    NAMED(Multiply)(s, reset, 2, 1, z);
  }
  NAMED(Add)(n, x + 2 * n, fresh);
  NAMED(Activate)(s, 1, fresh);
  for (int64_t j = 0; j < n; ++j) h[j] = (1 - z[j]) * fresh[j] + z[j] * h[j];
}

// The gates are i, o, f and c, and so the peepholes.
static void NAMED(LstmStep)(const struct NAMED(State) * s, const Real* x, int64_t row) {
  const struct Recurrence* r = s->r;
  const int64_t n = r->hidden;
  Real *h = s->h + row * n, *c = s->c + row * n, *i = s->gates + row * 4 * r->padded;
  Real *o = i + r->padded, *f = o + r->padded, *fresh = f + r->padded;
  const Real* peepholes = r->peepholes == 0 ? 0 : (const Real*)r->peepholes + s->direction * 3 * n;
  NAMED(Multiply)(s, h, 0, 4, i);
  for (int64_t gate = 0; gate < 4; ++gate) NAMED(Add)(n, x + gate * n, i + gate * r->padded);
  if (peepholes != 0) NAMED(AddProduct)(n, peepholes, c, i);
  if (peepholes != 0) NAMED(AddProduct)(n, peepholes + 2 * n, c, f);
  NAMED(Activate)(s, 0, i);
  if (r->flags & kMyccInputForget) {
    for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
  } else {
    NAMED(Activate)(s, 0, f);
  }
  NAMED(Activate)(s, 1, fresh);
  for (int64_t j = 0; j < n; ++j) c[j] = f[j] * c[j] + i[j] * fresh[j];
  if (peepholes != 0) NAMED(AddProduct)(n, peepholes + n, c, o);
  NAMED(Activate)(s, 0, o);
  memcpy(h, c, (size_t)n * sizeof(Real));
  NAMED(Activate)(s, 2, h);
  for (int64_t j = 0; j < n; ++j) h[j] *= o[j];
}

// One step of one sequence, its `number`th; a reversed one begins with its last element.
static void NAMED(Step)(const struct NAMED(State) * s, int64_t row, int64_t number) {
  const struct Recurrence* r = s->r;
  const int64_t n = r->hidden, length = LengthOf(r, row);
  const int is_reversed = s->direction == 1 || (r->flags & kMyccFirstReversed);
  const int64_t t = is_reversed && number < length ? length - 1 - number : number;
  Real* y = (Real*)r->y + ((t * r->directions + s->direction) * r->batch + row) * n;
  if (number >= length) {
    memset(y, 0, (size_t)n * sizeof(Real));
    return;
  }
  const Real* x =
      (const Real*)r->products + ((t * r->batch + row) * r->directions + s->direction) * r->gates * n;
  if (r->cell == kMyccRnn) NAMED(RnnStep)(s, x, row);
  if (r->cell == kMyccGru) NAMED(GruStep)(s, x, row);
  if (r->cell == kMyccLstm) NAMED(LstmStep)(s, x, row);
  memcpy(y, s->h + row * n, (size_t)n * sizeof(Real));
}

static void NAMED(Start)(const void* from, int64_t direction, int64_t count, Real* state) {
  if (from == 0) {
    memset(state, 0, (size_t)count * sizeof(Real));
  } else {
    memcpy(state, (const Real*)from + direction * count, (size_t)count * sizeof(Real));
  }
}

static void NAMED(Run)(const struct Recurrence* r, Real* workspace) {
  const int64_t count = r->batch * r->hidden;
  for (int64_t direction = 0; direction < r->directions; ++direction) {
    struct NAMED(State) s = {r, direction, 0, 0, 0, 0, 0, HasFma() ? NAMED(ProductFma) : NAMED(ProductBase)};
    s.weights = (const Real*)r->weights + direction * r->gates * r->hidden * r->padded;
    s.h = workspace, s.c = s.h + count, s.reset = s.c + count, s.gates = s.reset + count;
    NAMED(Start)(r->h, direction, count, s.h);
    NAMED(Start)(r->c, direction, count, s.c);
    for (int64_t number = 0; number < r->steps; ++number) {
      for (int64_t row = 0; row < r->batch; ++row) NAMED(Step)(&s, row, number);
    }
    memcpy((Real*)r->last_h + direction * count, s.h, (size_t)count * sizeof(Real));
    if (r->last_c != 0) memcpy((Real*)r->last_c + direction * count, s.c, (size_t)count * sizeof(Real));
  }
}

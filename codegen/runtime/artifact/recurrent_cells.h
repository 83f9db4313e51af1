// A thread's part of the recurrence for one type and one instruction set. Besides the macros of
// recurrent_set.h, recurrent_products.h is included before.

// A thread's place: one step of one direction.
struct NAMED(Place) {
  const struct MyccRecurrence* r;
  const struct MyccRecurrentPart* part;
  int64_t direction, number;  // the sequences' `number`th step
  const Real* h;              // [batch, padded], before the step
  Real *next_h, *c, *reset;   // [batch, padded]
  Real* gates;                // [batch, gates, padded]
};

// One row of a place, from the thread's first column.
struct NAMED(Row) {
  const Real *x, *h, *peepholes, *bias;  // x[gates, hidden]; no peepholes or bias are NULL
  Real *next_h, *c, *reset, *gates;
  int64_t columns, real_columns;  // with and without those that pad the last panel
  const struct NAMED(Place) * place;
};

// The steps of a sequence.
static inline int64_t NAMED(LengthOf)(const struct MyccRecurrence* r, int64_t row) {
  if (r->lengths == 0 || r->lengths[row] > r->steps) return r->steps;
  return r->lengths[row] < 0 ? 0 : r->lengths[row];
}

// x[j] = function(x[j]), clipped before where it is a gate. (ONNX does not say whether an LSTM's cell state
// is clipped as well; ONNX Runtime leaves it.)
TARGET static void NAMED(Activate)(const struct NAMED(Place) * s, int which, int64_t n, Real* x) {
  const int64_t* activation = s->r->activations + 9 * s->direction + 3 * which;
  const Real a = (Real)MyccDoubleOf(activation[1]), b = (Real)MyccDoubleOf(activation[2]);
  const Real clip = (Real)s->r->clip;
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

// The recurrent products of some gates. A panel of weights is read for all rows before the next one.
TARGET static void NAMED(Multiply)(const struct NAMED(Place) * s, const Real* from, int64_t first_gate,
                                   int64_t last_gate) {
  const struct MyccRecurrence* r = s->r;
  const struct MyccRecurrentPart* part = s->part;
  const Real* weights = (const Real*)r->weights + s->direction * r->gates * r->padded * r->hidden;
  for (int64_t gate = first_gate; gate < last_gate; ++gate) {
    for (int64_t column = part->first_column; column < part->last_column; column += kMyccPanel) {
      const Real* w = weights + (gate * r->padded + column) * r->hidden;
      for (int64_t row = part->first_row; row < part->last_row; row += kMyccRowsAtOnce) {
        int64_t count = part->last_row - row < kMyccRowsAtOnce ? part->last_row - row : kMyccRowsAtOnce;
        int runs = 0;
        for (int64_t i = 0; i < count; ++i) runs |= s->number < NAMED(LengthOf)(r, row + i);
        if (!runs) continue;
        NAMED(Rows)
        (count, from + row * r->padded, r->padded, w, r->hidden,
         s->gates + (row * r->gates + gate) * r->padded + column, r->gates * r->padded);
      }
    }
  }
}

// Sums of elements, and of products. `n` may be no multiple of a vector.
TARGET static void NAMED(Add)(int64_t n, const Real* from, Real* to) {
  int64_t j = 0;
  for (; j + NAMED(kLanes) <= n; j += NAMED(kLanes))
    *(NAMED(Vector)*)(to + j) += *(const NAMED(Vector)*)(from + j);
  for (; j < n; ++j) to[j] += from[j];
}

TARGET static void NAMED(AddProduct)(int64_t n, const Real* a, const Real* b, Real* to) {
  int64_t j = 0;
  for (; j + NAMED(kLanes) <= n; j += NAMED(kLanes))
    *(NAMED(Vector)*)(to + j) += *(const NAMED(Vector)*)(a + j) * *(const NAMED(Vector)*)(b + j);
  for (; j < n; ++j) to[j] += a[j] * b[j];
}

// Whole vectors: rows of the state are padded.
#define MYCC_VECTORS(row, j) for (int64_t j = 0; j < (row)->columns; j += NAMED(kLanes))
#define MYCC_AT(pointer, j) (*(NAMED(Vector)*)((pointer) + j))
#define MYCC_READ(pointer, j) (*(const NAMED(Vector)*)((pointer) + j))

TARGET static void NAMED(RnnRow)(const struct NAMED(Row) * row) {
  NAMED(Add)(row->real_columns, row->x, row->gates);
  NAMED(Activate)(row->place, 0, row->columns, row->gates);
  memcpy(row->next_h, row->gates, (size_t)row->columns * sizeof(Real));
}

// The gates are z, r and h; z and r come first.
TARGET static void NAMED(GruGates)(const struct NAMED(Row) * row) {
  const struct MyccRecurrence* r = row->place->r;
  Real *z = row->gates, *gate_r = z + r->padded;
  NAMED(Add)(row->real_columns, row->x, z);
  NAMED(Add)(row->real_columns, row->x + r->hidden, gate_r);
  NAMED(Activate)(row->place, 0, row->columns, z);
  NAMED(Activate)(row->place, 0, row->columns, gate_r);
  if (row->bias == 0)
    MYCC_VECTORS(row, j) MYCC_AT(row->reset, j) = MYCC_READ(gate_r, j) * MYCC_READ(row->h, j);
}

TARGET static void NAMED(GruState)(const struct NAMED(Row) * row) {
  const struct MyccRecurrence* r = row->place->r;
  Real *z = row->gates, *gate_r = z + r->padded, *fresh = gate_r + r->padded;
  if (row->bias != 0) {
    NAMED(Add)(row->real_columns, row->bias, fresh);
    MYCC_VECTORS(row, j) MYCC_AT(fresh, j) *= MYCC_READ(gate_r, j);
  }
  NAMED(Add)(row->real_columns, row->x + 2 * r->hidden, fresh);
  NAMED(Activate)(row->place, 1, row->columns, fresh);
  MYCC_VECTORS(row, j) {
    const NAMED(Vector) kept = MYCC_READ(z, j);
    MYCC_AT(row->next_h, j) = ((Real)1 - kept) * MYCC_READ(fresh, j) + kept * MYCC_READ(row->h, j);
  }
}

// The gates are i, o, f and c, and so the peepholes.
TARGET static void NAMED(LstmRow)(const struct NAMED(Row) * row) {
  const struct MyccRecurrence* r = row->place->r;
  const int64_t n = row->columns, real = row->real_columns;
  Real *i = row->gates, *o = i + r->padded, *f = o + r->padded, *fresh = f + r->padded;
  for (int64_t gate = 0; gate < 4; ++gate) NAMED(Add)(real, row->x + gate * r->hidden, i + gate * r->padded);
  if (row->peepholes != 0) NAMED(AddProduct)(real, row->peepholes, row->c, i);
  if (row->peepholes != 0) NAMED(AddProduct)(real, row->peepholes + 2 * r->hidden, row->c, f);
  NAMED(Activate)(row->place, 0, n, i);
  if (r->flags & kMyccInputForget) {
    MYCC_VECTORS(row, j) MYCC_AT(f, j) = (Real)1 - MYCC_READ(i, j);
  } else {
    NAMED(Activate)(row->place, 0, n, f);
  }
  NAMED(Activate)(row->place, 1, n, fresh);
  MYCC_VECTORS(row, j)
  MYCC_AT(row->c, j) = MYCC_READ(f, j) * MYCC_READ(row->c, j) + MYCC_READ(i, j) * MYCC_READ(fresh, j);
  if (row->peepholes != 0) NAMED(AddProduct)(real, row->peepholes + r->hidden, row->c, o);
  NAMED(Activate)(row->place, 0, n, o);
  memcpy(row->next_h, row->c, (size_t)n * sizeof(Real));
  NAMED(Activate)(row->place, 2, n, row->next_h);
  MYCC_VECTORS(row, j) MYCC_AT(row->next_h, j) *= MYCC_READ(o, j);
}
#undef MYCC_VECTORS
#undef MYCC_AT
#undef MYCC_READ

typedef void NAMED(RowFunction)(const struct NAMED(Row) * row);

// Calls a function for each row that has not ended. A row's last function also writes the row's part of y.
TARGET static void NAMED(ForRows)(const struct NAMED(Place) * s, NAMED(RowFunction) * function, int is_last) {
  const struct MyccRecurrence* r = s->r;
  const int64_t column = s->part->first_column, n = r->hidden, d = s->direction;
  struct NAMED(Row) row = {.columns = s->part->last_column - column, .place = s};
  row.real_columns = row.columns < n - column ? row.columns : n - column;
  if (r->peepholes != 0) row.peepholes = (const Real*)r->peepholes + d * 3 * n + column;
  if (r->bias != 0) row.bias = (const Real*)r->bias + d * n + column;
  const int is_reversed = d == 1 || (r->flags & kMyccFirstReversed);
  for (int64_t b = s->part->first_row; b < s->part->last_row; ++b) {
    const int64_t length = NAMED(LengthOf)(r, b), state = b * r->padded + column;
    const int64_t t = is_reversed && s->number < length ? length - 1 - s->number : s->number;
    Real* y = (Real*)r->y + ((t * r->directions + d) * r->batch + b) * n + column;
    row.h = s->h + state, row.next_h = s->next_h + state;
    if (s->number >= length) {
      if (!is_last) continue;
      memcpy(row.next_h, row.h, (size_t)row.columns * sizeof(Real));
      memset(y, 0, (size_t)row.real_columns * sizeof(Real));
      continue;
    }
    row.x = (const Real*)r->products + ((t * r->batch + b) * r->directions + d) * r->gates * n + column;
    row.c = s->c + state, row.reset = s->reset + state;
    row.gates = s->gates + b * r->gates * r->padded + column;
    function(&row);
    if (is_last) memcpy(y, row.next_h, (size_t)row.real_columns * sizeof(Real));
  }
}

static void NAMED(Await)(const struct MyccRecurrentPart* part) {
  if (part->sharers > 1) MyccAwaitAll(part->barrier, part->sharers);
}

TARGET static void NAMED(Step)(const struct NAMED(Place) * s) {
  if (s->r->cell == kMyccGru) {
    const int is_linear_first = s->r->bias != 0;
    NAMED(Multiply)(s, s->h, 0, is_linear_first ? 3 : 2);
    NAMED(ForRows)(s, NAMED(GruGates), 0);
    if (!is_linear_first) {
      NAMED(Await)(s->part);
      NAMED(Multiply)(s, s->reset, 2, 3);
    }
    NAMED(ForRows)(s, NAMED(GruState), 1);
  } else {
    NAMED(Multiply)(s, s->h, 0, s->r->gates);
    NAMED(ForRows)(s, s->r->cell == kMyccRnn ? NAMED(RnnRow) : NAMED(LstmRow), 1);
  }
  NAMED(Await)(s->part);
}

TARGET void NAMED(MyccRecurrent)(const struct MyccRecurrence* r, const struct MyccRecurrentPart* part) {
  const int64_t rows = r->batch * r->padded;
  for (int64_t direction = part->first_direction; direction < part->last_direction; ++direction) {
    Real* h = (Real*)r->h + direction * 2 * rows;
    struct NAMED(Place) s = {.r = r, .part = part, .direction = direction};
    s.c = (Real*)r->c + direction * rows;
    s.reset = (Real*)r->reset + direction * rows;
    s.gates = (Real*)r->gate_sums + direction * rows * r->gates;
    for (; s.number < r->steps; ++s.number) {
      s.h = h + s.number % 2 * rows;
      s.next_h = h + (s.number + 1) % 2 * rows;
      NAMED(Step)(&s);
    }
  }
}

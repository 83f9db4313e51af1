// The types that the parts of the recurrent kernel share: recurrent.c divides a call among threads,
// recurrent_sets.c runs a thread's part of it with one of the instruction sets.
#pragma once

#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"
#include "codegen/runtime/artifact/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kMyccRowsAtOnce = 4 };  // rows of a batch that are multiplied by a panel of weights at once

// A call, as its attributes and shapes tell it. Its state in the workspace has rows of `padded` elements,
// whole panels: [directions, 2, batch, padded] of h, which steps read and write in turn, [directions, batch,
// padded] of c and of a GRU's reset hidden state, and [directions, batch, gates, padded].
struct MyccRecurrence {
  int64_t cell, flags;
  int64_t steps, batch, directions, gates, hidden, padded;
  double clip;  // 0: none
  const int64_t* activations;
  const void *products, *weights, *start_h, *start_c, *peepholes, *bias;
  const int32_t* lengths;
  void *y, *last_h, *last_c;
  void *h, *c, *reset, *gate_sums;
};

// The part of one thread: its rows and columns of some directions. `sharers` threads share the rows, and
// wait for each other.
struct MyccRecurrentPart {
  int64_t first_direction, last_direction;  // the first that is not its own any more, and so the others
  int64_t first_row, last_row;
  int64_t first_column, last_column;  // at multiples of a panel
  int64_t sharers;
  struct MyccBarrier* barrier;
};

static inline double MyccDoubleOf(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

typedef void MyccRecurrentRun(const struct MyccRecurrence* r, const struct MyccRecurrentPart* part);
MyccRecurrentRun MyccRecurrentF32Base, MyccRecurrentF64Base;
MyccRecurrentRun MyccRecurrentF32Fma, MyccRecurrentF64Fma;        // AVX2
MyccRecurrentRun MyccRecurrentF32Avx512, MyccRecurrentF64Avx512;  // AVX-512F

// The instruction sets, each better than the one before.
enum MyccRecurrentSet { kMyccRecurrentBase = 1, kMyccRecurrentFma, kMyccRecurrentAvx512 };
enum MyccRecurrentSet MyccBestRecurrentSet(void);

// A call with an instruction set that the processor has.
void MyccRecurrentWith(enum MyccRecurrentSet set, const int64_t* attributes, const struct MyccTensor* tensors,
                       uint8_t* workspace);

#ifdef __cplusplus
}
#endif

// RNN, GRU and LSTM: the recurrence, one step of all sequences of a batch after another. The hidden products
// dominate; they use the fused multiply-adds of AVX2 where the processor has them.
#include <cpuid.h>
#include <math.h>
#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"

// Whether the processor and the operating system have AVX2 and FMA.
static int DetectFma(void) {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 27 & 1) || !(ecx >> 12 & 1)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 6) == 6 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx >> 5 & 1);
}

static int HasFma(void) {
  enum { kUnknown, kHas, kLacks };
  static int known = kUnknown;
  int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (state == kUnknown) {
    state = DetectFma() ? kHas : kLacks;
    __atomic_store_n(&known, state, __ATOMIC_RELAXED);
  }
  return state == kHas;
}

// A call, as its attributes and shapes tell it.
struct Recurrence {
  int64_t cell, flags;
  int64_t steps, batch, directions, gates, hidden;
  int64_t padded;  // a gate's elements in a row of recurrent products
  double clip;     // 0: none
  const int64_t* activations;
  const void *products, *weights, *h, *c, *peepholes, *bias;
  const int32_t* lengths;
  void *y, *last_h, *last_c;
};

static double DoubleOf(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static struct Recurrence ReadCall(const int64_t* attributes, const struct MyccTensor* tensors) {
  struct Recurrence r;
  memset(&r, 0, sizeof r);
  r.cell = attributes[kMyccCell];
  r.flags = attributes[kMyccFlags];
  r.clip = DoubleOf(attributes[kMyccClip]);
  r.activations = attributes + kMyccActivations;
  const int64_t* shape = tensors[0].shape;
  r.steps = shape[0], r.batch = shape[1], r.directions = shape[2], r.gates = shape[3], r.hidden = shape[4];
  r.padded = tensors[1].shape[2] * kMyccPanel;
  const struct MyccTensor* next = tensors;
  r.products = next++->data;
  r.weights = next++->data;
  if (r.flags & kMyccHasLengths) r.lengths = next++->data;
  if (r.flags & kMyccHasH) r.h = next++->data;
  if (r.flags & kMyccHasC) r.c = next++->data;
  if (r.flags & kMyccHasPeepholes) r.peepholes = next++->data;
  if (r.flags & kMyccHasBias) r.bias = next++->data;
  r.y = next++->data;
  r.last_h = next++->data;
  if (r.cell == kMyccLstm) r.last_c = next++->data;
  return r;
}

// The steps of a sequence.
static int64_t LengthOf(const struct Recurrence* r, int64_t sequence) {
  if (r->lengths == 0 || r->lengths[sequence] > r->steps) return r->steps;
  return r->lengths[sequence] < 0 ? 0 : r->lengths[sequence];
}

// Four numbers at once: the activations of f32 would otherwise take longer than the products.
typedef float Floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(16)));
enum { kFloats = 4 };

// 2^n and exp(r) - 1, where x = n * log(2) + r and r is at most log(2) / 2: a series,
// whose next term is below the last bit. |x| is at most 87, or x is NaN, and then so is `rest`.
static void SplitExp(Floats x, Floats* power, Floats* rest) {
  const float magic = 12582912;  // 1.5 * 2^23: the lowest bits of a sum are those of the rounded number
  const Floats rounded = x * 1.44269504F + magic, n = rounded - magic;
  const Floats r = x - n * 0.693145752F - n * 1.42860677e-6F;  // log(2) in two parts, the first of 16 bits
  *power = (Floats)(((Ints)rounded << 23) + 0x3F800000);
  *rest =
      r +
      r * r * (0.5F + r * (1 / 6.0F + r * (1 / 24.0F + r * (1 / 120.0F + r * (1 / 720.0F + r / 5040.0F)))));
}

static Floats Within(Floats x, float most) {
  const Ints above = x > most, below = x < -most;
  const Ints limited =
      (above & (Ints)(Floats){most, most, most, most}) | (below & (Ints)(Floats){-most, -most, -most, -most});
  return (Floats)(limited | (~(above | below) & (Ints)x));
}

static Floats SigmoidOf(Floats x) {
  Floats power, rest;
  SplitExp(Within(-x, 87), &power, &rest);
  return 1.0F / (1.0F + (power * rest + power));
}

// e / (e + 2) with e = exp(2 x) - 1, which keeps its bits where x is small. Beyond 9.5 it is 1.
static Floats TanhOf(Floats x) {
  Floats power, rest;
  SplitExp(2.0F * Within(x, 9.5F), &power, &rest);
  const Floats e = power * rest + (power - 1.0F);
  return e / (e + 2.0F);
}

#define MYCC_ALL(name, function)                                                            \
  static void name(int64_t n, float* x) {                                                   \
    int64_t j = 0;                                                                          \
    for (; j + kFloats <= n; j += kFloats) *(Floats*)(x + j) = function(*(Floats*)(x + j)); \
    if (j == n) return;                                                                     \
    Floats part = {0};                                                                      \
    memcpy(&part, x + j, sizeof(float) * (n - j));                                          \
    part = function(part);                                                                  \
    memcpy(x + j, &part, sizeof(float) * (n - j));                                          \
  }
MYCC_ALL(SigmoidsF32, SigmoidOf)
MYCC_ALL(TanhsF32, TanhOf)
#undef MYCC_ALL

static void SigmoidsF64(int64_t n, double* x) {
  for (int64_t j = 0; j < n; ++j) x[j] = 1 / (1 + exp(-x[j]));
}

static void TanhsF64(int64_t n, double* x) {
  for (int64_t j = 0; j < n; ++j) x[j] = tanh(x[j]);
}

#define Real float
#define NAMED(name) name##F32
#define MATH(name) name##f
#include "codegen/runtime/artifact/recurrent_cells.h"
#undef Real
#undef NAMED
#undef MATH

#define Real double
#define NAMED(name) name##F64
#define MATH(name) name
#include "codegen/runtime/artifact/recurrent_cells.h"

int64_t MyccRecurrentWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  const struct Recurrence r = ReadCall(attributes, tensors);
  return r.batch * (3 * r.hidden + r.gates * r.padded) * tensors[0].element_bytes;
}

void MyccRecurrent(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  const struct Recurrence r = ReadCall(attributes, tensors);
  if (tensors[0].dtype == kMyccF64) {
    RunF64(&r, (double*)workspace);
  } else {
    RunF32(&r, (float*)workspace);
  }
}

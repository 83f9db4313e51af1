// DFT: transforms in f64. Lengths that are no power of two become a convolution of one that is. (Bluestein.)
#include <math.h>
#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"

struct Complex {
  double re, im;
};

static const double kPi = 3.14159265358979323846;

static struct Complex Times(struct Complex a, struct Complex b) {
  return (struct Complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// e to the power of -2 pi i k / n.
static struct Complex RootOfOne(int64_t k, int64_t n) {
  const double angle = 2 * kPi * (double)k / (double)n;
  return (struct Complex){cos(angle), -sin(angle)};
}

// The tables of a transform of `length`, and the room for it.
struct Plan {
  int64_t length, size;  // size: a power of two, the length itself or beyond twice of it
  struct Complex *roots, *chirp, *filter, *work, *signal;
};

static int64_t SizeFor(int64_t length) {
  const int64_t least = (length & (length - 1)) == 0 ? length : 2 * length;
  int64_t size = 1;
  while (size < least) size *= 2;
  return size;
}

// In place; the result is that of the sum over x[n] e^(-2 pi i k n / size).
static void TransformPowerOfTwo(const struct Plan* plan, struct Complex* x) {
  const int64_t size = plan->size;
  for (int64_t i = 1, j = 0; i < size; ++i) {
    int64_t bit = size / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) {
      const struct Complex element = x[i];
      x[i] = x[j];
      x[j] = element;
    }
  }
  for (int64_t half = 1; half < size; half *= 2) {
    const int64_t stride = size / (2 * half);
    for (int64_t begin = 0; begin < size; begin += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        struct Complex *a = &x[begin + k], *b = &x[begin + k + half];
        const struct Complex turned = Times(*b, plan->roots[k * stride]), first = *a;
        *a = (struct Complex){first.re + turned.re, first.im + turned.im};
        *b = (struct Complex){first.re - turned.re, first.im - turned.im};
      }
    }
  }
}

static struct Plan MakePlan(int64_t length, uint8_t* workspace) {
  struct Plan plan = {length, SizeFor(length), 0, 0, 0, 0, 0};
  plan.roots = (struct Complex*)workspace;
  plan.chirp = plan.roots + plan.size;
  plan.filter = plan.chirp + plan.size;
  plan.work = plan.filter + plan.size;
  plan.signal = plan.work + plan.size;
  for (int64_t k = 0; k < plan.size; ++k) plan.roots[k] = RootOfOne(k, plan.size);
  if (plan.size == length) return plan;
  memset(plan.filter, 0, (size_t)plan.size * sizeof(struct Complex));
  for (int64_t k = 0, square = 0; k < length; square = (square + 2 * k + 1) % (2 * length), ++k) {
    plan.chirp[k] = RootOfOne(square, 2 * length);
    plan.filter[k] = (struct Complex){plan.chirp[k].re, -plan.chirp[k].im};
    if (k > 0) plan.filter[plan.size - k] = plan.filter[k];
  }
  TransformPowerOfTwo(&plan, plan.filter);
  return plan;
}

// Transforms plan->signal in place.
static void TransformSignal(const struct Plan* plan) {
  const int64_t size = plan->size, length = plan->length;
  if (size == length) {
    TransformPowerOfTwo(plan, plan->signal);
    return;
  }
  for (int64_t k = 0; k < length; ++k) plan->work[k] = Times(plan->signal[k], plan->chirp[k]);
  memset(plan->work + length, 0, (size_t)(size - length) * sizeof(struct Complex));
  TransformPowerOfTwo(plan, plan->work);
  // The inverse is the transform of the conjugates, conjugated.
  for (int64_t k = 0; k < size; ++k) {
    const struct Complex product = Times(plan->work[k], plan->filter[k]);
    plan->work[k] = (struct Complex){product.re, -product.im};
  }
  TransformPowerOfTwo(plan, plan->work);
  for (int64_t k = 0; k < length; ++k) {
    const struct Complex sum = {plan->work[k].re / (double)size, -plan->work[k].im / (double)size};
    plan->signal[k] = Times(sum, plan->chirp[k]);
  }
}

static double NumberAt(const struct MyccTensor* tensor, int64_t i) {
  return tensor->dtype == kMyccF64 ? ((const double*)tensor->data)[i]
                                   : (double)((const float*)tensor->data)[i];
}

static void PutNumber(const struct MyccTensor* tensor, int64_t i, double value) {
  if (tensor->dtype == kMyccF64) {
    ((double*)tensor->data)[i] = value;
  } else {
    ((float*)tensor->data)[i] = (float)value;
  }
}

// A signal of x[outer, n, inner, parts]; one half of a spectrum is completed by its conjugates.
static void ReadSignal(const int64_t* attributes, const struct MyccTensor* x, int64_t outer, int64_t inner,
                       const struct Plan* plan) {
  const int64_t n = x->shape[1], parts = x->shape[3], length = plan->length;
  const int is_half = attributes[kMyccDftInverse] && attributes[kMyccDftOneSided];
  const int64_t most = is_half ? length / 2 + 1 : length;
  for (int64_t k = 0; k < length; ++k) {
    const int64_t at = k < most ? k : length - k, place = ((outer * n + at) * x->shape[2] + inner) * parts;
    struct Complex value = {0, 0};
    if (at < n) value.re = NumberAt(x, place);
    if (at < n && parts == 2) value.im = NumberAt(x, place + 1);
    if (k >= most) value.im = -value.im;
    if (is_half && (k == 0 || 2 * k == length)) value.im = 0;
    if (attributes[kMyccDftInverse]) value.im = -value.im;
    plan->signal[k] = value;
  }
}

int64_t MyccDftWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  (void)tensors;
  return 5 * SizeFor(attributes[kMyccDftLength]) * (int64_t)sizeof(struct Complex);
}

void MyccDft(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  const struct MyccTensor *x = &tensors[0], *y = &tensors[1];
  const struct Plan plan = MakePlan(attributes[kMyccDftLength], workspace);
  const int64_t count = y->shape[1], inners = y->shape[2], parts = y->shape[3];
  const double scale = attributes[kMyccDftInverse] ? 1 / (double)plan.length : 1;
  const double turn = attributes[kMyccDftInverse] ? -scale : scale;
  for (int64_t outer = 0; outer < y->shape[0]; ++outer) {
    for (int64_t inner = 0; inner < inners; ++inner) {
      ReadSignal(attributes, x, outer, inner, &plan);
      TransformSignal(&plan);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t place = ((outer * count + k) * inners + inner) * parts;
        PutNumber(y, place, scale * plan.signal[k].re);
        if (parts == 2) PutNumber(y, place + 1, turn * plan.signal[k].im);
      }
    }
  }
}

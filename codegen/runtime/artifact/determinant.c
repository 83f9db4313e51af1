// Det: elimination with the largest pivot of each column, in f64.
#include <math.h>
#include <string.h>

#include "codegen/runtime/artifact/library_kernels.h"

static void SwapRows(double* a, double* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double element = a[i];
    a[i] = b[i];
    b[i] = element;
  }
}

static double Determinant(double* m, int64_t n) {
  double product = 1;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < n; ++row) {
      if (fabs(m[row * n + column]) > fabs(m[pivot * n + column])) pivot = row;
    }
    if (pivot != column) {
      SwapRows(m + pivot * n, m + column * n, n);
      product = -product;
    }
    const double divisor = m[column * n + column];
    product *= divisor;
    if (divisor == 0) return product;
    for (int64_t row = column + 1; row < n; ++row) {
      const double factor = m[row * n + column] / divisor;
      for (int64_t i = column + 1; i < n; ++i) m[row * n + i] -= factor * m[column * n + i];
    }
  }
  return product;
}

int64_t MyccDetWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  (void)attributes;
  const int64_t n = tensors[0].shape[tensors[0].ndim - 1];
  return n * n * (int64_t)sizeof(double);
}

void MyccDet(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  (void)attributes;
  const struct MyccTensor *x = &tensors[0], *y = &tensors[1];
  const int64_t n = x->shape[x->ndim - 1];
  double* matrix = (double*)workspace;
  int64_t count = 1;
  for (int64_t i = 0; i < y->ndim; ++i) count *= y->shape[i];
  for (int64_t i = 0; i < count; ++i) {
    if (x->dtype == kMyccF64) {
      memcpy(matrix, (const double*)x->data + i * n * n, (size_t)(n * n) * sizeof(double));
      ((double*)y->data)[i] = Determinant(matrix, n);
    } else {
      for (int64_t k = 0; k < n * n; ++k) matrix[k] = ((const float*)x->data)[i * n * n + k];
      ((float*)y->data)[i] = (float)Determinant(matrix, n);
    }
  }
}

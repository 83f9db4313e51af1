/* The C interface of artifacts, from C: the headers compile, two libraries link together, calls compute, and
 * wrong calls are refused with the argument's name. Linked with two modules, `first` and `second`, of the
 * same functions. */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "first.h"
#include "second.h"

static int failures = 0;

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

#define EXPECT_ERROR(text, words)                                                                            \
  do {                                                                                                       \
    if (strstr((text), (words)) == NULL) {                                                                   \
      fprintf(stderr, "%s:%d: error is `%s`, expected to hold `%s`\n", __FILE__, __LINE__, (text), (words)); \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

typedef int32_t (*Function)(DLTensor** args, int32_t num_args, void* stream);

static DLTensor F32(float* data, int64_t* shape, int ndim) {
  DLTensor tensor = {data, {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, shape, NULL, 0};
  return tensor;
}

static DLTensor Bytes(void* data, int64_t* shape) {
  DLTensor tensor = {data, {kDLCPU, 0}, 1, {kDLUInt, 8, 1}, shape, NULL, 0};
  return tensor;
}

/* The "packed_bytes" of the first const argument of a function, out of the library's JSON. */
static int64_t PackedBytes(const char* json, const char* function) {
  char name[80];
  snprintf(name, sizeof name, "\"name\": \"%s\"", function);
  const char* at = strstr(json, name);
  at = at == NULL ? NULL : strstr(at, "\"packed_bytes\": ");
  return at == NULL ? 0 : atoll(at + strlen("\"packed_bytes\": "));
}

/* y = x * w by columns, through one of the modules. */
static void TestScale(Function scale, Function pack, const char* json, const char* symbol) {
  float x[15], w[5], y[15];
  for (int i = 0; i < 15; ++i) x[i] = (float)i;
  for (int j = 0; j < 5; ++j) w[j] = (float)(j + 1);
  int64_t matrix[] = {3, 5}, vector[] = {5}, packed_shape[] = {PackedBytes(json, symbol)};
  EXPECT(packed_shape[0] > 64);
  void* buffer = aligned_alloc(64, (size_t)(packed_shape[0] + 63) / 64 * 64);
  DLTensor tx = F32(x, matrix, 2), tw = F32(w, vector, 1), ty = F32(y, matrix, 2),
           packed = Bytes(buffer, packed_shape);
  DLTensor* pack_args[] = {&tw, &packed};
  DLTensor* args[] = {&tx, &packed, &ty};
  EXPECT(pack(pack_args, 2, NULL) == 0);
  EXPECT(scale(args, 3, NULL) == 0);
  for (int i = 0; i < 15; ++i) EXPECT(y[i] == x[i] * w[i % 5]);
  free(buffer);
}

static void TestRefusals(void) {
  float x[15] = {0}, y[15] = {0};
  int64_t matrix[] = {3, 5}, transposed[] = {5, 3}, vector[] = {5};
  DLTensor tx = F32(x, matrix, 2), tw = F32(x, vector, 1), ty = F32(y, matrix, 2);
  DLTensor* args[] = {&tx, &tw, &ty};
  EXPECT(first_scale(args, 2, NULL) != 0);
  EXPECT_ERROR(first_last_error(), "first_scale: 2 arguments, expected 3");
  EXPECT(first_scale(args, 3, NULL) != 0);
  EXPECT_ERROR(first_last_error(),
               "args[1] `w`: is of type f32, expected u8, the packed buffer that first_scale_pack fills");
  tx.shape = transposed;
  EXPECT(first_scale(args, 3, NULL) != 0);
  EXPECT_ERROR(first_last_error(), "args[0] `x`: has shape [5,3], expected [3,5]");
  EXPECT(second_last_error()[0] == 0); /* each module has its own */
  EXPECT(first_prepare(3) != 0);
  EXPECT_ERROR(first_last_error(), "device 3, expected 0");
}

static void TestEmptyTensors(void) {
  float y[4] = {1, 1, 1, 1};
  int64_t none[] = {0, 4}, four[] = {4};
  DLTensor tx = F32(NULL, none, 2), ty = F32(y, four, 1), tz = F32(NULL, none, 2);
  DLTensor* args[] = {&tx, &ty, &tz};
  EXPECT(first_nothing(args, 3, NULL) == 0);
  for (int i = 0; i < 4; ++i) EXPECT(y[i] == 0);
}

/* Every thread calls the same function with tensors of its own. */
static void* CallTotal(void* arg) {
  const float value = *(const float*)arg;
  float x[77], s;
  for (int i = 0; i < 77; ++i) x[i] = value;
  int64_t matrix[] = {7, 11};
  DLTensor tx = F32(x, matrix, 2), ts = F32(&s, NULL, 0);
  DLTensor* args[] = {&tx, &ts};
  for (int i = 0; i < 200; ++i) {
    s = -1;
    if (first_total(args, 2, NULL) != 0 || fabsf(s - 77 * value) > 1e-3f) return "wrong";
  }
  return NULL;
}

static void TestReentrant(void) {
  pthread_t threads[4];
  float values[] = {1, 2, 3, 4};
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, CallTotal, &values[i]);
  for (int i = 0; i < 4; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    EXPECT(result == NULL);
  }
}

static const int kRows = 512, kDepth = 300, kColumns = 256;

/* Row i of x holds i, all of w is 1, so that row i of y is 300 * i. Returns how many elements are wrong. */
static int CallLarge(float* x, void* packed, float* y) {
  int64_t x_shape[] = {kRows, kDepth}, y_shape[] = {kRows, kColumns};
  int64_t packed_shape[] = {PackedBytes(first_json(), "first_large")};
  for (int i = 0; i < kRows * kColumns; ++i) y[i] = -1;
  DLTensor tx = F32(x, x_shape, 2), tw = Bytes(packed, packed_shape), ty = F32(y, y_shape, 2);
  DLTensor* args[] = {&tx, &tw, &ty};
  if (first_large(args, 3, NULL) != 0) return -1;
  int wrong = 0;
  for (int i = 0; i < kRows * kColumns; ++i) wrong += y[i] != (float)(kDepth * (i / kColumns));
  return wrong;
}

/* The host program's OpenMP: calls from inside its teams, nested teams, and a pool that stays as it was. */
static void TestOpenMp(void) {
  float* x = malloc(sizeof(float) * (size_t)(kRows * kDepth));
  float* w = malloc(sizeof(float) * (size_t)(kDepth * kColumns));
  for (int i = 0; i < kRows * kDepth; ++i) x[i] = (float)(i / kDepth);
  for (int i = 0; i < kDepth * kColumns; ++i) w[i] = 1;
  int64_t w_shape[] = {kDepth, kColumns}, packed_shape[] = {PackedBytes(first_json(), "first_large")};
  void* packed = aligned_alloc(64, (size_t)(packed_shape[0] + 63) / 64 * 64);
  DLTensor tw = F32(w, w_shape, 2), tp = Bytes(packed, packed_shape);
  DLTensor* pack_args[] = {&tw, &tp};
  EXPECT(first_large_pack(pack_args, 2, NULL) == 0);
  for (int levels = 1; levels <= 2; ++levels) {
    omp_set_max_active_levels(levels);
    for (int team = 1; team <= 5; team += 2) {
      omp_set_num_threads(team);
      int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
      {
        float* y = malloc(sizeof(float) * (size_t)(kRows * kColumns));
        wrong += CallLarge(x, packed, y);
        free(y);
      }
      EXPECT(wrong == 0);
      EXPECT(omp_get_max_threads() == team);
      EXPECT(omp_get_max_active_levels() == levels);
    }
  }
  free(x);
  free(w);
  free(packed);
}

int main(void) {
  EXPECT(first_prepare(0) == 0);
  EXPECT(strstr(first_json(), "\"module\": \"first\"") != NULL);
  EXPECT(strstr(second_json(), "\"module\": \"second\"") != NULL);
  TestScale(first_scale, first_scale_pack, first_json(), "first_scale");
  TestScale(second_scale, second_scale_pack, second_json(), "second_scale");
  TestRefusals();
  TestEmptyTensors();
  TestReentrant();
  TestOpenMp();
  if (failures == 0) printf("artifact_abi_test: passed\n");
  return failures != 0;
}

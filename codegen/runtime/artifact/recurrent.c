// RNN, GRU and LSTM: the recurrence, one step of all sequences of a batch after another. This part reads a
// call, and divides it among the threads: by directions, by rows of the batch, and by columns, whose threads
// wait for each other in every step. Every element is computed alike however the call is divided.
#include "codegen/runtime/artifact/recurrent.h"

#include <cpuid.h>

static struct MyccRecurrence ReadCall(const int64_t* attributes, const struct MyccTensor* tensors) {
  struct MyccRecurrence r;
  memset(&r, 0, sizeof r);
  r.cell = attributes[kMyccCell];
  r.flags = attributes[kMyccFlags];
  r.clip = MyccDoubleOf(attributes[kMyccClip]);
  r.activations = attributes + kMyccActivations;
  const int64_t* shape = tensors[0].shape;
  r.steps = shape[0], r.batch = shape[1], r.directions = shape[2], r.gates = shape[3], r.hidden = shape[4];
  r.padded = tensors[1].shape[2] * kMyccPanel;
  const struct MyccTensor* next = tensors;
  r.products = next++->data;
  r.weights = next++->data;
  if (r.flags & kMyccHasLengths) r.lengths = next++->data;
  if (r.flags & kMyccHasH) r.start_h = next++->data;
  if (r.flags & kMyccHasC) r.start_c = next++->data;
  if (r.flags & kMyccHasPeepholes) r.peepholes = next++->data;
  if (r.flags & kMyccHasBias) r.bias = next++->data;
  r.y = next++->data;
  r.last_h = next++->data;
  if (r.cell == kMyccLstm) r.last_c = next++->data;
  return r;
}

// The best instruction set that the processor and the operating system have.
static enum MyccRecurrentSet DetectSet(void) {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 27 & 1) || !(ecx >> 12 & 1))
    return kMyccRecurrentBase;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx >> 5 & 1))
    return kMyccRecurrentBase;
  return (low & 0xE0) == 0xE0 && (ebx >> 16 & 1) ? kMyccRecurrentAvx512 : kMyccRecurrentFma;
}

enum MyccRecurrentSet MyccBestRecurrentSet(void) {
  static int known;  // 0: not yet
  int set = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (set == 0) {
    set = DetectSet();
    __atomic_store_n(&known, set, __ATOMIC_RELAXED);
  }
  return (enum MyccRecurrentSet)set;
}

static MyccRecurrentRun* RunOf(enum MyccRecurrentSet set, int is_f64) {
  switch (set) {
    case kMyccRecurrentAvx512: return is_f64 ? MyccRecurrentF64Avx512 : MyccRecurrentF32Avx512;
    case kMyccRecurrentFma: return is_f64 ? MyccRecurrentF64Fma : MyccRecurrentF32Fma;
    default: return is_f64 ? MyccRecurrentF64Base : MyccRecurrentF32Base;
  }
}

// How a call is divided: the numbers of threads for its directions, its rows, and its columns.
struct Division {
  int64_t directions, rows, columns;
};

static int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

static int64_t RowGroups(const struct MyccRecurrence* r) { return DivideUp(r->batch, kMyccRowsAtOnce); }

// About the nanoseconds of a call: panels of weights are read and multiplied, elements activated, and threads
// wait for each other. Waits take less than half of this if nothing else runs.
static double CostOf(const struct MyccRecurrence* r, struct Division division, int64_t element_bytes) {
  enum { kCacheOfCore = 1 << 20 };
  const double vectors = (double)(r->gates * r->hidden * kMyccPanel * element_bytes) / 64;  // of a panel
  const int64_t panels = DivideUp(r->padded / kMyccPanel, division.columns);
  const int64_t groups = DivideUp(RowGroups(r), division.rows);
  const int64_t rows = r->batch < groups * kMyccRowsAtOnce ? r->batch : groups * kMyccRowsAtOnce;
  // The first group of rows reads the weights, the others have them in the nearest cache.
  const double read = 64 * vectors * (double)panels > kCacheOfCore ? 0.65 : 0.35;
  const double multiplied = rows > 1 ? 0.65 : 0.2;
  const double products = (read > multiplied ? read : multiplied) + (double)(groups - 1) * multiplied;
  const double activated = 10 * (double)(rows * (r->gates + 1) * element_bytes / 4);
  const int64_t waits = division.columns == 1 ? 0 : r->cell == kMyccGru && r->bias == 0 ? 2 : 1;
  const double step =
      (double)panels * (vectors * products + activated) + (double)(waits * (500 + 100 * division.columns));
  return step * (double)(r->steps * DivideUp(r->directions, division.directions));
}

// The division that costs the least; among equals, the one whose cores read the weights of fewer directions.
static struct Division Divide(const struct MyccRecurrence* r, int64_t threads, int64_t element_bytes) {
  struct Division best = {1, 1, 1};
  double least = CostOf(r, best, element_bytes);
  const int64_t groups = RowGroups(r), panels = r->padded / kMyccPanel;
  for (int64_t directions = r->directions; directions > 0; --directions) {
    const int64_t of_direction = threads / directions;
    for (int64_t rows = of_direction < groups ? of_direction : groups; rows > 0; rows /= 2) {
      const int64_t of_row = of_direction / rows;
      for (int64_t columns = of_row < panels ? of_row : panels; columns > 0; columns /= 2) {
        const struct Division division = {directions, rows, columns};
        const double cost = CostOf(r, division, element_bytes);
        if (cost < least) best = division, least = cost;
      }
    }
  }
  return best;
}

// Whether a team of a few threads would gain more than it takes to start one.
static int IsWorthATeam(const struct MyccRecurrence* r, int64_t element_bytes) {
  enum { kThreads = 8, kStart = 2000 };
  const double alone = CostOf(r, (struct Division){1, 1, 1}, element_bytes);
  return alone - CostOf(r, Divide(r, kThreads, element_bytes), element_bytes) > kStart;
}

struct Work {
  const struct MyccRecurrence* r;
  MyccRecurrentRun* run;
  struct MyccBarrier* barriers;  // of each direction and group of rows
  int64_t element_bytes;
};

// Part `number` of `count` of n: from `first` to `last`.
static void Share(int64_t n, int64_t number, int64_t count, int64_t* first, int64_t* last) {
  *first = n * number / count;
  *last = n * (number + 1) / count;
}

static void RunThread(void* data, int64_t thread, int64_t threads) {
  const struct Work* work = data;
  const struct MyccRecurrence* r = work->r;
  const struct Division division = Divide(r, threads, work->element_bytes);
  if (thread >= division.directions * division.rows * division.columns) return;
  struct MyccRecurrentPart part = {.sharers = division.columns};
  const int64_t column = thread % division.columns, team = thread / division.columns;
  const int64_t row = team % division.rows, direction = team / division.rows;
  part.barrier = &work->barriers[team];
  Share(r->directions, direction, division.directions, &part.first_direction, &part.last_direction);
  Share(RowGroups(r), row, division.rows, &part.first_row, &part.last_row);
  part.first_row *= kMyccRowsAtOnce, part.last_row *= kMyccRowsAtOnce;
  if (part.last_row > r->batch) part.last_row = r->batch;
  Share(r->padded / kMyccPanel, column, division.columns, &part.first_column, &part.last_column);
  part.first_column *= kMyccPanel, part.last_column *= kMyccPanel;
  work->run(r, &part);
}

// Rows of the state are padded, those of the caller are not.
static void Start(const struct MyccRecurrence* r, int64_t direction, const void* from, int64_t element_bytes,
                  uint8_t* state) {
  const int64_t to_bytes = r->padded * element_bytes, from_bytes = r->hidden * element_bytes;
  memset(state, 0, (size_t)(r->batch * to_bytes));
  for (int64_t row = 0; from != 0 && row < r->batch; ++row)
    memcpy(state + row * to_bytes, (const uint8_t*)from + (direction * r->batch + row) * from_bytes,
           (size_t)from_bytes);
}

static void Finish(const struct MyccRecurrence* r, int64_t direction, const uint8_t* state,
                   int64_t element_bytes, void* to) {
  const int64_t from_bytes = r->padded * element_bytes, to_bytes = r->hidden * element_bytes;
  for (int64_t row = 0; to != 0 && row < r->batch; ++row)
    memcpy((uint8_t*)to + (direction * r->batch + row) * to_bytes, state + row * from_bytes,
           (size_t)to_bytes);
}

static int64_t StateBytes(const struct MyccRecurrence* r, int64_t element_bytes) {
  return r->batch * r->padded * element_bytes;
}

int64_t MyccRecurrentWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  const struct MyccRecurrence r = ReadCall(attributes, tensors);
  const int64_t barriers = r.directions * RowGroups(&r) * (int64_t)sizeof(struct MyccBarrier);
  return _Alignof(struct MyccBarrier) + barriers +
         r.directions * (4 + r.gates) * StateBytes(&r, tensors[0].element_bytes);
}

void MyccRecurrentWith(enum MyccRecurrentSet set, const int64_t* attributes, const struct MyccTensor* tensors,
                       uint8_t* workspace) {
  struct MyccRecurrence r = ReadCall(attributes, tensors);
  const int64_t element_bytes = tensors[0].element_bytes, bytes = StateBytes(&r, element_bytes);
  const uint64_t alignment = _Alignof(struct MyccBarrier);
  workspace = (uint8_t*)(((uintptr_t)workspace + alignment - 1) / alignment * alignment);
  const int64_t teams = r.directions * RowGroups(&r);
  struct Work work = {&r, RunOf(set, tensors[0].dtype == kMyccF64), (struct MyccBarrier*)workspace,
                      element_bytes};
  memset(work.barriers, 0, (size_t)teams * sizeof *work.barriers);
  uint8_t* h = workspace + teams * (int64_t)sizeof *work.barriers;
  uint8_t *c = h + r.directions * 2 * bytes, *reset = c + r.directions * bytes;
  r.h = h, r.c = c, r.reset = reset, r.gate_sums = reset + r.directions * bytes;
  for (int64_t d = 0; d < r.directions; ++d) {
    Start(&r, d, r.start_h, element_bytes, h + d * 2 * bytes);
    Start(&r, d, r.start_c, element_bytes, c + d * bytes);
  }
  if (IsWorthATeam(&r, element_bytes)) {
    MyccInParallel(RunThread, &work);
  } else {
    RunThread(&work, 0, 1);
  }
  for (int64_t d = 0; d < r.directions; ++d) {
    Finish(&r, d, h + (d * 2 + r.steps % 2) * bytes, element_bytes, r.last_h);
    Finish(&r, d, c + d * bytes, element_bytes, r.last_c);
  }
}

void MyccRecurrent(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  MyccRecurrentWith(MyccBestRecurrentSet(), attributes, tensors, workspace);
}

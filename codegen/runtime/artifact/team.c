// One team of threads for all kernels of a model. A kernel forks and joins a team for each of its parallel
// loops. In a model the team is forked once for a call: its threads wait between the loops, first spinning,
// because the next loop is a microsecond away, then asleep.
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "codegen/runtime/artifact/artifact.h"
#include "codegen/runtime/artifact/parallel.h"

int omp_get_num_threads(void);
int omp_get_thread_num(void);
long syscall(long number, ...);

typedef void Region(void* data);

// The linker gives kernels the first name where they call GOMP_parallel, and the second is libgomp's.
void __wrap_GOMP_parallel(Region* region, void* data, unsigned threads, unsigned flags);
void __real_GOMP_parallel(Region* region, void* data, unsigned threads, unsigned flags);

enum { kSpins = 4000, kLine = 64 };

struct Team {
  MyccBody* body;
  void* const* tensors;
  uint8_t *shared, *threads;
  int size;
  // Thread 0 writes these and the others read them: the loop to run, and its number. kStop ends the team.
  Region* region __attribute__((aligned(kLine)));
  void* data;
  uint32_t round;
  uint32_t asleep;  // threads that wait for the next round asleep
  uint32_t waits;   // whether thread 0 waits for the others asleep
  // The others write this: the number of threads that have not finished the round.
  int32_t running __attribute__((aligned(kLine)));
};

// The team whose thread 0 this thread is, or NULL.
static __thread struct Team* own_team;

static void Pause(void) { __builtin_ia32_pause(); }

static void StartRound(struct Team* team, Region* region, void* data) {
  team->region = region;
  team->data = data;
  __atomic_store_n(&team->running, team->size - 1, __ATOMIC_RELAXED);
  // Sequentially consistent with the other side's count of those asleep: one of the two sees the other.
  __atomic_fetch_add(&team->round, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&team->asleep, __ATOMIC_SEQ_CST) > 0)
    syscall(SYS_futex, &team->round, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

static void AwaitRound(struct Team* team, uint32_t last) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (__atomic_load_n(&team->round, __ATOMIC_ACQUIRE) != last) return;
    Pause();
  }
  __atomic_fetch_add(&team->asleep, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&team->round, __ATOMIC_SEQ_CST) == last)
    syscall(SYS_futex, &team->round, FUTEX_WAIT_PRIVATE, last, NULL, NULL, 0);
  __atomic_fetch_sub(&team->asleep, 1, __ATOMIC_RELAXED);
}

// The others finish soon after thread 0, unless they were taken off their core. Then it gives them its own:
// a thread that only yields stays ready to run, and takes turns with other processes.
static void AwaitOthers(struct Team* team) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (__atomic_load_n(&team->running, __ATOMIC_ACQUIRE) == 0) return;
    Pause();
  }
  __atomic_store_n(&team->waits, 1, __ATOMIC_SEQ_CST);
  for (int32_t left; (left = __atomic_load_n(&team->running, __ATOMIC_SEQ_CST)) > 0;)
    syscall(SYS_futex, &team->running, FUTEX_WAIT_PRIVATE, left, NULL, NULL, 0);
  __atomic_store_n(&team->waits, 0, __ATOMIC_RELAXED);
}

// The team outlives this, even after the last thread has finished: all return before it ends.
static void FinishRound(struct Team* team) {
  if (__atomic_sub_fetch(&team->running, 1, __ATOMIC_SEQ_CST) == 0 &&
      __atomic_load_n(&team->waits, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &team->running, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void Serve(struct Team* team) {
  for (uint32_t last = 0;; ++last) {
    AwaitRound(team, last);
    Region* region = team->region;
    if (region == NULL) return;
    region(team->data);
    FinishRound(team);
  }
}

// Every thread of the team runs this. Thread 0 runs the program.
static void TeamMember(void* data) {
  struct Team* team = data;
  if (omp_get_thread_num() != 0) {
    Serve(team);
    return;
  }
  team->size = omp_get_num_threads();
  struct Team* const outer = own_team;
  own_team = team;
  team->body(team->tensors, team->shared, team->threads);
  own_team = outer;
  if (team->size > 1) StartRound(team, NULL, NULL);
}

void MyccRunInTeam(MyccBody* body, void* const* tensors, uint8_t* shared, uint8_t* threads) {
  struct Team team = {.body = body, .tensors = tensors, .shared = shared, .threads = threads};
  __real_GOMP_parallel(TeamMember, &team, 0, 0);
}

void __wrap_GOMP_parallel(Region* region, void* data, unsigned threads, unsigned flags) {
  struct Team* team = own_team;
  if (team == NULL) {
    __real_GOMP_parallel(region, data, threads, flags);
    return;
  }
  if (team->size > 1) StartRound(team, region, data);
  region(data);
  if (team->size > 1) AwaitOthers(team);
}

struct SharedWork {
  MyccWork* work;
  void* data;
};

static void RunWork(void* data) {
  const struct SharedWork* shared = data;
  shared->work(shared->data, omp_get_thread_num(), omp_get_num_threads());
}

void MyccInParallel(MyccWork* work, void* data) {
  struct SharedWork shared = {work, data};
  __wrap_GOMP_parallel(RunWork, &shared, 0, 0);
}

/* Preloaded into mycc-tune by fault_test: what a candidate does in its own process goes wrong as
 * MYCC_TEST_FAULT says, "PHASE FAULT". The phase is `build`, met where a candidate's library is put in its
 * place (there the fault may be `full`: the disk is), `run`, met where its kernel starts its threads, or
 * `round`, met where a process loads its second candidate: not every finalist starts threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Candidates' libraries lie in a worker's scratch folder. */
static int is_candidate(const char* path) {
  return path != NULL && strstr(path, "/mycc-worker-") != NULL && strstr(path, ".so") != NULL;
}

static const char* fault_of(const char* phase) {
  const char* fault = getenv("MYCC_TEST_FAULT");
  const size_t length = strlen(phase);
  return fault != NULL && strncmp(fault, phase, length) == 0 && fault[length] == ' ' ? fault + length + 1
                                                                                     : "";
}

static void go_wrong(const char* fault) {
  if (strcmp(fault, "crash") == 0) *(volatile int*)8 = 0;
  if (strcmp(fault, "kill") == 0) raise(SIGKILL);
  if (strcmp(fault, "hang") == 0) {
    for (volatile int spins = 0;; ++spins) {
    }
  }
  if (strcmp(fault, "memory") == 0) {
    /* C++'s operator new, until there is no more to have. */
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
    while (allocate != NULL && allocate((size_t)1 << 30) != NULL) {
    }
  }
}

/* Another than the first one that this process loaded, and than the one that a trial is timed beside. */
static int is_rival(const char* path) {
  static char first[4096];
  if (strstr(path, "/pacer-") != NULL) return 0;
  if (first[0] == 0) strncpy(first, path, sizeof(first) - 1);
  return strcmp(first, path) != 0;
}

int rename(const char* from, const char* to) {
  int (*real)(const char*, const char*) = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  if (is_candidate(to)) {
    if (strcmp(fault_of("build"), "full") == 0) {
      errno = ENOSPC;
      return -1;
    }
    go_wrong(fault_of("build"));
  }
  return real(from, to);
}

void* dlopen(const char* path, int mode) {
  void* (*real)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  if (is_candidate(path) && is_rival(path)) go_wrong(fault_of("round"));
  return real(path, mode);
}

void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads, unsigned flags) {
  void (*real)(void (*)(void*), void*, unsigned, unsigned) =
      (void (*)(void (*)(void*), void*, unsigned, unsigned))dlsym(RTLD_NEXT, "GOMP_parallel");
  Dl_info where;
  if (dladdr((void*)function, &where) != 0 && is_candidate(where.dli_fname)) {
    const char* fault = fault_of("run");
    if (strcmp(fault, "wrong") == 0) return; /* nothing is computed */
    go_wrong(fault);
  }
  real(function, data, num_threads, flags);
}

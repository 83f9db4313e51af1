/* Preloaded into mycc-tune by hostile_test: a candidate's kernel first tries what MYCC_TEST_HOSTILE says, and
 * computes as ever only where that fails. So the status `ok` says that it was kept from it. MYCC_TEST_AIM is
 * a path or a number that the attempt needs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int reads(const char* path) { return open(path, O_RDONLY) >= 0; }

static int writes(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT, 0644);
  return fd >= 0 && write(fd, "words", 5) == 5;
}

static int connects_to_port(int port) {
  struct sockaddr_in address = {0};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd >= 0 && connect(fd, (struct sockaddr*)&address, sizeof(address)) == 0;
}

static int connects_to_socket(const char* path) {
  struct sockaddr_un address = {0};
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  return fd >= 0 && connect(fd, (struct sockaddr*)&address, sizeof(address)) == 0;
}

/* Children that outlive the request, where the system makes any. */
static int forks(int times) {
  int made = 0;
  for (int i = 0; i < times; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      sleep(3);
      _exit(0);
    }
    made += child > 0;
  }
  return made > 0;
}

static int kills_others(pid_t worker) { return kill(worker, SIGKILL) == 0; }

static int succeeds(const char* what, const char* aim) {
  if (strcmp(what, "read") == 0) return reads(aim);
  if (strcmp(what, "write") == 0) return writes(aim);
  if (strcmp(what, "port") == 0) return connects_to_port(atoi(aim));
  if (strcmp(what, "socket") == 0) return connects_to_socket(aim);
  if (strcmp(what, "fork") == 0) return forks(64);
  if (strcmp(what, "bomb") == 0) return forks(10000);
  if (strcmp(what, "kill") == 0) return kills_others(atoi(aim));
  if (strcmp(what, "ptrace") == 0) return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0;
  return 0;
}

static int is_candidate(const char* path) {
  return path != NULL && strstr(path, "/mycc-worker-") != NULL && strstr(path, ".so") != NULL;
}

void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads, unsigned flags) {
  void (*real)(void (*)(void*), void*, unsigned, unsigned) =
      (void (*)(void (*)(void*), void*, unsigned, unsigned))dlsym(RTLD_NEXT, "GOMP_parallel");
  const char* what = getenv("MYCC_TEST_HOSTILE");
  const char* aim = getenv("MYCC_TEST_AIM");
  static int tried = 0;
  Dl_info where;
  if (what != NULL && aim != NULL && dladdr((void*)function, &where) != 0 && is_candidate(where.dli_fname)) {
    static int has_succeeded = 0;
    if (!tried) has_succeeded = succeeds(what, aim);
    tried = 1;
    if (has_succeeded) return; /* nothing is computed */
  }
  real(function, data, num_threads, flags);
}

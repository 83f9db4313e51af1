#include "process/fork_server_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "process/confine.h"
#include "process/framing.h"
#include "process/limits.h"

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 declares it for C alone
}

namespace mycc {
namespace {

constexpr int kChannel = 3;                // to the worker
constexpr size_t kKeptOutputBytes = 4096;  // of what the process printed, its end

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  bool ok() const { return read_end >= 0; }
  void CloseRead() {
    if (read_end >= 0) close(read_end);
    read_end = -1;
  }
  void CloseWrite() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

[[noreturn]] void RunChild(const std::function<std::string(const std::string&)>& handler, pid_t fork_server,
                           const v1::ForkRequest& request, Pipe& answer, Pipe& output) {
  dup2(output.write_end, 1);
  dup2(output.write_end, 2);
  close(kChannel);
  answer.CloseRead();
  output.CloseRead();
  ConfineSelf(fork_server, request);
  ConfineRequest(request.only_reads());
  const std::string bytes = handler(request.payload());
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t got = write(answer.write_end, bytes.data() + sent, bytes.size() - sent);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) _exit(1);
    sent += static_cast<size_t>(got);
  }
  // Nothing of what the request did is worth an orderly end, and a broken heap would turn the end into a
  // crash.
  _exit(0);
}

// Appends what can be read now. False once there will be no more.
bool Drain(int fd, std::string* to) {
  char buffer[65536];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) to->append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void KeepEnd(std::string* text, size_t bytes) {
  if (text->size() > bytes) text->erase(0, text->size() - bytes);
}

// Collects the answer and the output until the process ends; kills it and its group at the deadline.
void Watch(pid_t child, int pidfd, Deadline deadline, Pipe& answer, Pipe& output, v1::ForkReply* reply) {
  fcntl(answer.read_end, F_SETFL, O_NONBLOCK);
  fcntl(output.read_end, F_SETFL, O_NONBLOCK);
  std::string* payload = reply->mutable_payload();
  std::string* printed = reply->mutable_output();
  while (true) {
    pollfd ready[3] = {{pidfd, POLLIN, 0}, {answer.read_end, POLLIN, 0}, {output.read_end, POLLIN, 0}};
    const int events = poll(ready, 3, PollMilliseconds(deadline));
    if (events < 0 && errno == EINTR) continue;
    if (ready[1].revents != 0 && !Drain(answer.read_end, payload)) answer.CloseRead();
    if (ready[2].revents != 0 && !Drain(output.read_end, printed)) output.CloseRead();
    KeepEnd(printed, kKeptOutputBytes);
    if (ready[0].revents != 0) break;
    if (events == 0) {
      reply->set_timed_out(true);
      KillRequest(child);
      deadline = kNoDeadline;
    }
  }
  // Reads all that the process wrote before it ended; other holders of the pipe's other end are not waited
  // for.
  for (Pipe* pipe : {&answer, &output}) {
    std::string* to = pipe == &answer ? payload : printed;
    size_t before = to->size() + 1;
    while (pipe->read_end >= 0 && to->size() != before) {
      before = to->size();
      if (!Drain(pipe->read_end, to)) break;
    }
  }
  KeepEnd(printed, kKeptOutputBytes);
}

v1::ForkReply Answer(const std::function<std::string(const std::string&)>& handler,
                     const v1::ForkRequest& request) {
  v1::ForkReply reply;
  Pipe answer, output;
  const int64_t memory_kills = MemoryKills();
  const auto start = std::chrono::steady_clock::now();
  const Deadline deadline = request.wall_seconds() > 0 ? After(request.wall_seconds()) : kNoDeadline;
  const pid_t fork_server = getpid();
  const pid_t child = answer.ok() && output.ok() ? fork() : -1;
  if (child == 0) RunChild(handler, fork_server, request, answer, output);
  if (child < 0) {
    reply.set_unmade(true);
    reply.set_output(strerror(errno));
    return reply;
  }
  setpgid(child, child);  // here and in the child, so that it has happened before the group is killed
  answer.CloseWrite();
  output.CloseWrite();
  const int pidfd = pidfd_open(child, 0);
  Watch(child, pidfd, deadline, answer, output, &reply);
  if (pidfd >= 0) close(pidfd);
  const bool has_orphans = KillRequest(child);  // before waitpid, while the number is still taken
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (has_orphans && (waitpid(-1, nullptr, 0) > 0 || errno == EINTR)) {
  }
  if (WIFSIGNALED(status)) reply.set_signal(WTERMSIG(status));
  if (WIFEXITED(status)) reply.set_exit_code(WEXITSTATUS(status));
  reply.set_answered(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  reply.set_out_of_memory((WIFEXITED(status) && WEXITSTATUS(status) == kExitOutOfMemory) ||
                          (reply.signal() == SIGKILL && !reply.timed_out() && MemoryKills() > memory_kills));
  reply.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return reply;
}

}  // namespace

int ForkServerMain(const std::function<std::string(const std::string&)>& handler) {
  fcntl(kChannel, F_SETFD, FD_CLOEXEC);
  while (true) {
    const absl::StatusOr<std::string> bytes = ReadMessage(kChannel);
    v1::ForkRequest request;
    if (!bytes.ok()) return absl::IsUnavailable(bytes.status()) ? 0 : 1;
    if (!request.ParseFromString(*bytes)) return 1;
    if (!WriteMessage(kChannel, Answer(handler, request).SerializeAsString()).ok()) return 1;
  }
}

}  // namespace mycc

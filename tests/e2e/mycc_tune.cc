#include "tests/e2e/mycc_tune.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "gtest/gtest.h"

namespace mycc {
namespace {

pid_t Spawn(const std::string& path, const std::vector<std::string>& arguments, int output) {
  // Searches propose the same whatever this host does just now, and start sooner; constants_test sets it
  // otherwise.
  setenv("MYCC_TUNE_NO_CALIBRATION", "1", /*overwrite=*/0);
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << path;
  return pid;
}

int StatusOf(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Ran Run(const std::string& path, const std::vector<std::string>& arguments) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = Spawn(path, arguments, ends[1]);
  close(ends[1]);
  Ran ran;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    ran.output.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  ran.exit_status = StatusOf(pid);
  return ran;
}

}  // namespace

std::string MyccTunePath() {
  const char* build = std::getenv("MYCC_BINARY_DIR");
  return std::string(build != nullptr ? build : ".") + "/bin/mycc-tune";
}

Ran RunMyccTune(const std::vector<std::string>& arguments) { return Run(MyccTunePath(), arguments); }

Ran RunInBash(const std::string& line) {
  const std::string path = MyccTunePath();
  return Run("/bin/bash", {"-c", "PATH=" + path.substr(0, path.rfind('/')) + ":$PATH; " + line});
}

Background::Background(const std::vector<std::string>& arguments, const std::string& output)
    : Background(MyccTunePath(), arguments, output) {}

Background::Background(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& output) {
  const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  EXPECT_GE(fd, 0) << output;
  pid_ = Spawn(program, arguments, fd);
  close(fd);
}

Background::~Background() {
  if (pid_ > 0) Kill9();
}

int Background::Wait() {
  const int status = StatusOf(pid_);
  pid_ = 0;
  return status;
}

void Background::Kill9() {
  kill(pid_, SIGKILL);
  Wait();
}

void Background::Interrupt() { kill(pid_, SIGINT); }

int Background::Terminate() {
  kill(pid_, SIGTERM);
  return Wait();
}

std::string ReadAll(const std::string& file) {
  std::ifstream in(file);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string JobIn(const std::string& printed) {
  static const std::regex kJob("job (j[0-9a-f]+)");
  std::smatch found;
  return std::regex_search(printed, found, kJob) ? found[1].str() : "";
}

bool WaitForText(const std::string& file, const std::string& text, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (ReadAll(file).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace mycc

#include "tests/perf/throughput_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/check.h"

namespace mycc {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

PartProcess::PartProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(kThisProgram)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int output[2];
  MYCC_CHECK(pipe2(output, O_CLOEXEC) == 0);
  pid_ = fork();
  MYCC_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output[1], STDOUT_FILENO);
    execv(kThisProgram, argv.data());
    std::_Exit(127);
  }
  close(output[1]);
  output_ = output[0];
}

PartProcess::~PartProcess() {
  End(SIGKILL);
  close(output_);
}

std::string PartProcess::ReadLine() {
  std::string line;
  for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) line.push_back(c);
  return line;
}

void PartProcess::End(int signal) {
  if (pid_ == 0) return;
  kill(pid_, signal);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
}

}  // namespace mycc

// Runs the mycc-tune program of this build, as a user would. Thread rule: thread-compatible.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mycc {

std::string MyccTunePath();

struct Ran {
  int exit_status = -1;  // or 128 + the signal that ended it
  std::string output;    // standard output and error together
};
Ran RunMyccTune(const std::vector<std::string>& arguments);
// A line of bash that finds the program by its name.
Ran RunInBash(const std::string& line);

// A program in the background, killed with -9 when the test ends.
class Background {
 public:
  // `output` is a file that gets what the program prints.
  Background(const std::vector<std::string>& arguments, const std::string& output);
  Background(const std::string& program, const std::vector<std::string>& arguments,
             const std::string& output);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void Kill9();
  // SIGTERM, and the exit status.
  int Terminate();
  // SIGINT, as Ctrl-C sends it.
  void Interrupt();
  // The exit status, or 128 + the signal that ended it.
  int Wait();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// The output so far.
std::string ReadAll(const std::string& file);
// The first job's id that is named in what was printed, after "job "; empty: none is.
std::string JobIn(const std::string& printed);
// Waits until the file holds `text`; false after `seconds`.
bool WaitForText(const std::string& file, const std::string& text, double seconds);

}  // namespace mycc

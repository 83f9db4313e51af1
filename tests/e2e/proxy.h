// A TCP proxy before a server's Unix socket, whose lines can go dead without a word: half-open connections.
// Thread rule: thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace mycc {

class Proxy {
 public:
  // Listens on a free port of the loopback device.
  explicit Proxy(std::string socket);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string address() const;
  // From now on the lines that are open swallow what they are sent, and stay open. New ones are sound.
  void GoDeadOnOpenLines();
  int dead_lines() const { return dead_; }

 private:
  struct Line {
    int client = -1, server = -1;
    bool is_dead = false;
  };

  void Run();
  void Accept();
  // Forwards, or swallows, what can be read at one end. False when the line has ended.
  static bool Forward(const Line& line, int from, int to);

  const std::string socket_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stops_ = false, go_dead_ = false;
  std::atomic<int> dead_ = 0;
  std::vector<Line> lines_;  // the thread's
  std::thread thread_;
};

}  // namespace mycc

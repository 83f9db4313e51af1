// Listens at an address that only processes of this host reach, and knows the user behind each connection. It
// accepts the connections itself and hands them on by their descriptors: "fd:17" is gRPC's name of the peer
// of such a connection.
//
// The number of a descriptor is used again when its connection has ended, perhaps while a call that came over
// it is still looked at. So a number belongs to one user for as long as the listener lives: a connection of
// another user gets another number. Thread rule: thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace mycc {

class PeerListener {
 public:
  // `address` is "unix:/path" or a loopback "host:port" (proto/channel.h). Unavailable says why not; also
  // where the kernel does not tell whose connections are.
  // A number of a connection that ended so long ago may become another user's: no call of it is looked at
  // any more.
  static constexpr double kRestSeconds = 300;
  static absl::StatusOr<std::unique_ptr<PeerListener>> Listen(const std::string& address,
                                                              double rest_seconds = kRestSeconds);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  // From now on connections are accepted, and `hand_on` owns their descriptors. REQUIRES: called once.
  void Start(std::function<void(int descriptor)> hand_on);
  // Accepts no more, and removes the Unix socket.
  void Stop();

  // With the port that was chosen.
  const std::string& address() const { return address_; }
  // The user behind "fd:17"; none for another name.
  std::optional<uid_t> UserOf(absl::string_view peer) const;
  // Whether the file of a Unix socket lets other users connect, to be refused or admitted by their ids. No
  // other user gets as far without.
  void OpenToOthers(bool open) const;

 private:
  struct Connection {
    uid_t user;
    ino_t inode;  // of its latest socket
    std::optional<double> seen_ended = {};
  };

  explicit PeerListener(double rest_seconds) : rest_seconds_(rest_seconds) {}
  absl::Status ListenUnix(const std::string& path);
  absl::Status ListenLoopback(const std::string& host, const std::string& port);
  absl::Status ProbeLoopback() const;
  void AcceptUntilStopped();
  void Accept(int listening);
  // A number for the connection that is its user's alone; -1 when there is none, or the user has too many.
  int Number(int descriptor, uid_t user);
  // Whether this user may have the number of a connection that has ended.
  bool MayHave(uid_t user, Connection* ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasTooMany(uid_t user) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const double rest_seconds_;
  std::string address_, path_;
  dev_t path_device_ = 0;
  ino_t path_inode_ = 0;
  std::vector<int> listening_;
  int stop_ = -1;  // an event
  std::function<void(int)> hand_on_;
  std::thread thread_;
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by number; also those that have ended
};

}  // namespace mycc

// Any bytes on a stream are messages, each of the length that stands before it, until one is refused or the
// stream ends.
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "process/framing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  MYCC_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  MYCC_CHECK(write(ends[0], data, size) == static_cast<ssize_t>(size));
  close(ends[0]);
  size_t used = 0;
  for (;;) {
    const auto message = mycc::ReadMessage(ends[1]);
    if (!message.ok()) {
      MYCC_CHECK(absl::IsUnavailable(message.status()) || absl::IsDataLoss(message.status()))
          << message.status();
      break;
    }
    used += 4;
    MYCC_CHECK(used + message->size() <= size) << message->size();
    MYCC_CHECK(message->compare(0, message->size(), reinterpret_cast<const char*>(data) + used,
                                message->size()) == 0)
        << used;
    used += message->size();
  }
  close(ends[1]);
  return 0;
}

#include "base/os_error.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/str_cat.h"

namespace mycc {

absl::Status OsError(const std::string& doing, const std::string& path) {
  const int error = errno;
  const std::string message = absl::StrCat("cannot ", doing, " `", path, "`: ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS: return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return absl::ResourceExhaustedError(message);
    default: return absl::FailedPreconditionError(message);
  }
}

}  // namespace mycc

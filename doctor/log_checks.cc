// Checks of a server's tuning log: the file, and the disk under it.
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "db/log_file.h"
#include "doctor/host_files.h"
#include "doctor/installation.h"

namespace mycc {
namespace {

constexpr int64_t kLogMiB = int64_t{1} << 20;
constexpr int64_t kLeastLogSpace = 256 * kLogMiB, kGoodLogSpace = 4096 * kLogMiB;
constexpr double kSlowSync = 0.02, kTooSlowSync = 0.5;

// The fate of a log on a type of file system; the last row is for all others.
struct FileSystemRow {
  const char* prefix;
  Verdict verdict;
  const char* what;
};
constexpr char kRestore[] = "restore the newest backup (docs/operating.md, Recover)";
constexpr char kMoveLog[] = "put the log on a local disk: serve --log /var/lib/mycc-tune/farm.db";
constexpr FileSystemRow kFileSystems[] = {
    {"nfs", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"cifs", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"smb", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"afs", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"lustre", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"ceph", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"gpfs", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"beegfs", Verdict::kFault, "locks and shared memory of a log do not hold on a network file system"},
    {"9p", Verdict::kFault, "locks and shared memory of a log do not hold on a file system of another host"},
    {"virtiofs", Verdict::kWarning, "its locks hold on this host alone"},
    {"fuse", Verdict::kWarning, "not every file system in user space keeps locks and writes"},
    {"tmpfs", Verdict::kWarning, "the log is gone when the host restarts"},
    {"overlay", Verdict::kWarning, "the log goes with its container"},
    {"", Verdict::kOk, ""},
};

// The folder of the log, without links; empty where there is none.
std::string FolderOf(const std::string& log) {
  if (log.empty()) return "";
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(log, error);
  if (!error) path = std::filesystem::weakly_canonical(path, error);
  const std::filesystem::path folder = path.parent_path();
  return !error && std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

// Reads all of the log: to open one for reading takes a few pages.
Findings CheckWhole(const LogFile& log, const std::string& path) {
  const absl::StatusOr<std::string> verdict = log.database()->ReadText("PRAGMA quick_check(1)");
  if (!verdict.ok()) return {Fault(std::string(verdict.status().message()), kRestore)};
  if (*verdict != "ok") return {Fault(absl::StrCat(path, " is damaged (", *verdict, ")"), kRestore)};
  return {Ok(path + " is whole")};
}

}  // namespace

Findings CheckLog(const Installation& installation) {
  if (installation.log.empty()) return {};
  if (FolderOf(installation.log).empty()) {
    return {Fault(absl::StrCat(installation.log, ": its folder does not exist"), "make the folder")};
  }
  const absl::StatusOr<LogFile> log = LogFile::Open(installation.log, OpenMode::kRead);
  if (log.ok()) return CheckWhole(*log, installation.log);
  const std::string message(log.status().message());
  switch (log.status().code()) {
    case absl::StatusCode::kNotFound: return {Ok(installation.log + " is made by the first `serve`")};
    case absl::StatusCode::kDataLoss: return {Fault(message, kRestore)};
    case absl::StatusCode::kPermissionDenied: return {Fault(message, "chown it to the server's user")};
    case absl::StatusCode::kFailedPrecondition:
      return {
          Warning(message, "`mycc-tune serve` or `log gc` of this version brings an older log up to date")};
    default: return {Fault(message, "see docs/operating.md, Recover")};
  }
}

Findings CheckFileSystem(const Installation& installation) {
  const std::string folder = FolderOf(installation.log);
  if (folder.empty()) return {};
  const std::optional<Mount> mount = MountOf(installation.root, folder);
  if (!mount) return {Ok("the kernel does not tell")};
  const auto* const row = std::find_if(
      std::begin(kFileSystems), std::end(kFileSystems),
      [&mount](const FileSystemRow& each) { return absl::StartsWith(mount->type, each.prefix); });
  const std::string found = absl::StrCat(mount->type, " at ", mount->place);
  if (mount->Has("ro")) return {Fault(found + " is read-only", "mount it for writing")};
  if (row->verdict == Verdict::kOk) return {Ok(found)};
  return {{"", row->verdict, absl::StrCat(found, ": ", row->what), kMoveLog}};
}

Findings CheckSpace(const Installation& installation) {
  const std::string folder = FolderOf(installation.log);
  if (folder.empty()) return {};
  const absl::StatusOr<int64_t> bytes = installation.system.free_bytes(folder);
  if (!bytes.ok()) return {Fault(std::string(bytes.status().message()), kMoveLog)};
  const std::string found = absl::StrCat(*bytes / kLogMiB, " MiB free for ", installation.log);
  const std::string remedy =
      "enlarge the disk, or `mycc-tune log gc`; a server that is full goes on when there is space";
  if (*bytes < kLeastLogSpace) return {Fault(found, remedy)};
  if (*bytes < kGoodLogSpace) return {Warning(found, remedy)};
  return {Ok(found)};
}

Findings CheckSync(const Installation& installation) {
  const std::string folder = FolderOf(installation.log);
  if (folder.empty()) return {};
  absl::StatusOr<std::vector<double>> seconds = installation.system.sync_seconds(folder);
  if (!seconds.ok()) {
    return {Fault(std::string(seconds.status().message()),
                  "chown the folder to the server's user, or make space")};
  }
  std::ranges::sort(*seconds);
  const double median = (*seconds)[seconds->size() / 2], longest = seconds->back();
  const std::string found =
      absl::StrFormat("a durable write takes %.1f ms, %.1f ms at most", 1e3 * median, 1e3 * longest);
  const std::string remedy = "put the log on a local SSD; every acknowledgement waits for such a write";
  if (median > kTooSlowSync) return {Fault(found, remedy)};
  if (median > kSlowSync) return {Warning(found, remedy)};
  return {Ok(found)};
}

}  // namespace mycc

// Loads an artifact (.so) and calls its functions. No IR types. Thread rule: calls are re-entrant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dlpack/dlpack.h"

namespace mycc {

struct ArtifactArg {
  std::string name, kind, dtype;  // kind: input, const, output; dtype: f32, or string
  std::vector<int64_t> shape;
  int64_t packed_bytes = 0;  // const alone
  // The axes of an output whose extents a call tells, in the caller's shape; `shape` has the most.
  std::vector<int> bounded = {};

  bool is_text() const { return dtype == "string"; }
};
struct ArtifactFunction {
  std::string name;  // the exported symbol, MODULE_FUNCTION
  std::vector<ArtifactArg> args;
  int64_t workspace_bytes = 0;
};

class Library {
 public:
  // `device_id` is the device of later calls: a GPU's number, or 0 for a CPU. Errors: NotFound;
  // FailedPrecondition when the file is not an artifact, or this machine lacks something that it was compiled
  // for (the message names it).
  static absl::StatusOr<std::unique_ptr<Library>> Open(const std::string& path, int device_id = 0);
  ~Library();

  const std::string& json() const;  // the text of NAME.json
  const std::string& module() const;
  const std::string& target() const;  // canonical text
  bool on_cuda() const;               // takes tensors in a GPU's memory
  int device_id() const;
  const std::vector<ArtifactFunction>& functions() const;
  // A function's description. Here and below, `name` is as in NAME.json or without the leading MODULE_.
  // NotFound lists the functions that exist.
  absl::StatusOr<const ArtifactFunction*> Find(const std::string& name) const;
  absl::Status Prepare(int device_id);
  // The error carries MODULE_last_error().
  absl::Status Call(const std::string& name, const std::vector<DLTensor*>& args, void* stream = nullptr);
  absl::Status Pack(const std::string& name, const std::vector<DLTensor*>& args, void* stream = nullptr);
  // The seconds of each launch of the last call, of a model that was compiled with a profile.
  // FailedPrecondition for other libraries.
  absl::StatusOr<std::vector<double>> Profile();
  // The entry point itself, for timing loops.
  using Entry = int32_t (*)(DLTensor**, int32_t, void*);
  absl::StatusOr<Entry> Symbol(const std::string& name);

 private:
  struct Impl;
  explicit Library(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mycc

// Writes an object file that holds bytes under a symbol: the weights of a model, which are too many to pass
// through a compiler. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

inline constexpr int64_t kDataAlignment = 4096;  // of the symbol

class DataObject {
 public:
  // Begins the file `path`, whose hidden symbol `symbol` will stand for `bytes` bytes.
  static absl::StatusOr<DataObject> Create(const std::string& path, const std::string& symbol, int64_t bytes);
  DataObject(DataObject&& other) noexcept;
  DataObject& operator=(DataObject&&) = delete;
  ~DataObject();

  // Appends bytes; zeros follow where fewer than promised were appended. REQUIRES: not more than promised.
  absl::Status Append(std::string_view bytes);
  absl::Status AppendZeros(int64_t count);
  absl::Status Finish();

 private:
  DataObject(std::FILE* file, std::string path, int64_t left)
      : file_(file), path_(std::move(path)), left_(left) {}
  absl::Status Failed() const;

  std::FILE* file_;
  std::string path_;
  int64_t left_;
};

}  // namespace mycc

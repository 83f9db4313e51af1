// Writes and reads numbers and strings as little-endian bytes, the format of stored models. After a read past
// the end, all further reads fail. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"

namespace mycc {

class ByteWriter {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void PutString(const std::string& text) {
    Put<uint64_t>(text.size());
    bytes_ += text;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  T Get() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (Has(sizeof(T))) {
      std::memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  std::string GetString() {
    const uint64_t size = Get<uint64_t>();
    if (!Has(size)) return "";
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  // True while nothing was read past the end; `done` when nothing is left either.
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - at_; }

 private:
  bool Has(uint64_t size) {
    ok_ = ok_ && size <= left();
    return ok_;
  }

  const std::string& bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// A model as it is stored: its format's name, a digest, and the body; and the body back, InvalidArgument when
// the format is another or a byte has changed.
std::string Seal(const std::string& format, const std::string& body);
absl::StatusOr<std::string> Unseal(const std::string& format, const std::string& bytes);

}  // namespace mycc

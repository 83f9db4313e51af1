// A workload's random inputs and expected outputs, made once and kept as files, which every candidate's
// process maps. A case is a folder with the files `info`, `inputs` and `expected` (tensors in storage form,
// one after the other), and `special` (inputs with special values; `info` has the permitted outputs at some
// places).
//
// Expected values come from the reference kernel, a naive schedule with wider accumulation that is checked
// against the language's semantics at sampled places. Without a reference kernel, they come from the
// semantics themselves, at sampled places alone. Thread rule: a TestCase is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/permitted.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A file's bytes, shared with every other process that maps it. An empty file is legal.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  MappedFile(const uint8_t* data, int64_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  int64_t size_;
};

class TestCase {
 public:
  // `reference_library` may be empty. The folder must exist; the case appears in it whole (`info` comes
  // last). Internal when the reference kernel contradicts the language; FailedPrecondition when this host
  // can neither load that kernel nor write the case.
  static absl::Status Make(const Workload& workload, uint64_t seed, const std::string& reference_library,
                           const std::string& directory);
  static absl::StatusOr<TestCase> Open(const Workload& workload, const std::string& directory);

  uint64_t seed() const { return seed_; }
  const std::vector<const uint8_t*>& inputs() const { return input_data_; }
  const std::vector<Expected>& expected() const { return expected_; }  // for each output
  const std::vector<const uint8_t*>& special_inputs() const { return special_data_; }
  const std::vector<PermittedValues>& permitted() const { return permitted_; }  // of these, for each output

 private:
  TestCase(MappedFile inputs, MappedFile special, MappedFile expected)
      : inputs_(std::move(inputs)), special_(std::move(special)), expected_file_(std::move(expected)) {}

  uint64_t seed_ = 0;
  MappedFile inputs_, special_, expected_file_;
  std::vector<const uint8_t*> input_data_, special_data_;
  std::vector<Expected> expected_;
  std::vector<PermittedValues> permitted_;
};

}  // namespace mycc

// Reads and writes NumPy's .npy files: the inputs and outputs of `mycc run`, and values of a model's inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"

namespace mycc {

// A dense row-major array. `descr` is NumPy's name of the type: "<f4".
struct NpyArray {
  std::string descr;
  std::vector<int64_t> shape;
  std::string bytes;
};

// NumPy's names of a type as they are accepted, the one that is written first. NumPy has no bf16 and no 8-bit
// floats; their bits travel as "<u2" and "|u1".
std::vector<std::string> NpyDescrs(DType dtype);

// Says whether an array will do, before its bytes are read: they may be many, or never end.
using NpyJudge = std::function<absl::Status(const NpyArray& without_bytes)>;

// Errors name the file and what was expected: another format, a newer version, big-endian numbers, columns
// first, a file that ends early. The judge's errors are passed on.
absl::StatusOr<NpyArray> ParseNpy(std::istream& in, const std::string& path, const NpyJudge& judge = nullptr);
absl::StatusOr<NpyArray> ReadNpy(const std::string& path, const NpyJudge& judge = nullptr);

std::string PrintNpy(const NpyArray& array);
absl::Status WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace mycc

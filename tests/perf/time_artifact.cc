// Times a function of an artifact with the timer that the libraries are timed with, or compares what two
// artifacts compute.
//
//   time_artifact LIB.so FUNCTION [SECONDS]        prints `FUNCTION ours MILLISECONDS`; SECONDS of measuring,
//                                                  1.2 when not given
//   time_artifact --save FOLDER LIB.so FUNCTION    writes the same random inputs, and the outputs, to files
//                                                  that libraries compute on (peer_data.h)
//   time_artifact --compare A.so B.so FUNCTION     prints `FUNCTION difference VALUE`: the largest difference
//                                                  of any output on the same random inputs, relative to A's
//                                                  largest value
//
// Set OMP_NUM_THREADS and the process's cores from outside.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "tests/perf/timer.h"

namespace mycc {
namespace {

// Bytes of all values; other integers 0 or 1, which also are valid indices.
std::uniform_int_distribution<int64_t> Integers(DType dtype) {
  if (dtype == DType::kI8) return std::uniform_int_distribution<int64_t>(-128, 127);
  return std::uniform_int_distribution<int64_t>(0, dtype == DType::kU8 ? 255 : 1);
}

// Floats are uniform in [-1, 1).
void FillRandom(HostTensor* tensor, std::mt19937* random) {
  const DType dtype = tensor->dtype();
  std::uniform_real_distribution<double> uniform(-1, 1);
  auto integers = Integers(dtype);
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    Scalar value;
    if (IsFloat(dtype)) {
      value.f = RoundFloat(dtype, uniform(*random));
    } else {
      value.i = integers(*random);
    }
    StoreScalar(dtype, tensor->data() + i * DTypeBytes(dtype), value);
  }
}

// Arguments with the same random inputs for every artifact of a workload, constants packed, called once: so
// that a refusal comes with its message.
absl::StatusOr<Arguments> ReadyArguments(Library* library, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  std::mt19937 random(1);
  for (int i = 0; i < arguments.size(); ++i) {
    if (arguments.arg(i).kind != "output") FillRandom(&arguments.tensor(i), &random);
  }
  MYCC_RETURN_IF_ERROR(library->Prepare(0));
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  return arguments;
}

absl::Status TimeFunction(const std::string& path, const std::string& function, double seconds) {
  MYCC_ASSIGN_OR_RETURN(const auto library, Library::Open(path));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, ReadyArguments(library.get(), function));
  MYCC_ASSIGN_OR_RETURN(const Library::Entry entry, library->Symbol(function));
  std::vector<DLTensor*>& args = arguments.call_args();
  int32_t failed = 0;
  const double milliseconds = MedianMilliseconds(
      [&] { failed |= entry(args.data(), static_cast<int32_t>(args.size()), nullptr); }, seconds);
  if (failed != 0) return absl::InternalError(function + " failed while it was timed");
  std::printf("%s ours %.6f\n", function.c_str(), milliseconds);
  return absl::OkStatus();
}

// The outputs' values, one tensor after the other.
absl::StatusOr<std::vector<double>> OutputsOf(const std::string& path, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const auto library, Library::Open(path));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, ReadyArguments(library.get(), function));
  std::vector<double> values;
  for (int i = 0; i < arguments.size(); ++i) {
    if (arguments.arg(i).kind != "output") continue;
    const HostTensor& tensor = arguments.tensor(i);
    for (int64_t j = 0; j < tensor.num_elements(); ++j) {
      const Scalar value = LoadScalar(tensor.dtype(), tensor.data() + j * DTypeBytes(tensor.dtype()));
      values.push_back(IsFloat(tensor.dtype()) ? value.f : static_cast<double>(value.i));
    }
  }
  return values;
}

absl::Status Save(const std::string& folder, const std::string& path, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const auto library, Library::Open(path));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, ReadyArguments(library.get(), function));
  for (int i = 0; i < arguments.size(); ++i) {
    const HostTensor& tensor = arguments.tensor(i);
    const std::string file = folder + "/" + std::to_string(i);
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
    out.close();
    if (!out)
      return absl::FailedPreconditionError(file + " cannot be written; expected a folder with room for it");
  }
  return absl::OkStatus();
}

absl::Status Compare(const std::string& a_path, const std::string& b_path, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const auto a, OutputsOf(a_path, function));
  MYCC_ASSIGN_OR_RETURN(const auto b, OutputsOf(b_path, function));
  if (a.size() != b.size())
    return absl::FailedPreconditionError(function + " has other outputs in " + b_path);
  double largest = std::numeric_limits<double>::min(), difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    const double apart = std::abs(a[i] - b[i]);
    // A NaN on one side is as far apart as can be.
    difference = std::max(difference, std::isnan(apart) ? HUGE_VAL : apart);
  }
  std::printf("%s difference %.3g\n", function.c_str(), difference / largest);
  return absl::OkStatus();
}

absl::Status Main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--compare") return Compare(argv[2], argv[3], argv[4]);
  if (argc == 5 && std::string_view(argv[1]) == "--save") return Save(argv[2], argv[3], argv[4]);
  const double seconds = argc == 4 ? std::atof(argv[3]) : 1.2;
  if ((argc != 3 && argc != 4) || argv[1][0] == '-' || seconds <= 0) {
    return absl::InvalidArgumentError(
        "usage: time_artifact LIB.so FUNCTION [SECONDS] | time_artifact --save FOLDER LIB.so FUNCTION | "
        "time_artifact --compare A.so B.so FUNCTION");
  }
  return TimeFunction(argv[1], argv[2], seconds);
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const absl::Status status = mycc::Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "time_artifact: %s\n", std::string(status.message()).c_str());
  return 1;
}

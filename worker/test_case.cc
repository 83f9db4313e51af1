#include "worker/test_case.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/workload/reference.h"
#include "proto/measure.pb.h"
#include "worker/kernel_call.h"

namespace mycc {
namespace {

// Places that are computed from the language's semantics: to check a reference kernel, and where there is
// none. The time bounds what a place of a long chain of stages may cost.
constexpr int64_t kCheckedPlaces = 64, kSampledPlaces = 4096;
constexpr double kCheckSeconds = 1, kSampleSeconds = 10;

std::string InfoPath(const std::string& directory) { return directory + "/info"; }
std::string InputsPath(const std::string& directory) { return directory + "/inputs"; }
std::string ExpectedPath(const std::string& directory) { return directory + "/expected"; }

// Distinct flat indices: the two ends, where tails go wrong, and random ones, in turn, so that any first part
// of them is spread well.
std::vector<int64_t> PickPlaces(int64_t elements, int64_t count, uint64_t seed) {
  std::vector<int64_t> places;
  absl::flat_hash_set<int64_t> seen;
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < std::min(count, elements); ++i) {
    const int64_t from_end = i / 4;
    const int64_t place = elements <= count ? i
                          : i % 4 == 0      ? from_end
                          : i % 4 == 1      ? elements - 1 - from_end
                                       : static_cast<int64_t>(random() % static_cast<uint64_t>(elements));
    if (seen.insert(place).second) places.push_back(place);
  }
  return places;
}

// What the language says at `places` of an output; those that time does not suffice for are dropped.
std::string Evaluate(SampledReference& reference, int output, DType dtype, double seconds,
                     std::vector<int64_t>* places) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::string values;
  size_t reached = 0;
  while (reached < places->size() && (reached == 0 || std::chrono::steady_clock::now() < end)) {
    std::string bytes(DTypeBytes(dtype), '\0');
    StoreScalar(dtype, bytes.data(), reference.Output(output, (*places)[reached]));
    values += bytes;
    ++reached;
  }
  places->resize(reached);
  return values;
}

std::vector<const uint8_t*> Pointers(const std::vector<NDArray>& arrays) {
  std::vector<const uint8_t*> pointers;
  for (const NDArray& array : arrays) pointers.push_back(array.bytes.data());
  return pointers;
}

// The reference kernel's outputs, one after the other; checked.
absl::StatusOr<std::string> RunReferenceKernel(const Workload& workload, const std::vector<NDArray>& inputs,
                                               const std::string& library, uint64_t seed) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<KernelCall> call,
                        KernelCall::Load(library, workload, Pointers(inputs)));
  call->PoisonOutputs();
  MYCC_RETURN_IF_ERROR(call->Call());
  SampledReference reference(workload, inputs);
  std::string outputs;
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    const Buffer& tensor = workload.outputs[i];
    std::vector<int64_t> places = PickPlaces(tensor->num_elements(), kCheckedPlaces, seed);
    const std::string values =
        Evaluate(reference, static_cast<int>(i), tensor->dtype, kCheckSeconds, &places);
    const Expected expected{tensor->dtype, reinterpret_cast<const uint8_t*>(values.data()), places,
                            static_cast<int64_t>(places.size())};
    const Comparison comparison = Compare(expected, call->output(static_cast<int>(i)), ToleranceOf(workload));
    if (!comparison.passed) {
      return absl::InternalError(absl::StrCat("the reference kernel contradicts the language: output ",
                                              tensor->name, ": ", comparison.first_mismatch));
    }
    outputs.append(reinterpret_cast<const char*>(call->output(static_cast<int>(i))), tensor->bytes());
  }
  return outputs;
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  struct stat info;
  const bool known = fstat(fd, &info) == 0;
  const size_t size = known ? static_cast<size_t>(info.st_size) : 0;
  void* data = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0) : nullptr;
  const int error = errno;
  close(fd);
  if (!known || data == MAP_FAILED) return absl::ErrnoToStatus(error, absl::StrCat("mapping ", path));
  return MappedFile(static_cast<const uint8_t*>(data), static_cast<int64_t>(size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_));
}

absl::Status TestCase::Make(const Workload& workload, uint64_t seed, const std::string& reference_library,
                            const std::string& directory) {
  const std::vector<NDArray> inputs = RandomInputs(workload, seed);
  v1::TestCaseInfo info;
  info.set_seed(seed);
  std::string expected;
  if (!reference_library.empty()) {
    MYCC_ASSIGN_OR_RETURN(expected, RunReferenceKernel(workload, inputs, reference_library, seed));
  } else {
    SampledReference reference(workload, inputs);
    for (size_t i = 0; i < workload.outputs.size(); ++i) {
      const Buffer& tensor = workload.outputs[i];
      std::vector<int64_t> places = PickPlaces(tensor->num_elements(), kSampledPlaces, seed);
      expected += Evaluate(reference, static_cast<int>(i), tensor->dtype, kSampleSeconds, &places);
      info.add_sampled()->mutable_flat()->Add(places.begin(), places.end());
    }
  }
  std::string input_bytes;
  for (const NDArray& array : inputs)
    input_bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(InputsPath(directory), input_bytes));
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(ExpectedPath(directory), expected));
  return WriteFileAtomically(InfoPath(directory), info.SerializeAsString());
}

bool TestCase::Exists(const std::string& directory) { return std::filesystem::exists(InfoPath(directory)); }

absl::StatusOr<TestCase> TestCase::Open(const Workload& workload, const std::string& directory) {
  MYCC_ASSIGN_OR_RETURN(const std::string info_bytes, ReadFile(InfoPath(directory)));
  v1::TestCaseInfo info;
  if (!info.ParseFromString(info_bytes))
    return absl::DataLossError(absl::StrCat(InfoPath(directory), " is damaged"));
  MYCC_ASSIGN_OR_RETURN(MappedFile inputs, MappedFile::Open(InputsPath(directory)));
  MYCC_ASSIGN_OR_RETURN(MappedFile expected, MappedFile::Open(ExpectedPath(directory)));
  TestCase test(std::move(inputs), std::move(expected));
  test.seed_ = info.seed();
  int64_t at = 0;
  for (const Argument& argument : workload.inputs) {
    test.input_data_.push_back(test.inputs_.data() + at);
    at += argument.tensor->bytes();
  }
  const bool complete = at == test.inputs_.size();
  at = 0;
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    const Buffer& tensor = workload.outputs[i];
    Expected part{tensor->dtype, test.expected_file_.data() + at, {}, tensor->num_elements()};
    if (info.sampled_size() > 0) {
      const auto& flat = info.sampled(static_cast<int>(i)).flat();
      part.places.assign(flat.begin(), flat.end());
      part.count = flat.size();
    }
    at += part.count * DTypeBytes(tensor->dtype);
    test.expected_.push_back(std::move(part));
  }
  if (!complete || at != test.expected_file_.size()) {
    return absl::DataLossError(absl::StrCat(directory, " holds another workload's case"));
  }
  return test;
}

}  // namespace mycc

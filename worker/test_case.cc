#include "worker/test_case.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/workload/sampled_values.h"
#include "codegen/workload/tolerance.h"
#include "proto/measure.pb.h"
#include "worker/kernel_call.h"
#include "worker/permitted_output.h"

namespace mycc {
namespace {

// Places that are computed from the language's semantics: to check a reference kernel, and where there is
// none. The time bounds what a place of a long chain of stages may cost.
constexpr int64_t kCheckedPlaces = 64, kSampledPlaces = 4096;
constexpr double kCheckSeconds = 1, kSampleSeconds = 10;

std::string InfoPath(const std::string& directory) { return directory + "/info"; }
std::string InputsPath(const std::string& directory) { return directory + "/inputs"; }
std::string SpecialPath(const std::string& directory) { return directory + "/special"; }
std::string ExpectedPath(const std::string& directory) { return directory + "/expected"; }

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
  SampledReference reference(workload, StoredElements(inputs));
  std::string outputs;
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    const Buffer& tensor = workload.outputs[i];
    const SampledValues sampled =
        SampleOutput(workload, &reference, static_cast<int>(i), kCheckedPlaces, kCheckSeconds, seed);
    const Comparison comparison =
        Compare(sampled.expected(), call->output(static_cast<int>(i)), ToleranceOf(workload));
    if (!comparison.passed) {
      return absl::InternalError(absl::StrCat("the reference kernel contradicts the language: output ",
                                              tensor->name, ": ", comparison.first_mismatch));
    }
    outputs.append(reinterpret_cast<const char*>(call->output(static_cast<int>(i))), tensor->bytes());
  }
  return outputs;
}

std::string BytesOf(const std::vector<NDArray>& arrays) {
  std::string bytes;
  for (const NDArray& array : arrays)
    bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return bytes;
}

// The place of each input in the file; nothing when the file is not as long as they are.
std::vector<const uint8_t*> Parts(const Workload& workload, const MappedFile& file) {
  std::vector<const uint8_t*> parts;
  int64_t at = 0;
  for (const Argument& argument : workload.inputs) {
    parts.push_back(file.data() + at);
    at += argument.tensor->bytes();
  }
  if (at != file.size()) parts.clear();
  return parts;
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
    SampledReference reference(workload, StoredElements(inputs));
    for (size_t i = 0; i < workload.outputs.size(); ++i) {
      const SampledValues sampled =
          SampleOutput(workload, &reference, static_cast<int>(i), kSampledPlaces, kSampleSeconds, seed);
      expected += sampled.values;
      info.add_sampled()->mutable_flat()->Add(sampled.places.begin(), sampled.places.end());
    }
  }
  const std::vector<NDArray> special = SpecialInputs(workload, seed);
  *info.mutable_permitted() = PermitOutputs(workload, StoredElements(special), seed);
  const absl::Status written = WriteFilesAtomically({{InputsPath(directory), BytesOf(inputs)},
                                                     {SpecialPath(directory), BytesOf(special)},
                                                     {ExpectedPath(directory), expected},
                                                     {InfoPath(directory), info.SerializeAsString()}});
  return written.ok() ? written : absl::FailedPreconditionError(written.message());
}

absl::StatusOr<TestCase> TestCase::Open(const Workload& workload, const std::string& directory) {
  MYCC_ASSIGN_OR_RETURN(const std::string info_bytes, ReadFile(InfoPath(directory)));
  v1::TestCaseInfo info;
  if (!info.ParseFromString(info_bytes))
    return absl::DataLossError(absl::StrCat(InfoPath(directory), " is damaged"));
  MYCC_ASSIGN_OR_RETURN(MappedFile inputs, MappedFile::Open(InputsPath(directory)));
  MYCC_ASSIGN_OR_RETURN(MappedFile special, MappedFile::Open(SpecialPath(directory)));
  MYCC_ASSIGN_OR_RETURN(MappedFile expected, MappedFile::Open(ExpectedPath(directory)));
  TestCase test(std::move(inputs), std::move(special), std::move(expected));
  test.seed_ = info.seed();
  test.input_data_ = Parts(workload, test.inputs_);
  test.special_data_ = Parts(workload, test.special_);
  const size_t parts = workload.inputs.size();
  test.permitted_ = PermittedOf(workload, info.permitted());
  const bool complete = test.input_data_.size() == parts && test.special_data_.size() == parts &&
                        test.permitted_.size() == workload.outputs.size();
  if (!complete) return absl::DataLossError(absl::StrCat(directory, " holds another workload's case"));
  int64_t at = 0;
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
  if (at != test.expected_file_.size()) {
    return absl::DataLossError(absl::StrCat(directory, " holds another workload's case"));
  }
  return test;
}

}  // namespace mycc

// Parses ptxas's log.
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "codegen/cuda/nvrtc.h"

namespace mycc {
namespace {

// The number before `unit` in "..., 256 bytes smem, ...", or 0.
int64_t NumberBefore(const std::string& line, const std::string& unit) {
  const size_t end = line.find(absl::StrCat(" ", unit));
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  return absl::SimpleAtoi(line.substr(begin, end - begin), &number) ? number : 0;
}

// The name in "Compiling entry function 'NAME' for 'sm_90a'".
std::string EntryFunction(const std::string& line) {
  const std::vector<std::string> parts = absl::StrSplit(line, '\'');
  return parts.size() > 2 ? parts[1] : "";
}

// Whether the line is not a warning: numbers that every compilation prints, and lines of other parts of the
// compiler. An arrival at a warpgroup's registers, which ptxas adds where it sets sums to zero itself
// (C7519), is one instruction for each tile.
bool IsRoutine(const std::string& line) {
  return !absl::StartsWith(line, "ptxas") || absl::StrContains(line, "(C7519)") ||
         absl::StrContains(line, "Function properties for") || absl::StrContains(line, "bytes gmem") ||
         absl::StrContains(line, "Compile time =");
}

}  // namespace

CudaImage ReadPtxasLog(const std::string& log) {
  CudaImage image;
  CudaKernelResources* kernel = nullptr;
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipWhitespace());
  for (const std::string& line : lines) {
    if (absl::StrContains(line, "Compiling entry function")) {
      image.kernels.push_back({EntryFunction(line)});
      kernel = &image.kernels.back();
    } else if (kernel != nullptr && absl::StrContains(line, "bytes spill stores")) {
      // There is a line for the kernel, and one for each function that it calls.
      kernel->stack_bytes += NumberBefore(line, "bytes stack frame");
      kernel->spill_bytes += NumberBefore(line, "bytes spill stores");
    } else if (kernel != nullptr && absl::StrContains(line, "Used ")) {
      kernel->registers = NumberBefore(line, "registers");
      kernel->shared_bytes = NumberBefore(line, "bytes smem");
    } else if (!IsRoutine(line)) {
      absl::StrAppend(&image.log, line, "\n");
      if (absl::StrContains(line, "wgmma") && absl::StrContains(line, "serialized"))
        image.serialized_wgmma = true;
      if (absl::StrContains(line, "'setmaxnreg' ignored")) image.ignored_setmaxnreg = true;
    }
  }
  return image;
}

}  // namespace mycc

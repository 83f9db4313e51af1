#include "codegen/runtime/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace mycc {
namespace {

// The first bytes of the file: its header and, as linkers place them, the headers of its segments.
constexpr int64_t kBeginningBytes = 1 << 16;

absl::Status CutShort(uint64_t needed, uint64_t bytes) {
  return absl::FailedPreconditionError(
      absl::StrCat("the file is cut short: it has ", bytes, " bytes, expected at least ", needed));
}

}  // namespace

absl::Status CheckElfIsWhole(const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::string beginning, ReadBeginning(path, kBeginningBytes));
  Elf64_Ehdr header;
  if (beginning.compare(0, SELFMAG, ELFMAG) != 0) return absl::OkStatus();
  if (beginning.size() < sizeof(header)) return CutShort(sizeof(header), beginning.size());
  std::memcpy(&header, beginning.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return absl::OkStatus();
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return absl::OkStatus();  // not a regular file

  const uint64_t headers_end = header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (headers_end > beginning.size() || headers_end < header.e_phoff)
    return CutShort(headers_end, beginning.size());
  uint64_t needed = headers_end;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, beginning.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    uint64_t end = 0;
    if (__builtin_add_overflow(segment.p_offset, segment.p_filesz, &end)) end = UINT64_MAX;
    needed = std::max(needed, end);
  }
  return needed <= bytes ? absl::OkStatus() : CutShort(needed, bytes);
}

}  // namespace mycc

#include "codegen/artifact/data_object.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/expr/integers.h"

namespace mycc {
namespace {

// The sections of the file, in this order; the data come last.
enum Section { kNull, kSymbols, kStrings, kNames, kStack, kData, kSections };

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Everything before the data.
std::string Beginning(const std::string& symbol, int64_t bytes) {
  const std::string names("\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack\0.rodata.weights\0", 59);
  const std::string strings = absl::StrCat(std::string(1, '\0'), symbol, std::string(1, '\0'));
  const int64_t headers_at = sizeof(Elf64_Ehdr);
  const int64_t symbols_at = headers_at + kSections * sizeof(Elf64_Shdr);
  const int64_t strings_at = symbols_at + 2 * sizeof(Elf64_Sym);
  const int64_t names_at = strings_at + static_cast<int64_t>(strings.size());
  const int64_t data_at = RoundUp(names_at + static_cast<int64_t>(names.size()), kDataAlignment);

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = headers_at;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;

  const auto name_at = [&](const char* name) { return static_cast<Elf64_Word>(names.find(name)); };
  std::vector<Elf64_Shdr> sections(kSections, Elf64_Shdr{});
  const auto set = [&](Section section, const char* name, Elf64_Word type, int64_t offset, int64_t size,
                       int64_t alignment) {
    sections[section].sh_name = name_at(name);
    sections[section].sh_type = type;
    sections[section].sh_offset = offset;
    sections[section].sh_size = size;
    sections[section].sh_addralign = alignment;
  };
  set(kSymbols, ".symtab", SHT_SYMTAB, symbols_at, 2 * sizeof(Elf64_Sym), 8);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // the first global symbol
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  set(kStrings, ".strtab", SHT_STRTAB, strings_at, static_cast<int64_t>(strings.size()), 1);
  set(kNames, ".shstrtab", SHT_STRTAB, names_at, static_cast<int64_t>(names.size()), 1);
  set(kStack, ".note.GNU-stack", SHT_PROGBITS, data_at, 0, 1);
  set(kData, ".rodata.weights", SHT_PROGBITS, data_at, bytes, kDataAlignment);
  sections[kData].sh_flags = SHF_ALLOC;

  Elf64_Sym null = {}, data = {};
  data.st_name = 1;
  data.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  data.st_other = STV_HIDDEN;
  data.st_shndx = kData;
  data.st_size = bytes;

  std::string text(BytesOf(header));
  for (const Elf64_Shdr& section : sections) text += BytesOf(section);
  text += BytesOf(null);
  text += BytesOf(data);
  text += strings;
  text += names;
  text.resize(data_at, '\0');
  return text;
}

}  // namespace

absl::StatusOr<DataObject> DataObject::Create(const std::string& path, const std::string& symbol,
                                              int64_t bytes) {
  const std::string beginning = Beginning(symbol, bytes);
  DataObject object(std::fopen(path.c_str(), "wb"), path, bytes + static_cast<int64_t>(beginning.size()));
  if (object.file_ == nullptr) return object.Failed();
  MYCC_RETURN_IF_ERROR(object.Append(beginning));
  return object;
}

DataObject::DataObject(DataObject&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), path_(std::move(other.path_)), left_(other.left_) {}

DataObject::~DataObject() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status DataObject::Failed() const {
  const std::string message = absl::StrCat("cannot write `", path_, "`: ", strerror(errno));
  return errno == ENOSPC ? absl::ResourceExhaustedError(message) : absl::PermissionDeniedError(message);
}

absl::Status DataObject::Append(std::string_view bytes) {
  left_ -= static_cast<int64_t>(bytes.size());
  MYCC_CHECK(left_ >= 0) << path_;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return Failed();
  return absl::OkStatus();
}

absl::Status DataObject::AppendZeros(int64_t count) {
  static constexpr char kZeros[4096] = {};
  for (; count > 0; count -= std::min<int64_t>(count, sizeof kZeros))
    MYCC_RETURN_IF_ERROR(Append({kZeros, static_cast<size_t>(std::min<int64_t>(count, sizeof kZeros))}));
  return absl::OkStatus();
}

absl::Status DataObject::Finish() {
  MYCC_RETURN_IF_ERROR(AppendZeros(left_));
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  return closed ? absl::OkStatus() : Failed();
}

}  // namespace mycc

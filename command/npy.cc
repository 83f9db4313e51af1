#include "command/npy.h"

#include <algorithm>
#include <fstream>
#include <istream>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/os_error.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;  // of the data within the file

constexpr size_t kMostDigits = 12;  // of an extent
constexpr int64_t kMostHeaderBytes = 1 << 20;

size_t CountDigits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// REQUIRES: at most kMostDigits digits.
int64_t NumberOf(std::string_view digits) {
  int64_t number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

// Reads the Python dictionary of a header, as far as NumPy writes it: {'descr': '<f4', 'fortran_order':
// False, 'shape': (1, 64), }
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  bool Read(std::string* descr, bool* fortran_order, std::vector<int64_t>* shape) {
    if (!Take('{')) return false;
    int known = 0;
    while (!Take('}')) {
      const std::optional<std::string> key = ReadString();
      if (!key || !Take(':')) return false;
      const bool read = *key == "descr"           ? ReadDescr(descr)
                        : *key == "fortran_order" ? ReadBool(fortran_order)
                                                  : *key == "shape" && ReadShape(shape);
      if (!read) return false;
      ++known;
      if (!Take(',') && !AtEnd('}')) return false;
    }
    return known == 3;
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }
  bool AtEnd(char c) {
    SkipSpace();
    return !text_.empty() && text_.front() == c;
  }
  bool Take(char c) {
    if (!AtEnd(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> ReadString() {
    if (!Take('\'')) return std::nullopt;
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool ReadDescr(std::string* descr) {
    std::optional<std::string> value = ReadString();
    if (value) *descr = *value;
    return value.has_value();
  }
  bool ReadBool(bool* value) {
    SkipSpace();
    for (const auto& [word, meaning] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      *value = meaning;
      return true;
    }
    return false;
  }
  bool ReadShape(std::vector<int64_t>* shape) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      SkipSpace();
      const size_t digits = CountDigits(text_);
      if (digits == 0 || digits > kMostDigits) return false;
      shape->push_back(NumberOf(text_.substr(0, digits)));
      text_.remove_prefix(digits);
      if (!Take(',') && !AtEnd(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

// The bytes of one element by the digits after a type's name, which count characters of 4 bytes in texts; 0
// where they are no size.
int64_t ElementBytes(const std::string& descr) {
  const auto digits = std::string_view(descr).substr(std::min<size_t>(2, descr.size()));
  const int64_t bytes = descr.size() > 1 && descr[1] == 'U' ? 4 : 1;
  return CountDigits(digits) == digits.size() && digits.size() < kMostDigits ? bytes * NumberOf(digits) : 0;
}

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", why));
}

// Up to `bytes`. In pieces: what a header promises need not be there.
std::string ReadBytes(std::istream& in, int64_t bytes) {
  constexpr int64_t kPiece = 1 << 20;
  std::string read;
  while (in && static_cast<int64_t>(read.size()) < bytes) {
    const size_t before = read.size();
    const int64_t piece = std::min(kPiece, bytes - static_cast<int64_t>(before));
    read.resize(before + static_cast<size_t>(piece));
    in.read(read.data() + before, piece);
    read.resize(before + static_cast<size_t>(in.gcount()));
  }
  return read;
}

// The header's text, of whichever version of the format.
absl::StatusOr<std::string> ReadHeader(std::istream& in, const std::string& path) {
  const std::string magic = ReadBytes(in, 8);
  if (magic.size() < 8 || magic.substr(0, kMagic.size()) != kMagic)
    return Refuse(path, "no .npy file; expected an array saved by numpy.save");
  const int version = static_cast<uint8_t>(magic[6]);
  if (version < 1 || version > 3)
    return Refuse(path, absl::StrCat("version ", version, " of the .npy format; expected 1 to 3"));
  const size_t digits = version == 1 ? 2 : 4;
  const std::string size = ReadBytes(in, static_cast<int64_t>(digits));
  int64_t length = 0;
  for (size_t i = size.size(); i-- > 0;) length = length << 8 | static_cast<uint8_t>(size[i]);
  if (length > kMostHeaderBytes) return Refuse(path, "its header is too long; expected at most 1 MiB");
  std::string header = ReadBytes(in, length);
  if (size.size() < digits || static_cast<int64_t>(header.size()) < length)
    return Refuse(path, "the file ends within its header");
  return header;
}

}  // namespace

std::vector<std::string> NpyDescrs(DType dtype) {
  switch (dtype) {
    case DType::kF64: return {"<f8"};
    case DType::kF32: return {"<f4"};
    case DType::kF16: return {"<f2"};
    case DType::kBF16: return {"<u2", "<V2", "|V2"};
    case DType::kI64: return {"<i8"};
    case DType::kI32: return {"<i4"};
    case DType::kI16: return {"<i2"};
    case DType::kI8: return {"|i1"};
    case DType::kU64: return {"<u8"};
    case DType::kU32: return {"<u4"};
    case DType::kU16: return {"<u2"};
    case DType::kU8: return {"|u1"};
    case DType::kBool: return {"|b1"};
    case DType::kF8E4M3:
    case DType::kF8E5M2: return {"|u1", "|V1"};
  }
  return {};
}

absl::StatusOr<NpyArray> ParseNpy(std::istream& in, const std::string& path, const NpyJudge& judge) {
  MYCC_ASSIGN_OR_RETURN(const std::string header, ReadHeader(in, path));
  NpyArray array;
  bool fortran_order = false;
  if (!HeaderReader(header).Read(&array.descr, &fortran_order, &array.shape))
    return Refuse(path, "malformed header; expected the keys descr, fortran_order and shape");
  if (!array.descr.empty() && array.descr[0] == '>')
    return Refuse(path, absl::StrCat("big-endian numbers (", array.descr, "); expected little-endian ones"));
  if (fortran_order && array.shape.size() > 1)
    return Refuse(path, "columns first (fortran_order); expected rows first, see numpy.ascontiguousarray");
  if (judge != nullptr) MYCC_RETURN_IF_ERROR(judge(array));
  int64_t bytes = ElementBytes(array.descr);
  if (std::ranges::find(array.shape, 0) != array.shape.end()) bytes = 0;
  for (const int64_t extent : array.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return Refuse(path, "the file ends before its data does");
  }
  array.bytes = ReadBytes(in, bytes);
  if (static_cast<int64_t>(array.bytes.size()) < bytes)
    return Refuse(path, "the file ends before its data does");
  return array;
}

absl::StatusOr<NpyArray> ReadNpy(const std::string& path, const NpyJudge& judge) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return OsError("open", path);
  return ParseNpy(in, path, judge);
}

std::string PrintNpy(const NpyArray& array) {
  std::string header = absl::StrCat("{'descr': '", array.descr, "', 'fortran_order': False, 'shape': (");
  for (int64_t extent : array.shape) absl::StrAppend(&header, extent, ", ");
  if (array.shape.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  // A newline ends the header, which is padded so that the data is aligned.
  header.resize((10 + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - 10 - 1, ' ');
  header += '\n';
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return file + header + array.bytes;
}

absl::Status WriteNpy(const std::string& path, const NpyArray& array) {
  return WriteFileAtomically(path, PrintNpy(array));
}

}  // namespace mycc

#include "laboratory/recorded_file.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's number for gzip's header
constexpr int kRawWindow = -15;       // and for none

absl::Status CannotUnpack(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

// The unpacked bytes of one member or of several, one behind another.
absl::StatusOr<std::string> Inflate(const std::string& path, std::string_view packed, int window,
                                    bool* is_cut) {
  std::string text;
  z_stream stream = {};
  if (inflateInit2(&stream, window) != Z_OK)
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to unpack it"));
  int result = Z_OK;
  std::string chunk(size_t{1} << 18, '\0');
  size_t fed = 0;
  while (result == Z_OK || (result == Z_STREAM_END && window == kGzipWindow && fed < packed.size())) {
    if (result == Z_STREAM_END) inflateReset(&stream);
    // zlib counts in 32 bits.
    const size_t piece = std::min<size_t>(packed.size() - fed, std::numeric_limits<int32_t>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + fed));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    result = inflate(&stream, Z_NO_FLUSH);
    fed += piece - stream.avail_in;
    text.append(chunk, 0, chunk.size() - stream.avail_out);
    if (static_cast<int64_t>(text.size()) > kMostRecordedBytes) result = Z_MEM_ERROR;
  }
  inflateEnd(&stream);
  if (result == Z_MEM_ERROR)
    return CannotUnpack(path, absl::StrCat("unpacks to more than ", kMostRecordedBytes, " bytes"));
  *is_cut = result == Z_BUF_ERROR;
  if (result != Z_STREAM_END && !*is_cut)
    return CannotUnpack(path, absl::StrCat("damaged at byte ", fed, "; expected packed data"));
  return text;
}

// A number of a zip file, least significant byte first; 0 beyond the end.
uint64_t ZipNumber(std::string_view bytes, size_t at, int count) {
  uint64_t number = 0;
  for (int i = count; i-- > 0;) {
    number = number << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0);
  }
  return number;
}

// The one file of an archive, by its directory at the end (PKWARE's APPNOTE, 4.3).
absl::StatusOr<std::string> Unzip(const std::string& path, std::string_view bytes) {
  constexpr std::string_view kEndMark("PK\5\6", 4), kEntryMark("PK\1\2", 4);
  constexpr int kStored = 0, kDeflated = 8;
  const size_t end = bytes.rfind(kEndMark);
  if (end == std::string_view::npos)
    return CannotUnpack(path, "a zip file without its directory; expected a whole one");
  uint64_t at = ZipNumber(bytes, end + 16, 4);
  std::string_view found;
  int method = 0;
  for (uint64_t left = ZipNumber(bytes, end + 10, 2); left > 0; --left) {
    if (at > bytes.size() || !bytes.substr(at).starts_with(kEntryMark))
      return CannotUnpack(path, absl::StrCat("damaged at byte ", at, "; expected an entry of the directory"));
    const uint64_t name_size = ZipNumber(bytes, at + 28, 2);
    const std::string_view name = bytes.substr(std::min<size_t>(at + 46, bytes.size()), name_size);
    if (!name.ends_with("/") && !name.starts_with("__MACOSX/")) {
      if (found.data() != nullptr) return CannotUnpack(path, "a zip file of several files; expected one");
      method = static_cast<int>(ZipNumber(bytes, at + 10, 2));
      const uint64_t size = ZipNumber(bytes, at + 20, 4), header = ZipNumber(bytes, at + 42, 4);
      const uint64_t data = header + 30 + ZipNumber(bytes, header + 26, 2) + ZipNumber(bytes, header + 28, 2);
      if (data > bytes.size() || size > bytes.size() - data)
        return CannotUnpack(path, "a zip file that breaks off; expected a whole one");
      found = bytes.substr(data, size);
    }
    at += 46 + name_size + ZipNumber(bytes, at + 30, 2) + ZipNumber(bytes, at + 32, 2);
  }
  if (found.data() == nullptr) return CannotUnpack(path, "a zip file of no file; expected one");
  if (method == kStored) return std::string(found);
  if (method != kDeflated)
    return CannotUnpack(path, absl::StrCat("zip method ", method, "; expected stored or deflated"));
  bool is_cut = false;
  MYCC_ASSIGN_OR_RETURN(std::string text, Inflate(path, found, kRawWindow, &is_cut));
  if (is_cut) return CannotUnpack(path, "a zip file that breaks off; expected a whole one");
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadRecordedFile(const std::string& path, bool* is_cut) {
  *is_cut = false;
  MYCC_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, kMostRecordedBytes));
  if (bytes.starts_with("\x1f\x8b")) {
    MYCC_ASSIGN_OR_RETURN(bytes, Inflate(path, bytes, kGzipWindow, is_cut));
  } else if (bytes.starts_with("PK\3\4")) {
    MYCC_ASSIGN_OR_RETURN(bytes, Unzip(path, bytes));
  }
  DropByteOrderMark(&bytes);
  return bytes;
}

}  // namespace mycc

#include "tests/laboratory/space_files.h"

#include <zlib.h>

namespace mycc {
namespace {

std::string Deflate(const std::string& text, int window) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string LittleEndian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, number >>= 8) text += static_cast<char>(number);
  return text;
}

}  // namespace

std::string Gzip(const std::string& text) { return Deflate(text, 15 + 16); }

std::string Zip(const std::string& name, const std::string& text, bool deflates) {
  const std::string data = deflates ? Deflate(text, -15) : text;
  const std::string common =
      LittleEndian(20, 2) + LittleEndian(0, 2) + LittleEndian(deflates ? 8 : 0, 2) + LittleEndian(0, 4) +
      LittleEndian(crc32(0, reinterpret_cast<const Bytef*>(text.data()), text.size()), 4) +
      LittleEndian(data.size(), 4) + LittleEndian(text.size(), 4) + LittleEndian(name.size(), 2) +
      LittleEndian(0, 2);
  const std::string local = "PK\3\4" + common + name + data;
  const std::string entry = "PK\1\2" + LittleEndian(20, 2) + common + LittleEndian(0, 14) + name;
  return local + entry + "PK\5\6" + LittleEndian(0, 4) + LittleEndian(1, 2) + LittleEndian(1, 2) +
         LittleEndian(entry.size(), 4) + LittleEndian(local.size(), 4) + LittleEndian(0, 2);
}

}  // namespace mycc

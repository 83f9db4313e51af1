#include "web/gzip.h"

#include <zlib.h>

#include "base/check.h"

namespace mycc {
namespace {

constexpr int kGzipFormat = 16 + MAX_WBITS;
constexpr int kFast = 1;  // an answer is compressed once for each reader
constexpr int kUsualMemory = 8;

z_stream StreamOver(std::string_view bytes) {
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  return stream;
}

}  // namespace

std::string Gzip(std::string_view bytes) {
  z_stream stream = StreamOver(bytes);
  MYCC_CHECK(deflateInit2(&stream, kFast, Z_DEFLATED, kGzipFormat, kUsualMemory, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  MYCC_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Gunzip(std::string_view bytes) {
  z_stream stream = StreamOver(bytes);
  MYCC_CHECK(inflateInit2(&stream, kGzipFormat) == Z_OK);
  std::string plain;
  int state = Z_OK;
  while (state == Z_OK) {
    const size_t done = plain.size();
    plain.resize(done + bytes.size() + 1024);
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + done);
    stream.avail_out = static_cast<uInt>(plain.size() - done);
    state = inflate(&stream, Z_NO_FLUSH);
    plain.resize(stream.total_out);
  }
  MYCC_CHECK(state == Z_STREAM_END);
  inflateEnd(&stream);
  return plain;
}

}  // namespace mycc

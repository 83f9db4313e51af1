// .npy files: written arrays are read back, files written by NumPy are read, and everything else is refused
// in words.
#include "command/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <istream>
#include <streambuf>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class NpyTest : public ::testing::Test {
 protected:
  std::string Path() const { return folder_->path() + "/a.npy"; }
  // A version 1 file with this header.
  absl::StatusOr<NpyArray> ReadHeader(const std::string& header, const std::string& data = "") {
    std::string file("\x93NUMPY\x01", 7);
    file += '\0';
    file += static_cast<char>(header.size());
    file += '\0';
    EXPECT_TRUE(WriteFileAtomically(Path(), file + header + data).ok());
    return ReadNpy(Path());
  }
  void ExpectRefused(const absl::StatusOr<NpyArray>& array, const std::string& words) {
    ASSERT_FALSE(array.ok());
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(words));
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(Path()));
  }

  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST(NpyDescrsTest, FloatsThatNumPyHasNotTravelAsTheirBits) {
  EXPECT_THAT(NpyDescrs(DType::kBF16), testing::ElementsAre("<u2", "<V2", "|V2"));
  EXPECT_THAT(NpyDescrs(DType::kF8E4M3), testing::ElementsAre("|u1", "|V1"));
  EXPECT_THAT(NpyDescrs(DType::kF8E5M2), testing::ElementsAre("|u1", "|V1"));
}

TEST(NpyDescrsTest, IntegersHaveNumPysNames) {
  EXPECT_THAT(NpyDescrs(DType::kI16), testing::ElementsAre("<i2"));
  EXPECT_THAT(NpyDescrs(DType::kU16), testing::ElementsAre("<u2"));
  EXPECT_THAT(NpyDescrs(DType::kU32), testing::ElementsAre("<u4"));
  EXPECT_THAT(NpyDescrs(DType::kU64), testing::ElementsAre("<u8"));
}

TEST_F(NpyTest, RoundTrips) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {3}, {2, 3}, {1, 1, 1, 4}, {0, 5}, {5, 0}}) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::string bytes;
    for (int64_t i = 0; i < count * 4; ++i) bytes += static_cast<char>(i * 37);
    ASSERT_TRUE(WriteNpy(Path(), {"<f4", shape, bytes}).ok());
    const auto array = ReadNpy(Path());
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->descr, "<f4");
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->bytes, bytes);
  }
}

TEST_F(NpyTest, DataIsAlignedTo64Bytes) {
  ASSERT_TRUE(WriteNpy(Path(), {"<f4", {2}, "01234567"}).ok());
  const auto file = ReadFile(Path());
  EXPECT_EQ((file->size() - 8) % 64, 0u);
}

TEST_F(NpyTest, ReadsWhatNumPyWrites) {
  const auto array = ReadHeader("{'descr': '|i1', 'fortran_order': False, 'shape': (2, 1), }   \n", "ab");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(array->bytes, "ab");
}

TEST_F(NpyTest, ColumnsFirst) {
  ExpectRefused(ReadHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "abcd"),
                "columns first");
  EXPECT_TRUE(ReadHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "abcd").ok());
}

TEST_F(NpyTest, BigEndian) {
  ExpectRefused(ReadHeader("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"),
                "big-endian");
}

TEST_F(NpyTest, DataTooShort) {
  ExpectRefused(ReadHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"),
                "ends before its data");
  ExpectRefused(
      ReadHeader(
          "{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999,999999999999,999999999999), }"),
      "ends before its data");
}

TEST_F(NpyTest, MalformedHeaders) {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': <f4, 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "{'other': '<f4'}"}) {
    ExpectRefused(ReadHeader(header), "malformed header");
  }
}

TEST_F(NpyTest, OtherFiles) {
  ASSERT_TRUE(WriteFileAtomically(Path(), "PK\x03\x04 and more of a zip file").ok());
  ExpectRefused(ReadNpy(Path()), "no .npy file");
  ASSERT_TRUE(WriteFileAtomically(Path(), std::string("\x93NUMPY\x09\x00\x00\x00", 10)).ok());
  ExpectRefused(ReadNpy(Path()), "version 9");
  ASSERT_TRUE(WriteFileAtomically(Path(), std::string("\x93NUMPY\x01\x00\xff\x00{", 11)).ok());
  ExpectRefused(ReadNpy(Path()), "ends within its header");
}

// A file that ends, or not, is not read for an array that nobody wants.
TEST_F(NpyTest, TheBytesAreReadOnlyOfWhatWillDo) {
  class Endless final : public std::streambuf {
   public:
    explicit Endless(std::string beginning) : text_(std::move(beginning)) {
      setg(text_.data(), text_.data(), text_.data() + text_.size());
    }
    bool asked_for_more() const { return asked_; }

   protected:
    int_type underflow() override {
      asked_ = true;
      return traits_type::eof();
    }

   private:
    std::string text_;
    bool asked_ = false;
  };
  Endless bytes(PrintNpy({"<f4", {1 << 20, 1 << 20}, ""}));
  std::istream in(&bytes);
  const auto refused = ParseNpy(in, "a.npy", [](const NpyArray& array) {
    EXPECT_EQ(array.shape, (std::vector<int64_t>{1 << 20, 1 << 20}));
    return absl::InvalidArgumentError("another shape");
  });
  EXPECT_EQ(refused.status().message(), "another shape");
  EXPECT_FALSE(bytes.asked_for_more());
  const auto early = ParseNpy(in, "a.npy");
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("no .npy file"));
}

TEST_F(NpyTest, AHeaderWithoutEnd) {
  ASSERT_TRUE(WriteFileAtomically(Path(), std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13)).ok());
  ExpectRefused(ReadNpy(Path()), "header is too long");
}

TEST_F(NpyTest, MissingFile) { EXPECT_TRUE(absl::IsNotFound(ReadNpy(Path()).status())); }

}  // namespace
}  // namespace mycc

// Each wrong way of calling an artifact is refused; the freedoms of callers are accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/runtime/artifact_tables.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// Correct arguments of `scale`, for each test to spoil.
class ArtifactCheckTest : public ::testing::Test {
 protected:
  ArtifactCheckTest() {
    std::memcpy(packed_, packed_header, sizeof packed_header);
    x_ = Tensor(x_data_, {kDLFloat, 32, 1}, matrix_, 2);
    w_ = Tensor(packed_, {kDLUInt, 8, 1}, packed_shape_, 1);
    flag_ = Tensor(&flag_data_, {kMyccCodeBool, 8, 1}, nullptr, 0);
    y_ = Tensor(y_data_, {kDLFloat, 32, 1}, matrix_, 2);
  }

  static DLTensor Tensor(void* data, DLDataType type, int64_t* shape, int ndim) {
    return {data, {kDLCPU, 0}, ndim, type, shape, nullptr, 0};
  }

  int32_t Call() {
    DLTensor* args[] = {&x_, &w_, &flag_, &y_};
    return MyccCall(&mycc_module.entries[kScale], args, 4);
  }
  void ExpectRefused(const std::string& words) {
    EXPECT_NE(Call(), 0);
    EXPECT_THAT(MyccLastError(), HasSubstr(words));
  }

  alignas(64) uint8_t packed_[192] = {};
  float x_data_[7] = {}, y_data_[7] = {};
  uint8_t flag_data_ = 1;
  int64_t matrix_[2] = {2, 3}, packed_shape_[1] = {128};
  DLTensor x_, w_, flag_, y_;
};

TEST_F(ArtifactCheckTest, CorrectCallRunsTheBodyOnTheData) {
  std::vector<void*> seen;
  on_scale = [&](void* const* tensors, uint8_t*, uint8_t*) { seen.assign(tensors, tensors + 4); };
  EXPECT_EQ(Call(), 0) << MyccLastError();
  on_scale = nullptr;
  EXPECT_EQ(seen, (std::vector<void*>{x_data_, packed_, &flag_data_, y_data_}));
}

TEST_F(ArtifactCheckTest, NumberOfArguments) {
  DLTensor* args[] = {&x_};
  EXPECT_NE(MyccCall(&mycc_module.entries[kScale], args, 1), 0);
  EXPECT_STREQ(MyccLastError(), "m_scale: 1 arguments, expected 4");
  EXPECT_NE(MyccCall(&mycc_module.entries[kScale], args, -1), 0);
}

TEST_F(ArtifactCheckTest, NullArguments) {
  EXPECT_NE(MyccCall(&mycc_module.entries[kScale], nullptr, 4), 0);
  EXPECT_THAT(MyccLastError(), HasSubstr("args is NULL"));
  DLTensor* args[] = {&x_, nullptr, &flag_, &y_};
  EXPECT_NE(MyccCall(&mycc_module.entries[kScale], args, 4), 0);
  EXPECT_STREQ(MyccLastError(), "m_scale: args[1] `w`: is NULL");
}

TEST_F(ArtifactCheckTest, Device) {
  x_.device.device_type = kDLCUDA;
  ExpectRefused("args[0] `x`: is on device type 2 (cuda), expected 1 (cpu)");
}

TEST_F(ArtifactCheckTest, PinnedHostMemoryIsHostMemory) {
  x_.device.device_type = kDLCUDAHost;
  EXPECT_EQ(Call(), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, Type) {
  x_.dtype = {kDLFloat, 64, 1};
  ExpectRefused("args[0] `x`: is of type f64, expected f32");
  x_.dtype = {kDLInt, 32, 1};
  ExpectRefused("is of type i32, expected f32");
  x_.dtype = {kDLBfloat, 16, 1};
  ExpectRefused("is of type bf16, expected f32");
  x_.dtype = {kMyccCodeF8E4M3, 8, 1};
  ExpectRefused("is of type f8e4m3, expected f32");
  x_.dtype = {kMyccCodeF8E5M2, 8, 1};
  ExpectRefused("is of type f8e5m2, expected f32");
}

TEST_F(ArtifactCheckTest, Lanes) {
  x_.dtype.lanes = 4;
  ExpectRefused("is of type (code 2, bits 32, lanes 4), expected f32");
}

TEST_F(ArtifactCheckTest, BoolMayBeU8AndNothingElse) {
  flag_.dtype = {kDLUInt, 8, 1};
  EXPECT_EQ(Call(), 0) << MyccLastError();
  flag_.dtype = {kDLInt, 8, 1};
  ExpectRefused("args[2] `flag`: is of type i8, expected bool");
}

TEST_F(ArtifactCheckTest, Shape) {
  int64_t other[] = {3, 2};
  y_.shape = other;
  ExpectRefused("args[3] `y`: has shape [3,2], expected [2,3]");
}

TEST_F(ArtifactCheckTest, NumberOfDimensions) {
  x_.ndim = 1;
  ExpectRefused("args[0] `x`: has shape [2], expected [2,3]");
  x_.ndim = -1;
  ExpectRefused("args[0] `x`: has shape [], expected [2,3]");
}

TEST_F(ArtifactCheckTest, LongShapesAreCut) {
  std::vector<int64_t> many(1000, INT64_MAX);
  x_.shape = many.data();
  x_.ndim = 1000;
  ExpectRefused("expected [2,3]");
}

TEST_F(ArtifactCheckTest, NullShape) {
  x_.shape = nullptr;
  ExpectRefused("args[0] `x`: its shape is NULL");
}

TEST_F(ArtifactCheckTest, Strides) {
  int64_t strides[] = {3, 1};
  x_.strides = strides;
  EXPECT_EQ(Call(), 0) << MyccLastError();
  int64_t transposed[] = {1, 2};
  x_.strides = transposed;
  ExpectRefused(
      "args[0] `x`: has strides [1,2], expected NULL or the compact row-major strides of shape [2,3]");
}

TEST_F(ArtifactCheckTest, StridesOfExtentOneAreIgnored) {
  const int64_t shape[] = {1, 3};
  const MyccArg args[] = {{"x", kDLFloat, 32, 2, shape, 12, 4, 0, nullptr}};
  const MyccEntry entry = {"m_row", nullptr, 1, args,   [](void* const*, uint8_t*, uint8_t*) {},
                           0,       0,       0, nullptr};
  int64_t got[] = {1, 3}, strides[] = {77, 1};
  DLTensor x = Tensor(x_data_, {kDLFloat, 32, 1}, got, 2);
  x.strides = strides;
  DLTensor* tensors[] = {&x};
  EXPECT_EQ(MyccCall(&entry, tensors, 1), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, EmptyTensorsNeedNoDataAndNoStrides) {
  const int64_t shape[] = {0, 3};
  const MyccArg args[] = {{"x", kDLFloat, 32, 2, shape, 0, 4, 0, nullptr},
                          {"y", kDLFloat, 32, 2, shape, 0, 4, 1, nullptr}};
  const MyccEntry entry = {"m_empty", nullptr, 2, args,   [](void* const*, uint8_t*, uint8_t*) {},
                           0,         0,       0, nullptr};
  int64_t got[] = {0, 3}, strides[] = {9, 9};
  DLTensor x = Tensor(nullptr, {kDLFloat, 32, 1}, got, 2), y = Tensor(x_data_, {kDLFloat, 32, 1}, got, 2);
  x.strides = strides;
  DLTensor* tensors[] = {&x, &y};
  EXPECT_EQ(MyccCall(&entry, tensors, 2), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, BoundedExtentsAreWrittenIntoTheShape) {
  const int64_t shape[] = {2, 3};
  const MyccArg args[] = {{"t", kDLOpaqueHandle, 64, 1, &shape[1], 24, 8, 0, nullptr},
                          {"y", kDLFloat, 32, 2, shape, 24, 4, 1, nullptr, 2}};
  const auto body = [](void* const* tensors, uint8_t*, uint8_t*) { *static_cast<int64_t*>(tensors[2]) = 1; };
  const MyccEntry entry = {"m_text", nullptr, 2, args, body, 0, 0, 0, nullptr};
  int64_t extent[] = {3}, got[] = {2, 3};
  const char* texts[] = {"a", nullptr, "b"};
  DLTensor t = Tensor(texts, {kDLOpaqueHandle, 64, 1}, extent, 1),
           y = Tensor(x_data_, {kDLFloat, 32, 1}, got, 2);
  DLTensor* tensors[] = {&t, &y};
  ASSERT_EQ(MyccCall(&entry, tensors, 2), 0) << MyccLastError();
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], 1);
  EXPECT_NE(MyccCall(&entry, tensors, 2), 0);
  EXPECT_STREQ(MyccLastError(), "m_text: args[1] `y`: has shape [2,1], expected [2,3]");
  got[1] = 3;
  t.dtype = {kDLUInt, 64, 1};
  EXPECT_NE(MyccCall(&entry, tensors, 2), 0);
  EXPECT_STREQ(MyccLastError(), "m_text: args[0] `t`: is of type u64, expected string");
}

TEST_F(ArtifactCheckTest, NullData) {
  y_.data = nullptr;
  ExpectRefused("args[3] `y`: its data is NULL");
}

TEST_F(ArtifactCheckTest, ByteOffsetIsHonoured) {
  void* seen = nullptr;
  on_scale = [&](void* const* tensors, uint8_t*, uint8_t*) { seen = tensors[0]; };
  x_.byte_offset = 4;
  EXPECT_EQ(Call(), 0) << MyccLastError();
  on_scale = nullptr;
  EXPECT_EQ(seen, x_data_ + 1);
}

TEST_F(ArtifactCheckTest, AlignmentOfOneElement) {
  x_.byte_offset = 2;
  ExpectRefused("+ byte_offset 2) is not aligned to 4 bytes");
}

TEST_F(ArtifactCheckTest, OutputOverlapsInput) {
  y_.data = x_data_;
  ExpectRefused("args[3] `y`: is an output and overlaps args[0] `x`");
  // The last element of x is the first of y.
  float shared[11];
  x_.data = shared;
  y_.data = shared + 5;
  ExpectRefused("overlaps args[0] `x`");
  y_.data = shared;
  x_.data = shared + 5;
  ExpectRefused("overlaps args[0] `x`");
}

TEST_F(ArtifactCheckTest, NeighboursDoNotOverlap) {
  float shared[12];
  x_.data = shared;
  y_.data = shared + 6;
  EXPECT_EQ(Call(), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, InputsMayShareMemory) {
  packed_[64] = 1;
  flag_.data = packed_ + 64;
  EXPECT_EQ(Call(), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, UnpackedConstIsToldOfPacking) {
  int64_t shape[] = {4};
  w_ = Tensor(x_data_, {kDLFloat, 32, 1}, shape, 1);
  ExpectRefused("args[1] `w`: is of type f32, expected u8, the packed buffer that m_scale_pack fills");
}

TEST_F(ArtifactCheckTest, PackedBufferOfAnotherSize) {
  packed_shape_[0] = 192;
  ExpectRefused("args[1] `w`: has shape [192], expected [128], the packed buffer that m_scale_pack fills");
}

TEST_F(ArtifactCheckTest, PackedBufferIsAlignedTo64) {
  w_.byte_offset = 16;
  ExpectRefused("args[1] `w`");
  EXPECT_THAT(MyccLastError(), HasSubstr("is not aligned to 64 bytes"));
}

TEST_F(ArtifactCheckTest, PackedBufferOfAnotherBuild) {
  packed_[3] ^= 1;
  ExpectRefused(
      "args[1] `w`: was not packed for this build of this argument; expected a buffer filled by "
      "m_scale_pack");
}

TEST_F(ArtifactCheckTest, PackingWritesTheHeaderThatTheCallWants) {
  std::memset(packed_, 0xee, sizeof packed_);
  float weights[4] = {};
  int64_t shape[] = {4};
  DLTensor source = Tensor(weights, {kDLFloat, 32, 1}, shape, 1);
  DLTensor* args[] = {&source, &w_};
  ASSERT_EQ(MyccCall(&mycc_module.entries[kScalePack], args, 2), 0) << MyccLastError();
  EXPECT_EQ(packed_[64], 0xee);
  EXPECT_EQ(Call(), 0) << MyccLastError();
}

TEST_F(ArtifactCheckTest, DeviceOfPrepare) {
  EXPECT_NE(MyccPrepare(1), 0);
  EXPECT_STREQ(MyccLastError(), "m: device 1, expected 0: it is compiled for the CPU");
  EXPECT_EQ(MyccPrepare(0), 0);
}

}  // namespace
}  // namespace mycc

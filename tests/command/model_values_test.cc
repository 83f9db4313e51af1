// The numbers and files that --value gives for inputs of every type.
#include "command/model_values.h"

#include <gmock/gmock.h>

#include "base/temporary_folder.h"
#include "command/npy.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OnnxInput Vector(DType dtype) { return {"x", "a type", dtype, false, std::vector<int64_t>{-1}}; }

absl::StatusOr<NDArray> ValueOf(const std::string& text, const OnnxInput& input) {
  const auto value = ParseModelValue("x=" + text);
  return value.ok() ? ValueFor(*value)(input) : value.status();
}

std::vector<int64_t> IntegersOf(const std::string& text, DType dtype) {
  const auto value = ValueOf(text, Vector(dtype));
  EXPECT_TRUE(value.ok()) << value.status();
  std::vector<int64_t> integers;
  for (int64_t i = 0; value.ok() && i < value->num_elements(); ++i) integers.push_back(value->Get(i).i);
  return integers;
}

TEST(ModelValuesTest, IntegersOfEveryType) {
  EXPECT_THAT(IntegersOf("-128,127", DType::kI8), ElementsAre(-128, 127));
  EXPECT_THAT(IntegersOf("0,65535", DType::kU16), ElementsAre(0, 65535));
  EXPECT_THAT(IntegersOf("-9223372036854775808", DType::kI64), ElementsAre(INT64_MIN));
  EXPECT_THAT(IntegersOf("18446744073709551615", DType::kU64), ElementsAre(-1));
  EXPECT_THAT(IntegersOf("true,0,false,1", DType::kBool), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(IntegersOf("", DType::kI64), ElementsAre());
  for (const auto& [text, dtype] : {std::pair<std::string, DType>{"128", DType::kI8},
                                    {"-1", DType::kU16},
                                    {"-1", DType::kU64},
                                    {"1.0", DType::kI32},
                                    {"1,,2", DType::kI64},
                                    {"x", DType::kF32}}) {
    EXPECT_THAT(ValueOf(text, Vector(dtype)).status().message(), HasSubstr("` is no number of type "))
        << text;
  }
  EXPECT_EQ(ValueOf("True", Vector(DType::kBool)).status().message(),
            "`True` is no value of type bool; expected such as true, or FILE.npy");
}

TEST(ModelValuesTest, FloatsAreRounded) {
  const auto value = ValueOf("0.1,-inf,1e3", Vector(DType::kF16));
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->Get(0).f, RoundFloat(DType::kF16, 0.1));
  EXPECT_EQ(value->Get(1).f, -INFINITY);
  EXPECT_EQ(value->Get(2).f, 1000);
  EXPECT_THAT(ValueOf("1e9", Vector(DType::kF16)).status().message(),
              HasSubstr("`1e9` is no number of type f16"));
}

TEST(ModelValuesTest, TheRankIsTheDeclaredOne) {
  OnnxInput input = Vector(DType::kI64);
  input.shape = std::vector<int64_t>();
  EXPECT_TRUE(ValueOf("3", input)->shape.empty());
  EXPECT_THAT(ValueOf("3,4", input).status().message(), HasSubstr("expected one number"));
  input.shape = std::nullopt;
  EXPECT_THAT(ValueOf("3", input)->shape, ElementsAre(1));
  input.shape = std::vector<int64_t>{2, 2};
  EXPECT_THAT(ValueOf("3", input).status().message(), HasSubstr("expected FILE.npy for a value of rank 2"));
  OnnxInput bits = Vector(DType::kU8);
  bits.is_bits = true;
  EXPECT_EQ(ValueOf("3", bits).status().message(), "`3`; expected FILE.npy for a value of type a type");
}

TEST(ModelValuesTest, FilesHaveTheDeclaredType) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder.ok());
  const std::string path = folder->path() + "/a=b.npy";
  ASSERT_TRUE(WriteNpy(path, {"|b1", {3}, std::string("\0\1\7", 3)}).ok());
  const ModelValue value{"x", path};
  const auto flags = ValueFor(value)(Vector(DType::kBool));
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->bytes, ElementsAre(0, 1, 1));
  EXPECT_THAT(ValueFor(value)(Vector(DType::kI8)).status().message(),
              HasSubstr("holds |b1; expected |i1 (i8)"));
}

TEST(ModelValuesTest, NamesMayHaveEqualsSigns) {
  const auto value = ParseModelValue("a=b=3");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->name, "a=b");
  EXPECT_EQ(value->value, "3");
  EXPECT_FALSE(ParseModelValue("=3").ok());
  EXPECT_FALSE(ParseModelValue("axes").ok());
}

}  // namespace
}  // namespace mycc

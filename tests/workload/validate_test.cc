// Workloads built in code rather than parsed: what the parser sees to, Validate must see to as well.
#include <gtest/gtest.h>

#include "codegen/workload/print.h"
#include "codegen/workload/workload.h"

namespace mycc {
namespace {

// y[i] = x[i] + x[i], valid; tests break one thing each.
class ValidateTest : public testing::Test {
 protected:
  ValidateTest() {
    workload_.name = "f";
    workload_.inputs = {{x_, false}};
    workload_.outputs = {y_};
    Stage stage;
    stage.output = y_;
    stage.axes = {i_};
    stage.value = Load(x_, {VarRef(i_)}) + Load(x_, {VarRef(i_)});
    workload_.stages = {stage};
  }

  std::string Problem() const {
    const absl::Status status = Validate(workload_);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  Stage& stage() { return workload_.stages[0]; }

  const Buffer x_ = MakeBuffer("x", DType::kF32, {8});
  const Buffer y_ = MakeBuffer("y", DType::kF32, {8});
  const Var i_ = MakeVar("i", 8);
  Workload workload_;
};

TEST_F(ValidateTest, AcceptsWhatIsRight) { EXPECT_EQ(Problem(), ""); }

TEST_F(ValidateTest, NamesMustBePrintable) {
  workload_.name = "a b";
  EXPECT_EQ(Problem(),
            "workload a b: `a b` is no name; expected letters, digits and _, not beginning with a digit");
  workload_.name = "f";
  workload_.inputs.push_back({MakeBuffer("max", DType::kF32, {1}), false});
  EXPECT_EQ(Problem(), "workload f: `max` is a word of the language; expected another name");
  workload_.inputs.back().tensor = MakeBuffer("x", DType::kF32, {1});
  EXPECT_EQ(Problem(), "workload f: two tensors are called `x`");
}

TEST_F(ValidateTest, OutputsAreWrittenOnce) {
  workload_.stages.push_back(stage());
  EXPECT_EQ(Problem(), "workload f: the output `y` is written by 2 stages; expected one");
  workload_.stages.clear();
  EXPECT_EQ(Problem(), "workload f: the output `y` is written by 0 stages; expected one");
  workload_.outputs.clear();
  EXPECT_EQ(Problem(), "workload f: `f` has no output; expected at least one");
}

TEST_F(ValidateTest, AxesRunOverTheShape) {
  stage().axes = {MakeVar("i", 7)};
  EXPECT_EQ(
      Problem(),
      "workload f, stage y: the axes of `y` do not run over its shape; expected one axis for each dimension");
}

TEST_F(ValidateTest, OnlyAxesOfTheStageAreUsed) {
  stage().value = Load(x_, {VarRef(MakeVar("k", 8))});
  EXPECT_EQ(Problem(), "workload f, stage y: `k` is no axis of the stage");
}

TEST_F(ValidateTest, OnlyEarlierTensorsAreRead) {
  stage().value = Load(MakeBuffer("z", DType::kF32, {8}), {VarRef(i_)});
  EXPECT_EQ(Problem(), "workload f, stage y: `z` is read; expected an input or an earlier stage");
  stage().value = Load(y_, {VarRef(i_)});
  EXPECT_EQ(Problem(), "workload f, stage y: `y` is read; expected an input or an earlier stage");
}

TEST_F(ValidateTest, TypesOfOperationsAndStages) {
  stage().value = MakeCast(DType::kF32, MakeUnary(Op::kExp, VarRef(i_)));
  EXPECT_EQ(Problem(), "workload f, stage y: `exp` of i64; expected a float");
  stage().value = VarRef(i_);
  EXPECT_EQ(Problem(), "workload f, stage y: `y` is f32 and its value i64; expected one type (write a cast)");
}

TEST_F(ValidateTest, Reductions) {
  stage().reduce = ReduceOp::kSum;
  EXPECT_EQ(Problem(), "workload f, stage y: `sum` over no axes; expected at least one");
  stage().reduce = ReduceOp::kNone;
  stage().reduce_axes = {MakeVar("k", 3)};
  EXPECT_EQ(Problem(), "workload f, stage y: reduction axes without a reduction; expected none");
  stage().reduce = ReduceOp::kArgMax;
  EXPECT_EQ(Problem(), "workload f, stage y: `y` is f32 and its value i32; expected one type (write a cast)");
}

TEST_F(ValidateTest, Reads) {
  stage().value = Load(x_, {VarRef(i_) + 1});
  EXPECT_EQ(Problem(),
            "workload f, stage y: index `i + 1` of `x` (dimension 0) ranges over 1..8; expected 0..7 (guard "
            "the read with "
            "select, or clamp the index)");
}

TEST_F(ValidateTest, SharedOperandsCountAsTheyWouldBeWritten) {
  // 2^40 reads when written out, forty nodes in memory.
  Expr value = Load(x_, {VarRef(i_)});
  for (int level = 0; level < 40; ++level) value = value + value;
  stage().value = value;
  EXPECT_EQ(
      Problem(),
      "workload f, stage y: the expression has more than 65536 operations; expected stages of their own");
}

TEST_F(ValidateTest, CountsAndBytes) {
  EXPECT_EQ(CountFlops(workload_), 8);
  EXPECT_EQ(CountBytes(workload_), 64);
  stage().reduce = ReduceOp::kSum;
  stage().reduce_axes = {MakeVar("k", 5)};
  EXPECT_EQ(CountFlops(workload_), 8 * 5 * 2);
  // Index arithmetic, comparisons and selects are free; the dearer arm counts.
  const Expr read = Load(x_, {VarRef(i_)});
  const Expr inside = MakeBinary(Op::kLt, VarRef(i_) * 2 + 1, IntConst(4));
  stage().value = MakeSelect(inside, MakeUnary(Op::kExp, read * read), MakeUnary(Op::kNeg, read));
  EXPECT_EQ(CountFlops(workload_), 8 * 5 * 3);
}

}  // namespace
}  // namespace mycc

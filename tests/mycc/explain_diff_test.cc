// Two records of a log side by side.
#include "mycc/explain_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "db/tuning_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

class ExplainDiffTest : public testing::Test {
 protected:
  void Add(const std::string& trace, double seconds) {
    const Workload workload =
        ParseWorkload("workload total(x: f32[64]) -> (s: f32[]) {\n  s[] = sum[i:64](x[i])\n}", "test")
            .value();
    v1::Record record;
    record.set_trial(absl::StrCat("j0123456789abcdef/0/0/", ++trials_));
    record.set_workload(CanonicalText(workload));
    record.set_workload_hash(WorkloadHash(workload));
    record.set_shape_erased_hash(ShapeErasedHash(workload));
    record.set_workload_name("total");
    record.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2");
    record.set_trace(trace);
    v1::MeasureResult* const result = record.mutable_result();
    result->set_status(v1::MEASURE_STATUS_OK);
    result->mutable_verification()->set_passed(true);
    result->mutable_timing()->set_protocol(v1::TIMING_PROTOCOL_WARM);
    result->mutable_timing()->set_timer_version(1);
    result->mutable_timing()->set_seconds(seconds);
    ASSERT_TRUE(log_->Append({record}).ok());
  }

  absl::StatusOr<std::string> Diff(const std::string& a, const std::string& b) {
    std::ostringstream out;
    const absl::Status status = ExplainDiff(path_, a, b, out);
    if (!status.ok()) return status;
    return out.str();
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string path_ = folder_.path() + "/log.db";
  const std::unique_ptr<TuningLog> log_ = TuningLog::Open(path_, OpenMode::kCreate).value();
  int trials_ = 0;
};

TEST_F(ExplainDiffTest, TimesCodeDecisionsAndStepsStandSideBySide) {
  Add("v1\nsketch row t1.parts=2 t1.par=0\nsplit(t1.r0, [32, 2])\n", 2e-6);
  Add("v1\nsketch row t1.parts=4 t1.par=0\nsplit(t1.r0, [16, 4])\n", 1e-6);
  const absl::StatusOr<std::string> diff = Diff("1", "2");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(*diff, testing::ContainsRegex("differs  time +2.000 us .* 1.000 us "));
  EXPECT_THAT(*diff, testing::ContainsRegex("code +[0-9]+ of 16 vector registers"));
  EXPECT_THAT(*diff, testing::ContainsRegex("differs  t1.parts +2 +4\n"));
  EXPECT_THAT(*diff, testing::ContainsRegex("\n +t1.par +0 +0\n"));
  EXPECT_LT(diff->rfind("differs  "), diff->find("  workload "));
  EXPECT_THAT(*diff, HasSubstr("- split(t1.r0, [32, 2])\n+ split(t1.r0, [16, 4])\n"));
}

TEST_F(ExplainDiffTest, ARecordIsNamedByItsTrialToo) {
  Add("v1\nsplit(t1.r0, [32, 2])\n", 2e-6);
  const absl::StatusOr<std::string> diff = Diff("1", "j0123456789abcdef/0/0/1");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(*diff, HasSubstr("\n  split(t1.r0, [32, 2])\n"));
  EXPECT_THAT(*diff, testing::Not(HasSubstr("differs")));
}

TEST_F(ExplainDiffTest, ARecordThatNoLongerReplaysSaysSo) {
  Add("v1\nsplit(t1.r0, [32, 2])\n", 2e-6);
  Add("v1\nsplit(t9.r0, [32, 2])\n", 1e-6);
  const absl::StatusOr<std::string> diff = Diff("1", "2");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(*diff, testing::ContainsRegex("differs  code .* not known: .*t9"));
  EXPECT_THAT(*diff, HasSubstr("differs"));
}

TEST_F(ExplainDiffTest, ARecordThatIsNotThereIsAnError) {
  Add("v1\nsplit(t1.r0, [32, 2])\n", 2e-6);
  EXPECT_TRUE(absl::IsNotFound(Diff("1", "7").status()));
}

}  // namespace
}  // namespace mycc

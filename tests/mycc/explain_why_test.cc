// Why a record was chosen: its rival, the margin, and what the model says.
#include "mycc/explain_why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "codegen/target/target.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "db/tuning_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kWhyTarget[] = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2";

class ExplainWhyTest : public testing::Test {
 protected:
  void Add(int inner, double seconds, double half_width) {
    v1::Record record;
    record.set_trial(absl::StrCat("j0123456789abcdef/0/0/", ++trials_));
    record.set_workload(CanonicalText(workload_));
    record.set_workload_hash(WorkloadHash(workload_));
    record.set_shape_erased_hash(ShapeErasedHash(workload_));
    record.set_workload_name("total");
    record.set_target(kWhyTarget);
    record.set_trace(absl::StrCat("v1\nsketch row t1.parts=", inner, "\nsplit(t1.r0, [", 4096 / inner, ", ",
                                  inner, "])\n"));
    v1::MeasureResult* const result = record.mutable_result();
    result->set_status(v1::MEASURE_STATUS_OK);
    result->mutable_verification()->set_passed(true);
    v1::Timing* const timing = result->mutable_timing();
    timing->set_protocol(v1::TIMING_PROTOCOL_WARM);
    timing->set_timer_version(1);
    timing->set_seconds(seconds);
    timing->set_ci_low_seconds(seconds * (1 - half_width));
    timing->set_ci_high_seconds(seconds * (1 + half_width));
    ASSERT_TRUE(log_->Append({record}).ok());
  }

  std::string Why() {
    const Target target = ParseTarget(kWhyTarget).value();
    const auto found = ScheduleFinder(log_.get(), target).Find(workload_);
    EXPECT_TRUE(found.ok()) << found.status();
    std::ostringstream out;
    const absl::Status status = ExplainWhy(*log_, *found, target, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }

  const Workload workload_ =
      ParseWorkload("workload total(x: f32[4096]) -> (s: f32[]) {\n  s[] = sum[i:4096](x[i])\n}", "test")
          .value();
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<TuningLog> log_ =
      TuningLog::Open(folder_.path() + "/log.db", OpenMode::kCreate).value();
  int trials_ = 0;
};

TEST_F(ExplainWhyTest, AScheduleThatWasNotMeasuredHasNoRival) {
  EXPECT_THAT(Why(), HasSubstr("this schedule was not measured here, so it has no rival\n"));
}

TEST_F(ExplainWhyTest, TheOnlyRecordHasNoRival) {
  Add(2, 1e-6, 0.01);
  EXPECT_THAT(Why(), HasSubstr("no rival: no other schedule of this workload has a valid time\n"));
}

TEST_F(ExplainWhyTest, TheMarginStandsOutsideTheErrorBars) {
  Add(2, 1e-6, 0.01);
  Add(4, 1.1e-6, 0.01);
  const std::string why = Why();
  EXPECT_THAT(why, testing::ContainsRegex("chosen +record 1 +1.000 us +\\+-1.00 % +timed by itself"));
  EXPECT_THAT(why, testing::ContainsRegex("rival +record 2 +1.100 us"));
  EXPECT_THAT(why, HasSubstr("margin: the rival takes +10.00 %, +-1.41 %: the intervals do not overlap\n"));
  EXPECT_THAT(why, testing::ContainsRegex("t1.parts +2 +4\n"));
  EXPECT_THAT(why,
              HasSubstr("model of 2 valid and 0 failed results: it finds nothing beyond the analytic model"));
}

TEST_F(ExplainWhyTest, WithinTheErrorBarsTheTwoAreTied) {
  Add(2, 1e-6, 0.01);
  Add(4, 1.01e-6, 0.01);
  EXPECT_THAT(Why(), HasSubstr("the intervals overlap, so the two are tied\n"));
}

TEST_F(ExplainWhyTest, AnUnknownPrecisionIsSaid) {
  Add(2, 1e-6, 0);
  Add(4, 1.5e-6, 0.01);
  const std::string why = Why();
  EXPECT_THAT(why, HasSubstr("margin: the rival takes +50.00 %; how precise that is, is not known\n"));
  EXPECT_THAT(why, Not(HasSubstr("overlap")));
}

}  // namespace
}  // namespace mycc

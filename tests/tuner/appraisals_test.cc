// Appraisals of candidates and their memo.
#include "tuner/cost/appraisals.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"

namespace mycc {
namespace {

TEST(AppraisalMemoTest, KeepsTheLatestAndNoMoreThanItsCapacity) {
  AppraisalMemo memo(8);
  for (int i = 0; i < 100; ++i) {
    memo.Put(absl::StrCat(i), Appraisal{{}, 1.0 + i});
    EXPECT_LE(memo.size(), 8u);
    for (int latest = std::max(0, i - 3); latest <= i; ++latest) {
      const absl::StatusOr<Appraisal>* known = memo.Find(absl::StrCat(latest));
      ASSERT_NE(known, nullptr) << latest << " after " << i;
      EXPECT_EQ((*known)->analytic_seconds, 1.0 + latest);
    }
  }
  EXPECT_EQ(memo.Find("0"), nullptr);
}

TEST(AppraisalMemoTest, RefusalsAreKeptToo) {
  AppraisalMemo memo;
  memo.Put("a", absl::ResourceExhaustedError("17 accumulators"));
  EXPECT_EQ(memo.Find("a")->status().message(), "17 accumulators");
}

TEST(AppraiseTest, ReplaysOrSaysWhyNot) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(256, 256, 256), "test"));
  const Trace good = *ParseTrace("v1\n" + TiledGemmSteps(6, 16, 4, 4, false, true));
  const auto appraisal = Appraise(gemm, Avx2Target(), good);
  ASSERT_TRUE(appraisal.ok()) << appraisal.status();
  EXPECT_EQ(appraisal->features.size(), FunctionFeatureSlots().size());
  EXPECT_GT(appraisal->analytic_seconds, 0);
  const Trace wrong = *ParseTrace("v1\nsplit(t9.a0, [4])\n");
  EXPECT_EQ(Appraise(gemm, Avx2Target(), wrong).status().code(), absl::StatusCode::kFailedPrecondition);
}

// A split into one part and the whole makes a loop of one iteration, which lowering removes.
TEST(CodeDigestTest, EqualCodeHasEqualDigestsWhateverTheSteps) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(64, 64, 64), "test"));
  const auto digest = [&](const std::string& steps) {
    const auto code = CodeDigest(gemm, Avx2Target(), *ParseTrace("v1\n" + steps));
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or("");
  };
  const std::string plain = digest("split(t2.a0, [8])\n");
  EXPECT_EQ(digest("split(t2.a0, [8])\nsplit(t2.a1, [64])\n"), plain);
  EXPECT_NE(digest("split(t2.a0, [16])\n"), plain);
  EXPECT_NE(digest("split(t2.a1, [8])\n"), plain);
  EXPECT_EQ(plain.size(), 32u);
}

TEST(CodeDigestTest, LoopsAreCalledByTheirOrder) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(64, 64, 64), "test"));
  Function one = BuildNaive(gemm);
  const std::string text = TextWithoutNames(one);
  EXPECT_EQ(text.find("t2.a0"), std::string::npos) << text;
  EXPECT_NE(text.find("%2"), std::string::npos) << text;
}

TEST(CodeDigestTest, WhatCannotBeLoweredSaysWhy) {
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(64, 64, 64), "test"));
  const auto code = CodeDigest(gemm, Avx2Target(), *ParseTrace("v1\nsplit(t9.a0, [4])\n"));
  EXPECT_EQ(code.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace mycc

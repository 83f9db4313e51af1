// The normal form of workloads: which dimensions go, and that the same is computed.
#include "codegen/program/normal_form.h"

#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

Workload Parsed(const std::string& text) {
  auto workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

// The normal form, after a check that it computes the same bytes from the same bytes.
Workload CheckedForm(const std::string& text) {
  const Workload workload = Parsed(text), form = NormalForm(workload);
  EXPECT_TRUE(Validate(form).ok()) << Validate(form) << PrintWorkload(form);
  std::vector<NDArray> inputs = RandomInputs(workload, 1), reshaped = inputs;
  for (size_t i = 0; i < reshaped.size(); ++i) reshaped[i].shape = form.inputs[i].tensor->shape;
  const auto expected = RunReference(workload, inputs), got = RunReference(form, reshaped);
  EXPECT_TRUE(expected.ok() && got.ok()) << PrintWorkload(form);
  for (size_t i = 0; expected.ok() && got.ok() && i < expected->size(); ++i)
    EXPECT_EQ((*got)[i].bytes, (*expected)[i].bytes) << PrintWorkload(form);
  return form;
}

void ExpectForm(const std::string& text, const std::string& expected) {
  EXPECT_EQ(CanonicalText(CheckedForm(text)), CanonicalText(Parsed(expected)));
}

TEST(NormalFormTest, AConvolutionOfOneByOneIsAProduct) {
  ExpectForm(
      "workload f(x: f32[1,4,6,8], w: const f32[5,8,1,1], b: const f32[5], r: f32[1,4,6,5]) -> (y: "
      "f32[1,4,6,5]) {"
      " s[n,i,j,k]: f32[1,4,6,5] = sum[c:8](x[n,i,j,c] * w[k,c,0,0])"
      " y[n,i,j,k] = max(s[0,i,j,k] + b[k] + r[0,i,j,k], 0.0) }",
      "workload f(x: f32[24,8], w: const f32[5,8], b: const f32[5], r: f32[24,5]) -> (y: f32[24,5]) {"
      " s[i,k]: f32[24,5] = sum[c:8](x[i,c] * w[k,c])"
      " y[i,k] = max(s[i,k] + b[k] + r[i,k], 0.0) }");
}

TEST(NormalFormTest, RowsOfASoftmaxAreOneDimension) {
  ExpectForm(
      "workload f(x: f32[1,3,4,5]) -> (y: f32[1,3,4,5]) {"
      " m[a,b,c,d]: f32[1,3,4,1] = max[k:5](x[a,b,c,k])"
      " e[a,b,c,d]: f32[1,3,4,5] = exp(x[a,b,c,d] - m[0,b,c,0])"
      " s[a,b,c,d]: f32[1,3,4,1] = sum[k:5](e[a,b,c,k])"
      " y[a,b,c,d] = e[a,b,c,d] / s[0,b,c,0] }",
      "workload f(x: f32[12,5]) -> (y: f32[12,5]) {"
      " m[b]: f32[12] = max[k:5](x[b,k])"
      " e[b,d]: f32[12,5] = exp(x[b,d] - m[b])"
      " s[b]: f32[12] = sum[k:5](e[b,k])"
      " y[b,d] = e[b,d] / s[b] }");
}

TEST(NormalFormTest, HeadsOfAnAttentionStayApart) {
  ExpectForm(
      "workload f(q: f32[1,4,2,8], k: f32[1,5,2,8]) -> (y: f32[1,2,4,5]) {"
      " y[n,h,i,j] = sum[d:8](q[0,i,h,d] * k[0,j,h,d]) }",
      "workload f(q: f32[4,2,8], k: f32[5,2,8]) -> (y: f32[2,4,5]) { y[h,i,j] = sum[d:8](q[i,h,d] * "
      "k[j,h,d]) }");
}

TEST(NormalFormTest, ATensorReadAtTwoAxesKeepsItsDimensions) {
  ExpectForm("workload f(x: f32[3,4,8]) -> (y: f32[3,4,4]) { y[b,i,j] = sum[k:8](x[b,i,k] * x[b,j,k]) }",
             "workload f(x: f32[3,4,8]) -> (y: f32[3,4,4]) { y[b,i,j] = sum[k:8](x[b,i,k] * x[b,j,k]) }");
}

TEST(NormalFormTest, AnAxisThatIsAValueStays) {
  ExpectForm("workload f(x: f32[3,4,8]) -> (y: f32[3,4,8]) { y[a,b,c] = select(b < 2, x[a,b,c], 0.0) }",
             "workload f(x: f32[3,4,8]) -> (y: f32[3,4,8]) { y[a,b,c] = select(b < 2, x[a,b,c], 0.0) }");
}

TEST(NormalFormTest, ReductionsOverImagesAreOverOneDimension) {
  ExpectForm("workload f(x: f32[1,4,6,8]) -> (y: f32[1,1,1,8]) { y[n,i,j,c] = sum[h:4,w:6](x[n,h,w,c]) }",
             "workload f(x: f32[24,8]) -> (y: f32[8]) { y[c] = sum[h:24](x[h,c]) }");
}

TEST(NormalFormTest, WindowsKeepTheirDimensions) {
  ExpectForm(
      "workload f(x: f32[1,6,6,4], r: f32[1,4,4,5], w: const f32[5,4,3,3]) -> (y: f32[1,4,4,5]) {"
      " s[n,i,j,k]: f32[1,4,4,5] = sum[c:4,u:3,v:3](x[n,i+u,j+v,c] * w[k,c,u,v])"
      " y[n,i,j,k] = s[0,i,j,k] + r[0,i,j,k] }",
      "workload f(x: f32[1,6,6,4], r: f32[1,4,4,5], w: const f32[5,4,3,3]) -> (y: f32[1,4,4,5]) {"
      " s[n,i,j,k]: f32[1,4,4,5] = sum[c:4,u:3,v:3](x[n,i+u,j+v,c] * w[k,c,u,v])"
      " y[n,i,j,k] = s[n,i,j,k] + r[n,i,j,k] }");
}

TEST(NormalFormTest, AnIndexIntoOneRowIsStillRead) {
  CheckedForm("workload f(x: f32[1,8], i: i64[4]) -> (y: f32[4,8]) { y[a,b] = x[clamp(i[a], 0, 0),b] }");
  CheckedForm("workload f(x: f32[1,8], m: bool[4]) -> (y: f32[4,8]) { y[a,b] = select(m[a], x[0,b], 0.0) }");
}

TEST(NormalFormTest, GathersKeepTheRowsThatTheyGatherFrom) {
  ExpectForm(
      "workload f(x: f32[9,1,8], i: i64[1,4]) -> (y: f32[1,4,8]) { y[a,b,c] = x[clamp(i[a,b], 0, 8),0,c] }",
      "workload f(x: f32[9,8], i: i64[4]) -> (y: f32[4,8]) { y[b,c] = x[clamp(i[b], 0, 8),c] }");
}

TEST(NormalFormTest, OneElementIsARowOfOne) {
  ExpectForm("workload f(x: f32[1,1,1]) -> (y: f32[1,1,1]) { y[a,b,c] = exp(x[a,b,c]) }",
             "workload f(x: f32[1]) -> (y: f32[1]) { y[a] = exp(x[a]) }");
}

}  // namespace
}  // namespace mycc

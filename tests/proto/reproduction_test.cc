// The shell line that reproduces a failure, read back by bash.
#include "proto/reproduction.h"

#include <cstdio>

#include "gtest/gtest.h"

namespace mycc {
namespace {

v1::Assignment Example() {
  v1::Assignment assignment;
  assignment.set_workload("v1 workload w() {\n  it's 100 % \\ \"!`$HOME\n}");
  assignment.set_target("v1 cpu mcpu=haswell");
  assignment.set_trace("v1\nsplit(a, [4, 8])\n");
  assignment.set_protocol(v1::TIMING_PROTOCOL_COLD);
  assignment.set_seed(7);
  return assignment;
}

TEST(ReproductionTest, IsOneLine) {
  v1::Assignment assignment = Example();
  assignment.set_workload("v1 workload w() {\n  it's\n}");
  EXPECT_EQ(ReproductionOf(assignment),
            "mycc-tune measure <(printf %s $'v1 workload w() {\\n  it\\'s\\n}') --trace <(printf %s "
            "$'v1\\nsplit(a, [4, 8])\\n') "
            "--target $'v1 cpu mcpu=haswell' --cache cold --seed 7");
}

// bash's reading of the line, by a command that shows its words and the files among them.
TEST(ReproductionTest, BashReadsItAsItWasMeant) {
  const v1::Assignment assignment = Example();
  const std::string script =
      "mycc-tune() { printf '%s|' \"$1\"; cat \"$2\"; printf '|%s|' \"$3\"; cat \"$4\"; shift 4; printf "
      "'|%s' \"$@\"; }; " +
      ReproductionOf(assignment);
  std::string command = "bash -c '";
  for (const char c : script) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
  FILE* bash = popen((command + "'").c_str(), "r");
  ASSERT_NE(bash, nullptr);
  std::string words;
  for (int c; (c = std::fgetc(bash)) != EOF;) words += static_cast<char>(c);
  EXPECT_EQ(pclose(bash), 0);
  EXPECT_EQ(words, "measure|" + assignment.workload() + "|--trace|" + assignment.trace() +
                       "|--target|v1 cpu mcpu=haswell|--cache|cold|--seed|7");
}

}  // namespace
}  // namespace mycc

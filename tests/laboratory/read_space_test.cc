// The readers of T1 files, Kernel Tuner's caches and T4 files.
#include "laboratory/read_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "tests/laboratory/space_files.h"

namespace mycc {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// As Kernel Tuner leaves a cache that is open: without an end.
constexpr char kOpenCache[] = R"({
"device_name": "A100",
"kernel_name": "sum_kernel",
"problem_size": 1024,
"tune_params_keys": ["block", "vector", "cached"],
"tune_params": {"block": [16, 32, 64], "vector": ["float", "float4"], "cached": [true, false]},
"objective": "time",
"cache": {
"32,float,False": {"block": 32, "vector": "float", "cached": false, "time": 9.0, "times": [2.0, 4.0], "compile_time": 250.0, "timestamp": "x"},
"16,float4,False": {"block": 16, "vector": "float4", "cached": false, "time": "CompilationFailedConfig", "times": [], "compile_time": 125.0},
"64,float,True": {"block": 64, "vector": "float", "cached": true, "time": 1.5, "compile_time": 0},
"16,float,False": {"block": 16, "vector": "float", "cached": false, "time": "InvalidConfig"},
)";

std::string Closed(const std::string& open) { return open.substr(0, open.rfind(',')) + "}}"; }

class ReadSpaceTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path;
  }
  absl::StatusOr<RecordedSpace> Read(const std::string& bytes, const T1Space* t1 = nullptr) {
    return ReadRecordedSpace(Write("results.json", bytes), t1, &counts_);
  }
  // The refusal of a file, without its path.
  std::string Refusal(const std::string& bytes, const T1Space* t1 = nullptr) {
    const std::string message(Read(bytes, t1).status().message());
    const std::string path = folder_.path() + "/results.json: ";
    EXPECT_EQ(message.substr(0, path.size()), path) << message;
    return message.size() < path.size() ? message : message.substr(path.size());
  }
  T1Space T1() {
    auto t1 = ReadT1(kT1, "t1.json");
    EXPECT_TRUE(t1.ok()) << t1.status();
    return *t1;
  }
  std::string T1Refusal(const std::string& text) {
    return std::string(ReadT1(text, "t1.json").status().message());
  }

  const TemporaryFolder folder_ = *TemporaryFolder::Create();
  SpaceCounts counts_;
};

TEST_F(ReadSpaceTest, T1HasParametersConstraintsAndDefaults) {
  const T1Space t1 = T1();
  EXPECT_EQ(t1.name, "sum");
  ASSERT_EQ(t1.space.parameters().size(), 3u);
  EXPECT_EQ(ValueText(PythonValue::OfList(t1.space.parameters()[0].values)), "[64, 16, 32]");
  EXPECT_EQ(ValueText(PythonValue::OfList(t1.space.parameters()[1].values)), "[float, float4]");
  EXPECT_EQ(ValueText(PythonValue::OfList(t1.space.parameters()[2].values)), "[true, false]");
  EXPECT_THAT(t1.defaults, ElementsAre(2, 0, 1));
  EXPECT_EQ(*CountConfigurations(t1.space), 7);
}

TEST_F(ReadSpaceTest, T1RefusalsNameTheParameterOrTheConstraint) {
  EXPECT_THAT(T1Refusal("{\n\"General\": 1,}"), HasSubstr("t1.json: 2:14: syntax error"));
  EXPECT_EQ(T1Refusal("[]"), "t1.json: 1:1: an array; expected an object");
  EXPECT_EQ(T1Refusal("{}"),
            "t1.json: no \"TuningParameters\" in \"ConfigurationSpace\"; expected an array of parameters");
  EXPECT_EQ(T1Refusal(Closed(kOpenCache)),
            "t1.json: results; expected a T1 file, with \"ConfigurationSpace\"");
  EXPECT_THAT(T1Refusal("{\"ConfigurationSpace\": " + std::string(100'000, '[')),
              HasSubstr("nested too deeply"));
  const auto with = [](const std::string& parameter, const std::string& conditions) {
    return "{\"ConfigurationSpace\": {\"TuningParameters\": [" + parameter + "], \"Conditions\": [" +
           conditions + "]}}";
  };
  EXPECT_EQ(T1Refusal(with("{}", "")), "t1.json: parameter 1: no \"Name\"; expected a text");
  EXPECT_EQ(T1Refusal(with(R"({"Name": "a"})", "")),
            "t1.json: parameter 1, `a`: no \"Values\"; expected a list or the text of one");
  EXPECT_EQ(T1Refusal(with(R"({"Name": "a", "Values": "[1, 2"})", "")),
            "t1.json: parameter 1, `a`: column 6: the text ends; expected `,` or `]`");
  EXPECT_EQ(T1Refusal(with(R"({"Name": "a", "Values": []})", "")),
            "t1.json: parameter 1, `a`: 0 \"Values\"; expected 1 to 100000");
  EXPECT_EQ(T1Refusal(with(R"({"Name": "a", "Values": [1]})", R"({"Expression": "b > 1"})")),
            "t1.json: constraint 1, \"b > 1\": column 1: unknown name `b`; expected a parameter: a");
  EXPECT_EQ(T1Refusal(with(R"({"Name": "a", "Values": [1]})", "{}")),
            "t1.json: \"Conditions\" 1: no \"Expression\"; expected the text of a Python expression");
}

TEST_F(ReadSpaceTest, ACacheIsASpaceOfItsOwn) {
  const auto space = Read(Closed(kOpenCache));
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->name, "sum_kernel");
  EXPECT_EQ(space->device, "A100");
  ASSERT_EQ(space->parameters.size(), 3u);
  EXPECT_EQ(space->parameters[0].name, "block");
  EXPECT_THAT(space->parameters[0].values, ElementsAre("16", "32", "64"));
  EXPECT_TRUE(space->parameters[0].ordered);
  EXPECT_THAT(space->parameters[2].values, ElementsAre("true", "false"));
  EXPECT_FALSE(space->parameters[2].ordered);
  ASSERT_EQ(space->configurations.size(), 4u);
  EXPECT_EQ(counts_.failed, 2);
  const RecordedConfiguration& invalid = space->configurations[0];
  EXPECT_THAT(invalid.choices, ElementsAre(0, 0, 1));
  EXPECT_EQ(invalid.failure, "constraints");
  const RecordedConfiguration& uncompiled = space->configurations[1];
  EXPECT_EQ(uncompiled.failure, "compile");
  EXPECT_TRUE(uncompiled.run_seconds.empty());
  EXPECT_EQ(uncompiled.compile_seconds, 0.125);
  const RecordedConfiguration& repeated = space->configurations[2];
  EXPECT_THAT(repeated.run_seconds, ElementsAre(DoubleEq(0.002), DoubleEq(0.004)));  // and not "time"
  EXPECT_EQ(repeated.compile_seconds, 0.25);
  EXPECT_THAT(space->configurations[3].run_seconds, ElementsAre(DoubleEq(0.0015)));
}

TEST_F(ReadSpaceTest, AnOpenCacheLosesAtMostItsLastEntry) {
  const std::string open = kOpenCache;
  for (const std::string& text :
       {open, open.substr(0, open.rfind(',')), Closed(open).substr(0, Closed(open).size() - 1)}) {
    const auto space = Read(text);
    ASSERT_TRUE(space.ok()) << space.status();
    EXPECT_EQ(space->configurations.size(), 4u);
  }
  for (const size_t cut : {10, 40, 60}) {
    const auto space = Read(open.substr(0, open.size() - cut));
    ASSERT_TRUE(space.ok()) << space.status();
    EXPECT_EQ(space->configurations.size(), 3u) << cut;
  }
}

TEST_F(ReadSpaceTest, WithT1ResultsThatBreakItsConstraintsAreLeftOut) {
  const T1Space t1 = T1();
  const auto space = Read(kOpenCache, &t1);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->name, "sum");
  EXPECT_EQ(space->configurations.size(), 3u);
  EXPECT_EQ(counts_.outside, 1);
  // Numbers are sorted, and the default with them.
  EXPECT_THAT(space->parameters[0].values, ElementsAre("16", "32", "64"));
  EXPECT_THAT(space->default_choices, ElementsAre(1, 0, 1));
}

TEST_F(ReadSpaceTest, PackedFilesAreToldByTheirFirstBytes) {
  const std::string text = Closed(kOpenCache);
  const std::string packed = Gzip(text);
  EXPECT_EQ(Read(packed)->configurations.size(), 4u);
  EXPECT_EQ(Read(Gzip(text.substr(0, 300)) + Gzip(text.substr(300)))->configurations.size(), 4u);
  EXPECT_EQ(Read(Zip("cache.json", text, true))->configurations.size(), 4u);
  EXPECT_EQ(Read(Zip("cache.json", text, false))->configurations.size(), 4u);
  // Its writer was interrupted: what can be unpacked is read.
  EXPECT_GE(Read(packed.substr(0, packed.size() - 12))->configurations.size(), 1u);
  EXPECT_THAT(Refusal("\x1f\x8b garbage"), HasSubstr("damaged at byte"));
  EXPECT_EQ(Refusal("PK\3\4 and nothing"), "a zip file without its directory; expected a whole one");
  std::string broken = Zip("cache.json", text, true);
  broken.erase(100, 40);
  EXPECT_FALSE(Read(broken).ok());
}

TEST_F(ReadSpaceTest, PythonsNumbersThatAreNoJsonAreFailures) {
  const auto space = Read(R"({"tune_params": {"a": [1, 2, 3, 4]}, "note": "a NaN", "cache": {
    "1": {"a": 1, "time": NaN}, "2": {"a": 2, "time": -Infinity, "times": [Infinity]},
    "3": {"a": 3, "time": 1e20}, "4": {"a": 4, "time": 1.0, "times": [1.0, 3.0], "note": "\"Infinity"}}})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(counts_.failed, 3);
  EXPECT_EQ(space->configurations[0].failure, "runtime");
  EXPECT_EQ(space->configurations[3].run_seconds.size(), 2u);
}

TEST_F(ReadSpaceTest, ValuesMayStandInAnEntrysKeyAlone) {
  const auto space =
      Read(R"({"tune_params_keys": ["a", "b", "c"], "tune_params": {"a": [1], "b": [0.5, 2.0], "c": [true]},
    "cache": {"1,0.5,True": {"time": 1.0}, "1,2.0,True": {"time": 2.0}}})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_THAT(space->parameters[1].values, ElementsAre("0.5", "2"));
  EXPECT_EQ(space->configurations.size(), 2u);
  EXPECT_EQ(Refusal(R"({"tune_params": {"a": [1, 2], "b": [3]}, "cache": {"1": {"time": 1.0}}})"),
            "entry \"1\": no value of `a`; expected one of 1, 2");
}

TEST_F(ReadSpaceTest, OfTwoResultsOfAConfigurationTheLaterCounts) {
  const auto space = Read(
      R"({"tune_params": {"a": [1]}, "cache": {"1": {"a": 1, "time": 1.0}, "1.0": {"a": 1.0, "time": 2.0}}})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(counts_.superseded, 1);
  EXPECT_THAT(space->configurations[0].run_seconds, ElementsAre(DoubleEq(0.002)));
}

TEST_F(ReadSpaceTest, T4InBothSpellings) {
  const auto space =
      Read(R"({"schema_version": "1.0.0", "metadata": {"timeunit": "microseconds"}, "results": [
    {"configuration": {"a": 2, "b": "x"}, "times": {"compilation_time": 5e5, "runtimes": [1000, 3000]}, "invalidity": "correct", "correctness": 1},
    {"configuration": {"a": 1, "b": "x"}, "times": {"compilation": 1e6}, "invalidity": "timeout", "correctness": 0},
    {"configuration": {"a": 1, "b": "y"}, "times": {}, "invalidity": "correct", "correctness": 1,
     "measurements": [{"name": "power", "value": 3, "unit": "W"}, {"name": "time", "value": 7000, "unit": ""}]}]})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_THAT(space->parameters[0].values, ElementsAre("1", "2"));
  EXPECT_EQ(space->configurations[0].failure, "timeout");
  EXPECT_EQ(space->configurations[0].compile_seconds, 1);
  EXPECT_THAT(space->configurations[1].run_seconds, ElementsAre(DoubleNear(0.007, 1e-12)));
  EXPECT_THAT(space->configurations[2].run_seconds,
              ElementsAre(DoubleNear(0.001, 1e-12), DoubleNear(0.003, 1e-12)));
  EXPECT_EQ(space->configurations[2].compile_seconds, 0.5);
  EXPECT_EQ(space->device, "results");
}

// Kernel Tuner writes a failure where the objective would stand.
TEST_F(ReadSpaceTest, AFailureMayStandUnderTheObjective) {
  const auto space = Read(R"({"tune_params": {"a": [1, 2, 3, 4]}, "objective": "GFLOP/s", "cache": {
    "1": {"a": 1, "time": 2.0, "times": [1.0, 3.0], "GFLOP/s": 50.0},
    "2": {"a": 2, "GFLOP/s": "CompilationFailedConfig", "compile_time": 10.0},
    "3": {"a": 3, "GFLOP/s": "InvalidConfig"},
    "4": {"a": 4, "time": 4.0, "GFLOP/s": NaN}}})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->objective, "");  // the times say the same, and have repetitions
  EXPECT_THAT(space->configurations[0].run_seconds, ElementsAre(DoubleEq(0.001), DoubleEq(0.003)));
  EXPECT_EQ(space->configurations[1].failure, "compile");
  EXPECT_EQ(space->configurations[1].compile_seconds, 0.01);
  EXPECT_EQ(space->configurations[2].failure, "constraints");
  EXPECT_THAT(space->configurations[3].run_seconds, ElementsAre(DoubleEq(0.004)));
}

TEST_F(ReadSpaceTest, ARateWithoutTimesStandsAsItsReciprocal) {
  const auto space = Read(R"({"tune_params": {"a": [1, 2, 3]}, "objective": "GFLOP/s", "cache": {
    "1": {"a": 1, "GFLOP/s": 50.0}, "2": {"a": 2, "GFLOP/s": 100.0, "compile_time": 2000.0}, "3": {"a": 3, "GFLOP/s": 0}}})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->objective, "GFLOP/s");
  EXPECT_TRUE(space->higher_is_better);
  EXPECT_THAT(space->configurations[0].run_seconds, ElementsAre(DoubleEq(0.02)));
  EXPECT_EQ(space->configurations[1].measuring_seconds, 0);
  EXPECT_EQ(space->configurations[2].failure, "objective");
}

TEST_F(ReadSpaceTest, EnergyCountsAndItsTimesAreTheCost) {
  const auto space = Read(R"({"results": [
    {"configuration": {"a": 1}, "times": {"compilation": 100, "runtimes": [1, 3]}, "invalidity": "correct",
     "measurements": [{"name": "nvml_energy", "value": 7.5, "unit": "J"}], "objectives": ["nvml_energy"]},
    {"configuration": {"a": 2}, "times": {"runtimes": []}, "invalidity": "RuntimeFailedConfig", "objectives": ["nvml_energy"]}]})");
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->objective, "nvml_energy");
  EXPECT_FALSE(space->higher_is_better);
  EXPECT_THAT(space->configurations[0].run_seconds, ElementsAre(7.5));
  EXPECT_THAT(*space->configurations[0].measuring_seconds, DoubleEq(0.004));
  EXPECT_EQ(space->configurations[1].failure, "runtime");
  EXPECT_EQ(
      Refusal(
          R"({"tune_params": {"a": [1]}, "objective": "nvml_energy", "cache": {"1": {"a": 1, "time": 1.0}}})"),
      "entry \"1\": no \"nvml_energy\", the objective; expected a number");
}

TEST_F(ReadSpaceTest, MissingRepetitionsAreLeftOut) {
  const auto cache = Read(R"({"tune_params": {"a": [1, 2]}, "cache": {
    "1": {"a": 1, "time": 9.0, "times": [1.0, NaN, null, 2.0]}, "2": {"a": 2, "time": 5.0, "times": [NaN]}}})");
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_THAT(cache->configurations[0].run_seconds, ElementsAre(DoubleEq(0.001), DoubleEq(0.002)));
  EXPECT_THAT(cache->configurations[1].run_seconds, ElementsAre(DoubleEq(0.005)));
  const auto t4 = Read(R"({"results": [
    {"configuration": {"a": 1}, "times": {"runtimes": [4]}, "invalidity": "correct"},
    {"configuration": {"a": 2}, "times": {"runtimes": [NaN, NaN]}, "invalidity": "correct"},
    {"configuration": {"a": 3}, "times": {}, "invalidity": "correct",
     "measurements": [{"name": "time", "value": "CompilationFailedConfig"}]}]})");
  ASSERT_TRUE(t4.ok()) << t4.status();
  EXPECT_EQ(counts_.failed, 2);
  EXPECT_EQ(t4->configurations[1].failure, "runtime");
  EXPECT_EQ(t4->configurations[2].failure, "compile");
}

TEST_F(ReadSpaceTest, AMeasurementMayTellTheUnit) {
  const auto seconds = Read(R"({"results": [
    {"configuration": {"a": 1}, "times": {"compilation": 2, "runtimes": [1.0, 2.0]}, "invalidity": "correct",
     "measurements": [{"name": "time", "value": 1.5, "unit": "s"}]}]})");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(seconds->configurations[0].run_seconds, ElementsAre(1.0, 2.0));
  EXPECT_EQ(seconds->configurations[0].compile_seconds, 2);
  const auto mixed = Read(R"({"metadata": {"timeunit": "ms"}, "results": [
    {"configuration": {"a": 1}, "times": {"runtimes": [2.0]}, "invalidity": "correct"},
    {"configuration": {"a": 2}, "times": {}, "invalidity": "correct",
     "measurements": [{"name": "time", "value": 0.003, "unit": "s"}]}]})");
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_THAT(mixed->configurations[0].run_seconds, ElementsAre(DoubleEq(0.002)));
  EXPECT_THAT(mixed->configurations[1].run_seconds, ElementsAre(DoubleEq(0.003)));
  EXPECT_EQ(Refusal(R"({"metadata": {"timeunit": "days"}, "results": [
    {"configuration": {"a": 1}, "times": {"runtimes": [1]}, "invalidity": "correct"}]})"),
            "\"timeunit\" is days; expected seconds, milliseconds, microseconds or nanoseconds");
}

// Files from before the schema begin their members with small letters.
TEST_F(ReadSpaceTest, T1InTheOlderSpelling) {
  const auto t1 = ReadT1(R"({"configurationSpace": {"tuningParameters": [
    {"name": "a", "type": "int", "values": "[2**i for i in range(5, 8)]", "default": 64}, {"name": "b", "values": [0]}],
    "constraints": ["a > 32"]}, "kernelSpecification": {"kernelName": "md"}})",
                         "t1.json");
  ASSERT_TRUE(t1.ok()) << t1.status();
  EXPECT_EQ(t1->name, "md");
  EXPECT_EQ(*CountConfigurations(t1->space), 2);
}

TEST_F(ReadSpaceTest, RefusalsNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(Refusal("{}"), "expected \"cache\", Kernel Tuner's, or \"results\", T4's, and not both");
  EXPECT_EQ(Refusal("[1]"), "1:1: an array; expected an object");
  EXPECT_THAT(Refusal("{\n\"cache\": {\"1\": {\"a\": 1 \"b\"}}}"), HasSubstr("2:26: syntax error"));
  EXPECT_EQ(Refusal(R"({"cache": {"1": 3}})"), "entry \"1\" is number; expected an object");
  EXPECT_EQ(Refusal(R"({"cache": {"1": {"a": 1, "time": 1.0}}})"),
            "no \"tune_params\"; expected an object of the parameters and their values");
  EXPECT_EQ(Refusal(R"({"tune_params": {"a": [1]}, "cache": {"1": {"a": 1}}})"),
            "entry \"1\": neither \"time\" nor \"times\"; expected milliseconds or why it failed");
  EXPECT_EQ(Refusal(R"({"tune_params": {"a": [1]}, "cache": {"1": {"a": 1, "time": "InvalidConfig"}}})"),
            "no configuration of the space ran; 1 failed, and 0 results lay outside the space; expected one "
            "that ran");
  EXPECT_EQ(Refusal(R"({"results": [{}]})"),
            "result 0: no \"configuration\"; expected an object of parameters");
  EXPECT_EQ(Refusal(R"({"results": [{"configuration": {"a": {}}}]})"),
            "result 0: \"a\": an object; expected a number, a text, true, false or a list");
  EXPECT_EQ(Refusal(R"({"results": [{"configuration": {"a": 1}, "times": {}, "invalidity": "correct"}]})"),
            "result 0: is \"correct\" and has no time; expected \"runtimes\" in \"times\"");
  const T1Space t1 = T1();
  EXPECT_EQ(
      Refusal(
          R"({"tune_params": {"block": [32], "vector": ["float"], "cached": [false], "extra": [1, 2]}, "cache": {
    "32,float,False,1": {"block": 32, "vector": "float", "cached": false, "extra": 1, "time": 1.0}}})",
          &t1),
      "results differ in `extra`, which is no parameter of the space; expected block, vector, cached");
  EXPECT_TRUE(absl::IsNotFound(ReadRecordedSpace(folder_.path() + "/none.json", nullptr).status()));
}

}  // namespace
}  // namespace mycc

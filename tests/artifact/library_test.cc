// Libraries from kernels to calls in this process: what BuildLibrary writes, what it refuses, and what
// Library::Open takes for an artifact.
#include "codegen/runtime/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/cpu_needs.h"
#include "codegen/artifact/library.h"
#include "codegen/artifact/link.h"
#include "codegen/driver/compile.h"
#include "codegen/runtime/arguments.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LibraryTest : public ::testing::Test {
 protected:
  // A function y = x * w, called `name`.
  KernelSpec Kernel(const std::string& name) {
    const std::string text =
        "workload " + name + "(x: f32[4], w: const f32[4]) -> (y: f32[4]) {\n  y[i] = x[i] * w[i]\n}\n";
    return CompileKernel(ParseWorkload(text, "test").value(), target_, {}).value();
  }
  LibrarySpec Spec(const std::string& module, const std::vector<std::string>& names) {
    LibrarySpec spec{module, target_, {}};
    for (const std::string& name : names) spec.kernels.push_back(Kernel(name));
    return spec;
  }
  std::unique_ptr<Library> Built(const LibrarySpec& spec) {
    EXPECT_TRUE(BuildLibrary(spec, folder_->path()).ok());
    return Library::Open(folder_->path() + "/" + spec.module + ".so").value();
  }

  // Runs on every x86-64 processor.
  const Target target_ = ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value();
  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(LibraryTest, ComputesAfterPackingAndNotBefore) {
  const auto library = Built(Spec("m", {"f"}));
  Arguments arguments = Arguments::Create(library.get(), "f").value();
  for (int i = 0; i < 4; ++i) {
    StoreScalar(DType::kF32, arguments.tensor(0).data() + 4 * i, {1.0 + i, 0});
    StoreScalar(DType::kF32, arguments.tensor(1).data() + 4 * i, {10, 0});
  }
  EXPECT_THAT(std::string(arguments.Call().message()),
              HasSubstr("args[1] `w`: was not packed for this build"));
  ASSERT_TRUE(arguments.Pack().ok());
  ASSERT_TRUE(arguments.Call().ok());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(LoadScalar(DType::kF32, arguments.tensor(2).data() + 4 * i).f, 10 + 10 * i);
}

TEST_F(LibraryTest, SaysWhatItHas) {
  const auto library = Built(Spec("m", {"f", "g"}));
  EXPECT_EQ(library->module(), "m");
  ASSERT_EQ(library->functions().size(), 2u);
  EXPECT_EQ(library->functions()[1].name, "m_g");
  EXPECT_EQ(library->Find("g").value(), library->Find("m_g").value());
  const absl::Status missing = library->Find("h").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("expected one of: m_f, m_g"));
  EXPECT_TRUE(library->Prepare(0).ok());
  EXPECT_THAT(std::string(library->Prepare(7).message()), HasSubstr("device 7, expected 0"));
}

TEST_F(LibraryTest, MayBeRenamed) {
  Built(Spec("m", {"f"}));
  const std::string moved = folder_->path() + "/else.so";
  std::filesystem::rename(folder_->path() + "/m.so", moved);
  EXPECT_EQ(Library::Open(moved).value()->module(), "m");
}

TEST_F(LibraryTest, WritesFourFiles) {
  Built(Spec("m", {"f"}));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_THAT(names, ElementsAre("dlpack.h", "m.h", "m.json", "m.so"));
}

TEST_F(LibraryTest, NamesThatAreNoIdentifiers) {
  for (const char* module : {"", "1st", "a-b", "a b", "\xc3\xa4"}) {
    const absl::Status status = BuildLibrary(Spec(module, {"f"}), folder_->path()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << module;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not a C identifier"));
  }
}

TEST_F(LibraryTest, SymbolsThatClash) {
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"f", "f"}, {"prepare"}, {"json"}, {"last_error"}, {"f", "f_pack"}}) {
    const absl::Status status = BuildLibrary(Spec("m", names), folder_->path()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << names[0];
    EXPECT_THAT(std::string(status.message()), HasSubstr("twice"));
  }
}

TEST_F(LibraryTest, FolderThatIsNotThere) {
  const absl::Status status = BuildLibrary(Spec("m", {"f"}), folder_->path() + "/nowhere").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere"));
}

// No object defines the symbol that is to be exported.
TEST_F(LibraryTest, MissingSymbolIsFoundWhenLinking) {
  const auto linked = LinkSharedObject({}, {"f"}, "m.so");
  EXPECT_TRUE(absl::IsInternal(linked.status()));
  EXPECT_THAT(std::string(linked.status().message()), HasSubstr("'f' failed: symbol not defined"));
}

TEST_F(LibraryTest, FailedLinkLeavesTheNextOneAlone) {
  EXPECT_FALSE(LinkSharedObject({"no object"}, {"f"}, "m.so").ok());
  Built(Spec("m", {"f"}));
}

TEST_F(LibraryTest, FilesThatAreNoArtifacts) {
  const std::string path = folder_->path() + "/text.so";
  EXPECT_TRUE(absl::IsNotFound(Library::Open(path).status()));
  ASSERT_TRUE(WriteFileAtomically(path, "not even an object").ok());
  const absl::Status status = Library::Open(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is no library compiled by mycc"));
}

TEST(CpuNeedsTest, FollowsTheFeatures) {
  const auto names = [](const std::string& text) {
    std::vector<std::string> names;
    const auto needs = CpuNeeds(ParseTarget(text).value());
    EXPECT_TRUE(needs.ok()) << needs.status();
    for (const MyccCpuNeed& need : *needs) names.push_back(need.name);
    return names;
  };
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  EXPECT_THAT(names("v1 cpu mcpu=haswell l1d=32K l2=256K threads=2"),
              AllOf(Contains("avx2"), Contains("fma"), Contains("bmi2"), Not(Contains("avx512f"))));
  EXPECT_THAT(names("v1 cpu mcpu=skylake-avx512 l1d=32K l2=1M threads=2"),
              AllOf(Contains("avx512f"), Contains("avx512vl"), Not(Contains("avx512vnni"))));
  // A feature that is switched off takes along those that build on it.
  EXPECT_THAT(names("v1 cpu mcpu=skylake-avx512 features=-avx512f l1d=32K l2=1M threads=2"),
              AllOf(Contains("avx2"), Not(Contains("avx512f")), Not(Contains("avx512vl"))));
}

// On any processor: everything that detection names can be asked for when a library is loaded.
TEST(CpuNeedsTest, WhatIsDetectedCanBeChecked) {
  const auto needs = CpuNeeds(DetectHostTarget());
  EXPECT_TRUE(needs.ok()) << needs.status();
}

// The loader would map what is missing, and the process would end with SIGBUS.
TEST_F(LibraryTest, AFileThatIsCutShortIsNoLibrary) {
  Built(Spec("m", {"f"}));
  const std::string path = folder_->path() + "/m.so", cut = folder_->path() + "/cut.so";
  const std::string whole = ReadFile(path).value();
  for (size_t bytes = 1; bytes < whole.size() / 2; bytes += whole.size() / 37) {
    ASSERT_TRUE(WriteFileAtomically(cut, whole.substr(0, bytes)).ok());
    const absl::Status status = Library::Open(cut, 0).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << bytes << " bytes: " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is no library compiled by mycc"));
  }
  ASSERT_TRUE(WriteFileAtomically(cut, whole.substr(0, whole.size() / 2)).ok());
  EXPECT_THAT(std::string(Library::Open(cut, 0).status().message()),
              HasSubstr("the file is cut short: it has "));
}

}  // namespace
}  // namespace mycc

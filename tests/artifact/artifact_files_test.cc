// The files of an artifact: what stands in each of them, that they say the same, and that nobody meets a
// library with a missing part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/describe.h"
#include "codegen/artifact/entry.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/runtime/artifact/embed.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class ArtifactFilesTest : public ::testing::Test {
 protected:
  KernelSpec Kernel(const std::string& text, const std::string& steps = "") const {
    return CompileKernel(ParseWorkload(text, "test").value(), target_,
                         ParseTrace(absl::StrCat("v1\n", steps)).value())
        .value();
  }
  // gemm has a const input and count 3; its schedule is a hit. half is a miss.
  LibrarySpec Spec() const {
    LibrarySpec spec{"lib", target_, {}};
    spec.kernels.push_back(
        Kernel("# count 3\nworkload gemm(x: f32[4,6], w: const f32[6,5]) -> (y: f32[4,5]) {\n"
               "  y[i,j] = sum[k:6](x[i,k] * w[k,j])\n}",
               "split(t2.a0, [2])\n"));
    spec.kernels[0].reason = Reason::kHit;
    spec.kernels[0].record = 17;
    spec.kernels[0].expected_seconds = 2.5e-6;
    spec.kernels.push_back(Kernel("workload half(a: bf16[7]) -> (b: bf16[7]) { b[i] = a[i] * 0.5 }"));
    spec.kernels[1].predicted_seconds = 1.5e-6;
    return spec;
  }
  LibrarySpec Scaling(double factor) const {
    return {"lib",
            target_,
            {Kernel(absl::StrCat("workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] * ", factor, ".0 }"))}};
  }
  std::string Path(const std::string& name) const { return folder_->path() + "/" + name; }
  std::string Read(const std::string& name) const { return ReadFile(Path(name)).value(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  // Runs on every x86-64 processor.
  const Target target_ = ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value();
  absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(ArtifactFilesTest, TheJsonSaysWhatEachFunctionIs) {
  ASSERT_TRUE(BuildLibrary(Spec(), folder_->path()).ok());
  const Json json = Json::parse(Read("lib.json"));
  EXPECT_EQ(json["module"], "lib");
  EXPECT_EQ(json["target"], PrintTarget(target_));
  ASSERT_EQ(json["functions"].size(), 2u);
  const Json gemm = json["functions"][0], half = json["functions"][1];
  EXPECT_EQ(gemm["name"], "lib_gemm");
  ASSERT_EQ(gemm["args"].size(), 3u);
  EXPECT_EQ(gemm["args"][0], (Json{{"name", "x"}, {"kind", "input"}, {"dtype", "f32"}, {"shape", {4, 6}}}));
  EXPECT_EQ(gemm["args"][1]["kind"], "const");
  EXPECT_GE(gemm["args"][1]["packed_bytes"], kPackedHeaderBytes + int64_t{6} * 5 * 4);
  EXPECT_EQ(gemm["args"][2], (Json{{"name", "y"}, {"kind", "output"}, {"dtype", "f32"}, {"shape", {4, 5}}}));
  EXPECT_EQ(gemm["reason"], "hit");
  EXPECT_EQ(gemm["record"], 17);
  EXPECT_EQ(gemm["expected_seconds"], 2.5e-6);
  EXPECT_EQ(gemm["trace"], "v1\nsplit(t2.a0, [2])\n");
  EXPECT_EQ(half["reason"], "miss");
  EXPECT_TRUE(half["record"].is_null());
  EXPECT_FALSE(half.contains("expected_seconds"));
  EXPECT_FALSE(gemm.contains("predicted_seconds"));
  EXPECT_EQ(half["predicted_seconds"], 1.5e-6);
}

// It can be compiled again from there; how often a model has it is no part of the function.
TEST_F(ArtifactFilesTest, TheJsonHoldsTheWorkload) {
  const LibrarySpec spec = Spec();
  const std::string text = Json::parse(LibraryJson(spec))["functions"][0]["workload"];
  EXPECT_THAT(text, ::testing::StartsWith("v1 workload gemm("));
  EXPECT_THAT(text, Not(HasSubstr("count")));
  const auto again = ParseWorkload(text, "json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CodeDigest(CompileKernel(*again, target_, spec.kernels[0].trace)->lowered, target_, ""),
            CodeDigest(spec.kernels[0].lowered, target_, ""));
}

TEST_F(ArtifactFilesTest, TheHeaderDeclaresWhatIsExported) {
  const LibrarySpec spec = Spec();
  ASSERT_TRUE(BuildLibrary(spec, folder_->path()).ok());
  const std::string header = Read("lib.h");
  const std::vector<Entry> entries = EntriesOf(spec).value();
  EXPECT_THAT(ExportedSymbols(spec, entries), ElementsAre("lib_prepare", "lib_last_error", "lib_json",
                                                          "lib_gemm", "lib_gemm_pack", "lib_half"));
  for (const std::string& symbol : ExportedSymbols(spec, entries))
    EXPECT_THAT(header, HasSubstr(absl::StrCat(" ", symbol, "("))) << "or *" << symbol;
  EXPECT_THAT(header, HasSubstr("args[1]  w: u8["));
  EXPECT_THAT(header, HasSubstr("packed once by lib_gemm_pack"));
  EXPECT_THAT(header, HasSubstr("args[0]  a: bf16[7]  input"));
  EXPECT_THAT(header, HasSubstr(PrintTarget(target_)));
  EXPECT_THAT(header, Not(HasSubstr("$"))) << "a word of the pattern is left";
  EXPECT_EQ(Read("dlpack.h"), DlpackHeader());
}

TEST_F(ArtifactFilesTest, TheLibrarySaysWhatItsFilesSay) {
  ASSERT_TRUE(BuildLibrary(Spec(), folder_->path()).ok());
  const auto library = Library::Open(Path("lib.so"));
  ASSERT_TRUE(library.ok()) << library.status();
  std::vector<std::string> names;
  for (const auto& function : (*library)->functions()) names.push_back(function.name);
  EXPECT_THAT(names, ElementsAre("lib_gemm", "lib_half"));
  EXPECT_THAT(Read("lib.so"), HasSubstr(Read("lib.json"))) << "what lib_json() returns";
}

TEST_F(ArtifactFilesTest, FunctionsWhoseNamesAreNoIdentifiers) {
  for (const std::string& name :
       {std::string("a-b"), std::string("2nd"), std::string(), std::string(201, 'f')}) {
    LibrarySpec spec = Scaling(2);
    spec.kernels[0].workload.name = name;
    const absl::Status status = BuildLibrary(spec, folder_->path()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("the function's name `", name, "` is not a C identifier")));
    EXPECT_THAT(Names(), ElementsAre());
  }
  LibrarySpec longest = Scaling(2);
  longest.kernels[0].workload.name = std::string(200, 'f');
  EXPECT_TRUE(BuildLibrary(longest, folder_->path()).ok());
}

TEST_F(ArtifactFilesTest, APlaceThatCannotBeWrittenIsNamed) {
  // A file where the folder should be, and a folder where a file should be.
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "").ok());
  const absl::Status no_folder = BuildLibrary(Scaling(2), Path("file")).status();
  EXPECT_FALSE(no_folder.ok());
  EXPECT_THAT(std::string(no_folder.message()), HasSubstr(Path("file")));
  std::filesystem::create_directory(Path("lib.json"));
  const absl::Status no_file = BuildLibrary(Scaling(2), folder_->path()).status();
  EXPECT_FALSE(no_file.ok());
  EXPECT_THAT(std::string(no_file.message()), HasSubstr("lib.json"));
  EXPECT_THAT(Names(), ElementsAre("file", "lib.json")) << "and nothing of the library";
}

// The .so is written last.
TEST_F(ArtifactFilesTest, AFailureAtTheLastFileLeavesTheOthersAsTheyWere) {
  ASSERT_TRUE(BuildLibrary(Scaling(2), folder_->path()).ok());
  const std::string json = Read("lib.json"), header = Read("lib.h");
  std::filesystem::remove(Path("lib.so"));
  std::filesystem::create_directory(Path("lib.so"));
  EXPECT_FALSE(BuildLibrary(Spec(), folder_->path()).ok());
  EXPECT_EQ(Read("lib.json"), json);
  EXPECT_EQ(Read("lib.h"), header);
  EXPECT_THAT(Names(), ElementsAre("dlpack.h", "lib.h", "lib.json", "lib.so"));
}

// A limit on the size of files stands for a full disk.
TEST_F(ArtifactFilesTest, AFullDiskLeavesTheOldLibrary) {
  ASSERT_TRUE(BuildLibrary(Scaling(2), folder_->path()).ok());
  const std::string so = Read("lib.so"), json = Read("lib.json");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = so.size() - 1;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = BuildLibrary(Spec(), folder_->path()).status();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Read("lib.so"), so);
  EXPECT_EQ(Read("lib.json"), json);
  EXPECT_THAT(Names(), ElementsAre("dlpack.h", "lib.h", "lib.json", "lib.so"));
}

// Two processes write one library: each file is that of one of them, whole, whenever it is opened.
TEST_F(ArtifactFilesTest, TwoWritersLeaveWholeFiles) {
  const LibrarySpec specs[] = {Scaling(2), Scaling(3)};
  ASSERT_TRUE(BuildLibrary(specs[0], folder_->path()).ok());
  for (const LibrarySpec& spec : specs) {
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer != 0) continue;
    bool written = true;
    for (int i = 0; i < 8; ++i) written &= BuildLibrary(spec, folder_->path()).ok();
    _exit(written ? 0 : 1);
  }
  for (int writing = 2; writing > 0;) {
    EXPECT_THAT(Read("lib.json"), AnyOf(LibraryJson(specs[0]), LibraryJson(specs[1])));
    const auto library = Library::Open(Path("lib.so"));
    EXPECT_TRUE(library.ok()) << library.status();
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) <= 0) continue;
    EXPECT_EQ(status, 0) << "a writer failed";
    --writing;
  }
  EXPECT_THAT(Names(), ElementsAre("dlpack.h", "lib.h", "lib.json", "lib.so"));
}

}  // namespace
}  // namespace mycc

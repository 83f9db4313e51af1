// The main function of both programs: unknown commands, statuses, and errors of the system.
#include "command/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <system_error>

#include "absl/status/status.h"
#include "command/choices.h"
#include "command/misuse.h"

namespace mycc {
namespace {

struct Ended {
  int status;
  std::string error;
};

// A program with one command, `go`, that does `work`.
Ended Call(std::vector<std::string> words, const std::function<absl::Status()>& work) {
  CLI::App app("a program", "program");
  app.require_subcommand(1);
  CLI::App* const go = app.add_subcommand("go", "go");
  std::string direction;
  go->add_option("--direction", direction, "where")->check(OneOf({"north", "south"}));
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStderr();
  const int status = RunCommandLine(&app, static_cast<int>(argv.size()), argv.data(), work);
  return {status, testing::internal::GetCapturedStderr()};
}

absl::Status Nothing() { return absl::OkStatus(); }

TEST(CommandLineTest, AWordThatIsNoChoiceHasTheNearestOne) {
  const Ended ended = Call({"go", "--direction", "nort"}, Nothing);
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(
      ended.error,
      "program: --direction: `nort`; expected one of north, south (did you mean north?); see program go "
      "--help\n");
}

TEST(CommandLineTest, AnUnknownCommandHasTheNearestOne) {
  const Ended ended = Call({"gp"}, Nothing);
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.error,
            "program: unknown command `gp`; expected one of go, completion; see program --help\n");
  EXPECT_EQ(Call({}, Nothing).error,
            "program: a command is required; expected one of go, completion; see program --help\n");
  EXPECT_EQ(Call({"--color", "never", "og"}, Nothing).error,
            "program: unknown command `og`; expected one of go, completion; see program --help\n");
}

TEST(CommandLineTest, AnUnknownOptionHasTheNearestOne) {
  EXPECT_EQ(Call({"go", "--directoin", "north"}, Nothing).error,
            "program: unknown option `--directoin` (did you mean --direction?); see program go --help\n");
  EXPECT_EQ(Call({"go", "--colour=never"}, Nothing).error,
            "program: unknown option `--colour=never` (did you mean --color?); see program go --help\n");
  EXPECT_EQ(Call({"go", "now"}, Nothing).error,
            "program: unexpected argument `now`; see program go --help\n");
}

TEST(CommandLineTest, AnOptionStandsAfterTheCommandThatTakesIt) {
  EXPECT_EQ(Call({"--direction", "north", "go"}, Nothing).error,
            "program: unknown option `--direction` here; it stands after `go`; see program go --help\n");
  EXPECT_EQ(Call({"--color=never", "--direction=north", "go"}, Nothing).error,
            "program: unknown option `--direction` here; it stands after `go`; see program go --help\n");
  EXPECT_EQ(Call({"--frob", "x", "go"}, Nothing).error,
            "program: unknown option `--frob` before a command; expected one of go, completion; see program "
            "go --help\n");
  EXPECT_EQ(Call({"--color", "never", "go"}, Nothing).status, 0);
}

TEST(CommandLineTest, AWrongCallNamesItsHelp) {
  const Ended ended = Call({"go"}, [] { return Misuse("--direction: nowhere"); });
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.error, "program: --direction: nowhere; see program go --help\n");
}

TEST(CommandLineTest, AnErrorIsOneLine) {
  const Ended ended = Call({"go"}, [] { return absl::NotFoundError("no\nway\x1b[31m\n"); });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error, "program: no way\\x1b[31m\n");
}

// `ulimit -u`, `ulimit -v`: the standard library throws, and nobody else catches it.
TEST(CommandLineTest, ASystemThatGivesNoThreadIsAnErrorLine) {
  const Ended ended = Call({"go"}, []() -> absl::Status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error,
            "program: the system gives no more threads or files: Resource temporarily unavailable; see "
            "ulimit -a\n");
  EXPECT_EQ(Call({"go"}, []() -> absl::Status { throw std::bad_alloc(); }).status, 1);
}

}  // namespace
}  // namespace mycc

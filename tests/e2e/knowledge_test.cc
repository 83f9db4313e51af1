// Knowledge that is shared and kept, as users meet it: signed packs, records of others that are measured
// again, and an upgrade that measures only what changed.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KnowledgeTest : public ::testing::Test {
 protected:
  KnowledgeTest() { std::ofstream(gemm_) << kTestWorkload; }

  static std::string Succeed(const std::vector<std::string>& arguments) {
    const Ran ran = RunMyccTune(arguments);
    EXPECT_EQ(ran.exit_status, 0) << ::testing::PrintToString(arguments) << "\n" << ran.output;
    return ran.output;
  }
  // Makes a pack of Ann's measurements.
  void MakePack() {
    Succeed({"tune", gemm_, "--log", Path("ann.db"), "--trials", "4", "--quiet"});
    Succeed({"log", "keygen", "-o", Path("ann")});
    Succeed(
        {"log", "export", "--log", Path("ann.db"), "--sign", Path("ann"), "--signer", "ann", "-o", pack_});
  }
  static json LastLine(const std::string& output) {
    const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
    return lines.empty() ? json() : json::parse(lines.back(), nullptr, /*allow_exceptions=*/false);
  }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  TestFolder folder_;
  const std::string gemm_ = Path("gemm.te"), log_ = Path("own.db"), pack_ = Path("pack.jsonl");
};

TEST_F(KnowledgeTest, RecordsOfOthersCountOnceTheyWereMeasuredHere) {
  MakePack();
  Succeed({"log", "import", "--log", log_, "--verify", Path("ann.pub"), pack_});
  EXPECT_EQ(RunMyccTune({"best", gemm_, "--log", log_}).exit_status, 1) << "nothing of theirs is served";
  const Ran unsigned_import = RunMyccTune({"log", "import", "--log", Path("plain.db"), pack_});
  EXPECT_EQ(unsigned_import.exit_status, 1);
  EXPECT_THAT(unsigned_import.output, HasSubstr("is a signed pack; expected --verify"));

  EXPECT_THAT(Succeed({"reverify", "--log", log_, "--top", "1"}),
              AllOf(HasSubstr("measures schedules of others for v1 cpu"), HasSubstr("100 %  1 trial (1 ok)"),
                    HasSubstr("gemm")));
  const json best = LastLine(Succeed({"best", gemm_, "--log", log_, "--json"}));
  EXPECT_EQ(best["workload_name"], "gemm");
  EXPECT_EQ(best["provenance"]["strategy"], "listed/history");
  // The pack has those of the four that were proven, which the moment decides; this measures the rest.
  Succeed({"reverify", "--log", log_});
  EXPECT_THAT(Succeed({"reverify", "--log", log_}), HasSubstr("nothing to measure: no foreign record waits"));
  EXPECT_EQ(LastLine(Succeed({"log", "list", "--log", log_, "--foreign", "--json"}))["waits"], false);
  EXPECT_THAT(Succeed({"log", "gc", "--log", log_}),
              HasSubstr(" foreign records too, whose schedules were measured here"));
}

TEST_F(KnowledgeTest, AServerMeasuresTheForeignRecordsOfItsLog) {
  MakePack();
  Succeed({"log", "import", "--log", log_, "--verify", Path("ann.pub"), pack_});
  const std::string output = Path("output"), address = "unix:" + Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  const Ran early = RunMyccTune({"reverify", "--server", address});
  EXPECT_EQ(early.exit_status, 1);
  EXPECT_THAT(early.output, HasSubstr("no device measures for the server now"));
  Background worker({"worker", "--server", address, "--name", "w"}, Path("worker"));
  ASSERT_TRUE(WaitForText(Path("worker"), "registered", 60)) << ReadAll(Path("worker"));
  EXPECT_THAT(Succeed({"reverify", "--server", address, "--workload", "conv"}),
              HasSubstr("nothing to measure"));
  const std::string detached =
      Succeed({"reverify", "--server", address, "--workload", "gemm", "--only-when-idle", "--detach"});
  EXPECT_THAT(detached,
              AllOf(HasSubstr("on devices that have nothing else to do"), HasSubstr("mycc-tune watch j")));
  const std::string watched = Succeed({"watch", JobIn(detached), "--server", address});
  EXPECT_THAT(watched, HasSubstr("100 %  "));
  EXPECT_EQ(LastLine(Succeed({"best", gemm_, "--server", address, "--json"}))["result"]["device"]["worker"],
            "w");
  EXPECT_EQ(worker.Terminate(), 0);
  EXPECT_EQ(server.Terminate(), 0);
}

// Nobody waits for the job any more, and it is ended; what it measured counts.
TEST_F(KnowledgeTest, AnInterruptEndsTheJobOfAServer) {
  MakePack();
  Succeed({"log", "import", "--log", log_, "--verify", Path("ann.pub"), pack_});
  const std::string output = Path("output"), address = "unix:" + Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  Background reverify({"reverify", "--server", address, "--target", "host"}, Path("reverify"));
  ASSERT_TRUE(WaitForText(Path("reverify"), "measures schedules of others", 60)) << ReadAll(Path("reverify"));
  reverify.Interrupt();
  EXPECT_EQ(reverify.Wait(), 130);
  EXPECT_THAT(ReadAll(Path("reverify")), HasSubstr("the same command measures the rest"));
  EXPECT_EQ(LastLine(Succeed({"jobs", "--server", address, "--json"}))["state"], "cancelled");
  EXPECT_EQ(server.Terminate(), 0);
}

// Digests of another build stand for an upgrade that changed the code.
TEST_F(KnowledgeTest, AnUpgradeMeasuresOnlyWhatChanged) {
  // One schedule alone, so that no other can be faster when it is measured again.
  Succeed({"tune", gemm_, "--log", Path("before.db"), "--trials", "1", "--quiet"});
  const std::string exported = Succeed({"log", "export", "--log", Path("before.db")});
  const json best = LastLine(Succeed({"best", gemm_, "--log", Path("before.db"), "--json"}));
  const std::string digest = best["result"]["code_digest"];
  std::ofstream(Path("changed.jsonl")) << absl::StrReplaceAll(exported, {{digest, std::string(64, 'a')}});
  Succeed({"log", "import", "--log", log_, Path("changed.jsonl")});

  EXPECT_THAT(Succeed({"upgrade-check", "--log", Path("before.db")}),
              HasSubstr("of 1 best records this build makes the same code of 1 and other code of 0"));
  EXPECT_THAT(Succeed({"upgrade-check", "--log", log_}),
              AllOf(HasSubstr("gemm "), HasSubstr("the same code of 0 and other code of 1")));
  const json counts = LastLine(Succeed({"upgrade-check", "--log", log_, "--json"}));
  EXPECT_EQ(counts["changed"], 1);
  EXPECT_EQ(counts["changed_records"].size(), 1u);

  EXPECT_THAT(Succeed({"upgrade-check", "--log", log_, "--reverify"}),
              AllOf(HasSubstr("measures 1 schedule whose code changed"), HasSubstr("100 %  1 trial (1 ok)")));
  EXPECT_EQ(LastLine(Succeed({"upgrade-check", "--log", log_, "--json"}))["same"], 1);
  EXPECT_EQ(LastLine(Succeed({"best", gemm_, "--log", log_, "--json"}))["result"]["code_digest"], digest);
  EXPECT_THAT(Succeed({"reverify", "--stale", "--log", log_}), Not(HasSubstr("measures")));
}

TEST_F(KnowledgeTest, ATraceThatNoLongerReplaysIsCountedAsGone) {
  Succeed({"tune", gemm_, "--log", Path("before.db"), "--trials", "1", "--quiet"});
  const std::string exported = Succeed({"log", "export", "--log", Path("before.db")});
  std::ofstream(Path("gone.jsonl")) << absl::StrReplaceAll(exported, {{"split(", "splot("}});
  Succeed({"log", "import", "--log", log_, Path("gone.jsonl")});
  EXPECT_THAT(
      Succeed({"upgrade-check", "--log", log_}),
      AllOf(HasSubstr("no longer replays: "), HasSubstr("1 no longer replay, 0 cannot be told here")));
  EXPECT_THAT(Succeed({"upgrade-check", "--log", log_, "--reverify"}), Not(HasSubstr("measures")));
}

TEST_F(KnowledgeTest, MisuseEndsWithTwo) {
  EXPECT_EQ(RunMyccTune({"log", "keygen"}).exit_status, 2);
  EXPECT_EQ(RunMyccTune({"log", "export", "--signer", "ann"}).exit_status, 2);
  EXPECT_EQ(RunMyccTune({"reverify", "--foreign", "--stale"}).exit_status, 2);
  EXPECT_EQ(RunMyccTune({"reverify", "--detach"}).exit_status, 2);
  EXPECT_EQ(RunMyccTune({"upgrade-check", "--only-when-idle"}).exit_status, 2);
  EXPECT_EQ(RunMyccTune({"log", "diff", log_}).exit_status, 2);
}

}  // namespace
}  // namespace mycc

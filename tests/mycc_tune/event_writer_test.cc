// Events as lines for people and as JSON for programs.
#include "mycc_tune/event_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace mycc {
namespace {

Event Finished() {
  Event event("trial.finished", "");
  event.job = "j1";
  event.trial = "j1/0/2/3";
  event.attempt = 1;
  event.worker = "w";
  event.device = "cuda:0";
  event.status = "ok";
  event.seconds = 0.00025;
  return event;
}

TEST(EventWriterTest, AnObjectHasTheFieldsThatTheEventHas) {
  EXPECT_EQ(
      EventJson(Finished(), 1'700'000'000'000'000),
      R"({"time":"2023-11-14T22:13:20.000000Z","level":"info","event":"trial.finished","job":"j1",)"
      R"("trial":"j1/0/2/3","worker":"w","device":"cuda:0","status":"ok","attempt":1,"seconds":0.00025})");
  EXPECT_EQ(EventJson(Event("a line"), 1), R"({"time":"1970-01-01T00:00:00.000001Z","level":"info",)"
                                           R"("event":"message","text":"a line"})");
}

TEST(EventWriterTest, WordsOfStrangersStayOneLineOfJson) {
  Event event("report.refused", "worker \n\"x\xff");
  event.is_warning = true;
  const nlohmann::json read = nlohmann::json::parse(EventJson(event, 1));
  EXPECT_EQ(read["level"], "warning");
  EXPECT_EQ(read["text"], "worker \n\"x\xEF\xBF\xBD");
  EXPECT_EQ(EventJson(event, 1).find('\n'), std::string::npos);
}

TEST(EventWriterTest, PeopleGetTheEventsThatHaveAText) {
  std::ostringstream text, json;
  for (const auto& [format, out] : {std::pair(LogFormat::kText, &text), {LogFormat::kJson, &json}}) {
    EventWriter writer(format, out, [] { return int64_t{1}; });
    writer.Write(Finished());
    writer.Write(Event("server.started", "serving"));
  }
  EXPECT_EQ(text.str(), "serving\n");
  const std::string lines = json.str();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2);
}

}  // namespace
}  // namespace mycc

// Workers that fail at everything: the server tells them from bad candidates, drains them with the evidence,
// and tries their failures elsewhere.
#include "codegen/workload/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/ceilings.h"
#include "server/failure_watch.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::MeasureResult Failure(v1::MeasureStatus status, const std::string& error) {
  v1::MeasureResult result;
  result.set_status(status);
  result.set_error(error);
  return result;
}

v1::DeviceStatus DeviceOf(FakeServer* server, const std::string& worker) {
  for (const v1::DeviceStatus& device : (*server)->workers().Devices()) {
    if (device.worker() == worker) return device;
  }
  ADD_FAILURE() << "no worker " << worker;
  return {};
}

// Both take turns until nothing is left to do; `spoil` gives the bad one's results.
void WorkWith(FakeServer* server, FakeWorker* bad, FakeWorker* good,
              const std::function<v1::MeasureResult(const v1::Assignment&)>& spoil, uint32_t bad_takes = 4,
              uint32_t good_takes = 1) {
  for (int turn = 0; turn < 500; ++turn) {
    const std::vector<v1::Assignment> spoiled = bad->Lease(bad_takes);
    for (const v1::Assignment& assignment : spoiled) {
      EXPECT_TRUE(bad->Report(assignment, spoil(assignment)).ok());
    }
    const std::vector<v1::Assignment> sound = good->Lease(good_takes);
    for (const v1::Assignment& assignment : sound) EXPECT_TRUE(good->Report(assignment).ok());
    if (spoiled.empty() && sound.empty()) return;
    server->Wait(0.2);
  }
  ADD_FAILURE() << "the trials do not end";
}

std::map<v1::MeasureStatus, int> StatusesOf(FakeServer* server, const std::string& job) {
  std::map<v1::MeasureStatus, int> statuses;
  for (const StoredRecord& stored : server->RecordsOf(job)) ++statuses[stored.record.result().status()];
  return statuses;
}

// TMPDIR is full, and the worker says no more than that the build failed.
TEST(BadWorkerTest, BlackHoleSpoilsNothing) {
  for (const v1::MeasureStatus status :
       {v1::MEASURE_STATUS_BUILD_ERROR, v1::MEASURE_STATUS_RUN_ERROR, v1::MEASURE_STATUS_WRONG_RESULT,
        v1::MEASURE_STATUS_RUN_TIMEOUT, v1::MEASURE_STATUS_OUT_OF_MEMORY}) {
    FakeServer server;
    FakeWorker bad(&server, "bad"), good(&server, "good");
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 24));
    WorkWith(&server, &bad, &good,
             [&](const v1::Assignment&) { return Failure(status, "No space left on device"); });
    EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_OK], 24);
    EXPECT_EQ(DeviceOf(&server, "bad").state(), "draining");
    EXPECT_THAT(DeviceOf(&server, "bad").reason(),
                HasSubstr("what fails here succeeds on worker good: trial j"));
    EXPECT_THAT(DeviceOf(&server, "bad").reason(), HasSubstr("No space left on device"));
    EXPECT_THAT(bad.instructions.drain(), HasSubstr("No space left on device"));
  }
}

// It was well at first.
TEST(BadWorkerTest, WorkerThatBeginsToFailSpoilsLittle) {
  FakeServer server;
  FakeWorker bad(&server, "bad"), good(&server, "good");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 64));
  int trials = 0;
  WorkWith(&server, &bad, &good, [&](const v1::Assignment& assignment) {
    return ++trials <= 12 ? FakeResult(assignment) : Failure(v1::MEASURE_STATUS_BUILD_ERROR, "No space");
  });
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_BUILD_ERROR], 0);
  EXPECT_EQ(DeviceOf(&server, "bad").state(), "draining");
}

// Every other trial fails, and each failure is refuted before the next: the share stands out, nothing else.
TEST(BadWorkerTest, WorkerThatFailsMoreThanOthersIsDrained) {
  FakeServer server;
  FakeWorker bad(&server, "bad"), good(&server, "good");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 128));
  int trials = 0;
  WorkWith(
      &server, &bad, &good,
      [&](const v1::Assignment& assignment) {
        return ++trials % 2 == 0 ? FakeResult(assignment) : Failure(v1::MEASURE_STATUS_RUN_ERROR, "SIGILL");
      },
      /*bad_takes=*/1, /*good_takes=*/2);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_RUN_ERROR], 0) << "all were tried elsewhere";
  EXPECT_EQ(DeviceOf(&server, "bad").state(), "draining");
  EXPECT_THAT(DeviceOf(&server, "bad").reason(), HasSubstr("trials failed, and 0 of"));
  EXPECT_THAT(DeviceOf(&server, "bad").reason(), HasSubstr("SIGILL"));
}

// Candidates that fail everywhere are the candidates' fault, and cost nobody the work.
TEST(BadWorkerTest, CandidatesThatFailEverywhereAreMeasuredOnceMore) {
  FakeServer server;
  FakeWorker one(&server, "one"), two(&server, "two");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 64));
  const auto is_bad = [](const v1::Assignment& assignment) {
    return FakeResult(assignment).timing().seconds() > 1.3e-3;
  };
  int measured = 0;
  for (int turn = 0; turn < 200; ++turn) {
    for (FakeWorker* worker : {&one, &two}) {
      for (const v1::Assignment& assignment : worker->Lease(2)) {
        ++measured;
        const v1::MeasureResult result = is_bad(assignment)
                                             ? Failure(v1::MEASURE_STATUS_BUILD_ERROR, "too large")
                                             : FakeResult(assignment);
        EXPECT_TRUE(worker->Report(assignment, result).ok());
      }
    }
    server.Wait(0.2);
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_GT(StatusesOf(&server, job)[v1::MEASURE_STATUS_BUILD_ERROR], 32) << "most of them";
  EXPECT_LT(measured, 64 + 24);
  EXPECT_EQ(DeviceOf(&server, "one").reason() + DeviceOf(&server, "two").reason(), "");
}

TEST(BadWorkerTest, OnlyWorkerIsNotDrainedButShown) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 16));
  for (int i = 0; i < 12; ++i) {
    const std::vector<v1::Assignment> leased = worker.Lease(1);
    ASSERT_THAT(leased, SizeIs(1)) << i;
    EXPECT_TRUE(worker.Report(leased[0], Failure(v1::MEASURE_STATUS_BUILD_ERROR, "no such thing")).ok());
  }
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_BUILD_ERROR], 12);
  EXPECT_NE(DeviceOf(&server, "w").state(), "draining");
  EXPECT_THAT(DeviceOf(&server, "w").trouble(),
              HasSubstr("its last 12 trials failed, and there is no other worker to compare it with: "
                        "build_error: no such thing"));
  EXPECT_TRUE(worker.Report(worker.Lease(1).at(0)).ok());
  EXPECT_EQ(DeviceOf(&server, "w").trouble(), "");
}

TEST(BadWorkerTest, UnfitWorkerSaysNothingOfCandidates) {
  FakeServer server;
  FakeWorker bad(&server, "bad"), good(&server, "good");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 32));
  WorkWith(&server, &bad, &good, [&](const v1::Assignment&) {
    return Failure(v1::MEASURE_STATUS_WORKER_UNFIT, "cannot write /tmp/x.so: No space left on device");
  });
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_OK], 32);
  EXPECT_THAT(DeviceOf(&server, "bad").reason(), HasSubstr("trials were lost: cannot write"));
}

TEST(BadWorkerTest, UnfitWorkerThatIsAloneIsTriedNowAndThen) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  std::vector<std::string> log;
  options.dispatch.log = [&log](const Event& event) {
    if (!event.text.empty()) log.push_back(event.text);
  };
  FakeServer server(options);
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  int tries = 0;
  for (int i = 0; i < 60; ++i) {
    server.Wait(1);
    EXPECT_TRUE(worker.Beat().ok());
    for (const v1::Assignment& assignment : worker.Lease(4)) {
      ++tries;
      EXPECT_TRUE(worker.Report(assignment, Failure(v1::MEASURE_STATUS_WORKER_UNFIT, "no space")).ok());
    }
  }
  EXPECT_LE(tries, 4 + 3);
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("nothing is measured: cpu of worker w: its last"));
  EXPECT_THAT(log, ElementsAre(HasSubstr("worker w: cpu is drained: its last"))) << "once";
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  server.Wait(31);
  worker.RegisterAgain();
  EXPECT_EQ(worker.Work(), 4) << "there is space again";
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_OK], 4);
}

// Not the device that it names counts, but the one that leased.
TEST(BadWorkerTest, LossesUnderAnotherDevicesNameAreItsOwn) {
  FakeServer server;
  FakeWorker bad(&server, "bad"), good(&server, "good");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 64));
  WorkWith(&server, &bad, &good, [&](const v1::Assignment&) {
    v1::MeasureResult lost = Failure(v1::MEASURE_STATUS_DEVICE_LOST, "gone");
    lost.mutable_device()->set_device("cuda:3");
    return lost;
  });
  EXPECT_EQ(DeviceOf(&server, "bad").state(), "draining");
  EXPECT_EQ(StatusesOf(&server, job)[v1::MEASURE_STATUS_OK], 64);
}

TEST(BadWorkerTest, DeviceThatStandsStillSaysWhy) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  v1::HeartbeatRequest beat;
  beat.set_session(worker.session);
  v1::DeviceTrouble& trouble = *beat.add_troubles();
  trouble.set_device("cpu");
  trouble.set_text("waits for its lock, which pid 7 (sleep 9) holds");
  const auto send = [&] {
    return AnswerOf<v1::HeartbeatResponse>(
               &server, [&](const auto& reply) { server->workers().Heartbeat(beat, reply); })
        .status();
  };
  EXPECT_TRUE(send().ok());
  EXPECT_EQ(DeviceOf(&server, "w").trouble(), "waits for its lock, which pid 7 (sleep 9) holds");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  EXPECT_EQ(server.Progress(job).message(),
            "nothing is measured: cpu of worker w: waits for its lock, which pid 7 (sleep 9) holds");
  FakeWorker other(&server, "other");
  EXPECT_EQ(server.Progress(job).message(), "");
  beat.mutable_troubles(0)->set_text(std::string(1 << 20, 'x'));
  v1::DeviceReading& reading = *beat.add_readings();
  reading.set_device("cpu");
  reading.set_throttle(std::string(1 << 20, 'x'));
  reading.GetReflection()->MutableUnknownFields(&reading)->AddLengthDelimited(1000,
                                                                              std::string(1 << 20, 'u'));
  EXPECT_TRUE(send().ok());
  EXPECT_EQ(DeviceOf(&server, "w").trouble().size(), 4096u) << "a server keeps it for each of its workers";
  EXPECT_LT(DeviceOf(&server, "w").reading().ByteSizeLong(), 5000u);
  beat.clear_troubles();
  EXPECT_TRUE(send().ok());
  EXPECT_EQ(DeviceOf(&server, "w").trouble(), "");
}

// The host that it names does not matter.
TEST(BadWorkerTest, WorkerThatNeverReportsHoldsNothingForEver) {
  FakeServer server;
  FakeWorker stuck(&server, "stuck"), good(&server, "good");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8));
  const v1::Assignment held = stuck.Lease(1).at(0);
  for (double waited = 0; waited < 1700; waited += 5) {
    server.Wait(5);
    EXPECT_TRUE(stuck.Beat().ok());
    good.Work();
  }
  EXPECT_THAT(stuck.held, SizeIs(1)) << "a long batch is no fault";
  for (double waited = 0; waited < 200; waited += 5) {
    server.Wait(5);
    EXPECT_TRUE(stuck.Beat().ok());
    good.Work();
  }
  EXPECT_THAT(stuck.held, IsEmpty()) << "it was told";
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  for (const StoredRecord& stored : server.RecordsOf(job)) {
    EXPECT_EQ(stored.record.result().status(), v1::MEASURE_STATUS_OK);
    EXPECT_EQ(stored.record.result().device().worker(), "good");
  }
}

TEST(BadWorkerTest, DeviceThatStandsStillGivesUpWhatOthersCanMeasure) {
  FakeServer server;
  FakeWorker stuck(&server, "stuck");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8));
  ASSERT_THAT(stuck.Lease(2), SizeIs(2));
  const auto beat = [&] {
    v1::HeartbeatRequest request;
    request.set_session(stuck.session);
    for (const auto& [key, lease] : stuck.held) *request.add_held() = lease;
    request.add_troubles()->set_device("cpu");
    request.mutable_troubles(0)->set_text("waits for a lock");
    server->workers().Heartbeat(request, [](const auto& response) { EXPECT_TRUE(response.ok()); });
    server.Wait(3);
  };
  for (int beats = 0; beats < 10; ++beats) beat();
  EXPECT_EQ(DeviceOf(&server, "stuck").leases(), 2u) << "nobody else can";
  FakeWorker good(&server, "good");
  for (int beats = 0; beats < 5; ++beats) {
    beat();
    EXPECT_TRUE(good.Beat().ok());
    good.Work();
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(StatusesOf(&server, job), (std::map<v1::MeasureStatus, int>{{v1::MEASURE_STATUS_OK, 8}}));
}

TEST(BadWorkerTest, BaselinesOfOneWorkerAreNotAnothers) {
  FakeServer server;
  server.Submit(MakeSpec({kTestWorkload}, 64));
  const auto begin = [&server](const std::string& name) {
    FakeWorker worker(&server, name);
    worker.devices[0].mutable_info()->set_host("h1");
    worker.Register();
    return worker;
  };
  const auto measure = [](FakeWorker* worker, int count, double baseline) {
    for (int i = 0; i < count; ++i) {
      const std::vector<v1::Assignment> held = worker->Lease(1);
      if (held.empty()) return i;
      v1::MeasureResult result = FakeResult(held[0]);
      result.mutable_timing()->set_baseline_seconds(baseline);
      EXPECT_TRUE(worker->Report(held[0], result).ok());
    }
    return count;
  };
  FakeWorker liar = begin("liar"), rival(&server, "rival");
  EXPECT_EQ(measure(&liar, 12, 1e-5), 12);
  EXPECT_TRUE(liar.Leave().ok());
  FakeWorker honest = begin("honest");
  EXPECT_EQ(measure(&honest, 12, 1e-3), 12);
  EXPECT_EQ(honest.instructions.drain(), "");
  liar.Register();
  EXPECT_LT(measure(&liar, 12, 1e-3), 12) << "its own are remembered";
  EXPECT_THAT(liar.instructions.drain(), HasSubstr("baseline"));
}

TEST(FailureWatchTest, ChanceIsFishers) {
  EXPECT_NEAR(ChanceOf(0, 5, 3, 10), 1, 1e-12);
  // The lady tasting tea: all four of four, in eight cups.
  EXPECT_NEAR(ChanceOf(4, 4, 4, 8), 1.0 / 70, 1e-12);
  EXPECT_NEAR(ChanceOf(3, 4, 4, 8), 17.0 / 70, 1e-12);
}

TEST(FailureWatchTest, ComparesWithOtherWorkersAndElseWithSiblings) {
  FailureWatch watch;
  const FailureWatch::Source bad{"a", "cuda:0"}, sibling{"a", "cuda:1"}, other{"b", "cuda:0"};
  for (int i = 0; i < 12; ++i) watch.Add("job", bad, false);
  EXPECT_EQ(watch.Verdict("job", bad), "") << "nobody to compare with";
  for (int i = 0; i < 12; ++i) watch.Add("job", sibling, true);
  EXPECT_THAT(watch.Verdict("job", bad), HasSubstr("12 of its last 12 trials failed, and 0 of 12 elsewhere"));
  for (int i = 0; i < 12; ++i) watch.Add("job", other, false);
  EXPECT_EQ(watch.Verdict("job", bad), "") << "others fail too";
  EXPECT_EQ(watch.Verdict("another job", bad), "");
}

TEST(FailureWatchTest, OrdinaryShareOfFailuresIsNoOutlier) {
  FailureWatch watch;
  uint32_t random = 1;
  int verdicts = 0;
  for (int i = 0; i < 2000; ++i) {
    const FailureWatch::Source source{i % 2 == 0 ? "a" : "b", "cpu"};
    random = random * 1664525 + 1013904223;
    const bool ok = (random >> 16) % 10 >= 4;
    watch.Add("job", source, ok);
    verdicts += !ok && !watch.Verdict("job", source).empty();
  }
  EXPECT_EQ(verdicts, 0);
}

TEST(CeilingsTest, NoDeviceIsFaster) {
  const Target cpu = *ParseTarget("v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2");
  const Target gpu = *ParseTarget("h200");
  const auto gemm = [](int n) {
    const std::string size = std::to_string(n);
    return *ParseWorkload("workload gemm(x: f32[" + size + "," + size + "], w: f32[" + size + "," + size +
                              "]) -> (y: f32[" + size + "," + size + "]) {\n  y[i,j] = sum[k:" + size +
                              "](x[i,k] * w[k,j])\n}\n",
                          "test");
  };
  // Far below what has been measured, and far above what is made up.
  EXPECT_LT(LeastSeconds(gemm(1024), cpu), 0.01 * 10e-3);
  EXPECT_GT(LeastSeconds(gemm(1024), cpu), 1e-6);
  EXPECT_LT(LeastSeconds(gemm(4096), gpu), 0.1 * 2 * 4096. * 4096 * 4096 / 2e15);
  EXPECT_GE(LeastSeconds(gemm(4096), gpu), 1e-7);
  EXPECT_LT(LeastSeconds(gemm(1), cpu), 10e-9) << "a call";
}

}  // namespace
}  // namespace mycc

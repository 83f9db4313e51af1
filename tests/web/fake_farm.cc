// A farm that measures nothing: workers whose results are made up from the candidates' schedules, the same
// for the same schedule, with failures of several kinds; their devices drift and get warm. For tests of what
// a server shows: fake_farm ADDRESS WORKERS SECONDS_A_TRIAL. Ends on SIGTERM.
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "codegen/schedule/trace.h"
#include "worker/grpc_link.h"
#include "worker/worker.h"

namespace mycc {
namespace {

constexpr char kTarget[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
constexpr double kBaselineSeconds = 1e-3;

// A number from 0 to 1 that a text determines.
double Chance(const std::string& text) {
  return static_cast<double>(std::strtoul(Sha256Hex(text).substr(0, 6).c_str(), nullptr, 16)) / (1 << 24);
}

// Each decision has a best choice, from which the time grows.
double SecondsOf(const std::string& text) {
  double factor = 1;
  if (const absl::StatusOr<Trace> trace = ParseTrace(text); trace.ok()) {
    for (const auto& [name, choice] : trace->decisions) {
      const double best = 1 + 6 * Chance(name);
      factor *= 1 + 0.08 * std::abs(std::log2(1.0 + static_cast<double>(std::abs(choice))) - best);
    }
  }
  return 2e-3 * factor * (1 + 0.05 * Chance(text));
}

// A text that would end the script that it stands in, were it not kept apart.
constexpr char kHostile[] = "no end after 10 s </script><script>window.injected = true</script><!--";

void Fail(v1::MeasureResult* result, v1::MeasureStatus status, const std::string& error) {
  result->set_status(status);
  result->set_error(error);
  result->clear_verification();
  result->mutable_timing()->clear_seconds();
  result->mutable_timing()->clear_samples_seconds();
}

v1::MeasureResult ResultOf(const v1::Assignment& assignment, double drift) {
  const double seconds = SecondsOf(assignment.trace());
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  v1::Timing& timing = *result.mutable_timing();
  timing.set_protocol(assignment.protocol());
  timing.set_timer_version(1);
  timing.set_seconds(seconds);
  timing.add_samples_seconds(seconds);
  timing.set_ci_low_seconds(0.98 * seconds);
  timing.set_ci_high_seconds(1.02 * seconds);
  timing.set_baseline_seconds(kBaselineSeconds * drift);
  timing.set_run_seconds(0.2);
  result.mutable_verification()->set_passed(true);
  result.mutable_device()->set_device("cpu");
  const double chance = Chance(assignment.trace() + "failure");
  if (chance < 0.05) {
    Fail(
        &result, v1::MEASURE_STATUS_WRONG_RESULT,
        absl::StrCat("output y differs at element ", static_cast<int>(chance * 1e6), ": 0.25, expected 0.5"));
  } else if (chance < 0.08) {
    Fail(&result, v1::MEASURE_STATUS_BUILD_ERROR,
         "the code generator refuses a vector of 64 lanes\nin loop i.0");
  } else if (chance < 0.1) {
    Fail(&result, v1::MEASURE_STATUS_RUN_TIMEOUT, kHostile);
  }
  return result;
}

class FakeWorker {
 public:
  FakeWorker(const std::string& address, int number, double trial_seconds) : number_(number) {
    ServerAddress server;
    server.address = address;
    absl::StatusOr<std::unique_ptr<ServerLink>> link = ConnectToServer(server);
    if (!link.ok()) {
      std::cerr << link.status() << "\n";
      std::exit(1);
    }
    link_ = *std::move(link);
    WorkerOptions options;
    options.name = absl::StrCat("rack-", number);
    options.instance = absl::StrCat("fake ", number);
    WorkerDevice device;
    device.offer.set_device("cpu");
    device.offer.set_target(kTarget);
    device.offer.mutable_info()->set_model("Fake Xeon 2.4 GHz");
    device.offer.mutable_info()->set_device("cpu");
    device.offer.set_timer_version(1);
    device.batch = 2;
    device.measure = [this, trial_seconds](const std::vector<v1::Assignment>& assignments,
                                           const IsRevoked& is_revoked, const OnMeasured& done) {
      for (const v1::Assignment& assignment : assignments) {
        if (is_revoked(assignment.lease())) continue;
        std::this_thread::sleep_for(std::chrono::duration<double>(trial_seconds));
        std::vector<v1::MeasureResult> results = {ResultOf(assignment, Drift())};
        for (const std::string& rival : assignment.rivals()) {
          v1::Assignment own = assignment;
          own.set_trace(rival);
          results.push_back(ResultOf(own, Drift()));
        }
        done(assignment, std::move(results));
      }
    };
    device.reading = [this] { return Reading(); };
    worker_ = std::make_unique<Worker>(options, link_.get(), std::vector<WorkerDevice>{device});
    thread_ = std::thread([this] { (void)worker_->Run(); });
  }
  ~FakeWorker() {
    worker_->Stop();
    thread_.join();
  }

 private:
  static double Now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  double Drift() const { return 1 + 0.04 * number_ * (1 + std::sin(Now() / 7 + number_)) / 2; }
  v1::DeviceReading Reading() const {
    v1::DeviceReading reading;
    reading.set_device("cpu");
    reading.set_temperature_celsius(48 + 3 * number_ + 6 * std::sin(Now() / 20 + number_));
    reading.set_clock_mhz(static_cast<uint32_t>(2400 - 40 * number_));
    reading.set_power_watts(110 + 5 * number_);
    if (number_ == 3) reading.set_throttle("power cap");
    return reading;
  }

  const int number_;
  std::unique_ptr<ServerLink> link_;
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
};

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: fake_farm ADDRESS WORKERS SECONDS_A_TRIAL\n";
    return 2;
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::vector<std::unique_ptr<mycc::FakeWorker>> workers;
  for (int i = 0; i < std::atoi(argv[2]); ++i)
    workers.push_back(std::make_unique<mycc::FakeWorker>(argv[1], i, std::atof(argv[3])));
  std::cout << "farm of " << workers.size() << " workers" << std::endl;
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

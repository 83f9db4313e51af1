#include "tuner/cost/machine_constants.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "proto/device_constants.h"

namespace mycc {
namespace {

constexpr double kFlopsOfFma = 2;

// Puts measured figures into a machine.
class Overlay {
 public:
  Overlay(const v1::DeviceConstants& constants, std::vector<std::string>* ignored)
      : constants_(constants), ignored_(ignored) {}

  double Value(const char* name) const { return ConstantOf(constants_, name); }

  // `measured` in place of the figure, where it is plausible; 0: it was not measured. `what` names the
  // figure.
  void Put(const char* what, double measured, double* figure) const {
    if (measured == 0) return;
    if (measured >= *figure / kMostDeviation && measured <= *figure * kMostDeviation) {
      *figure = measured;
    } else if (ignored_ != nullptr) {
      ignored_->push_back(absl::StrFormat("%s of %.3g; expected %.3g to %.3g", what, measured,
                                          *figure / kMostDeviation, *figure * kMostDeviation));
    }
  }

  // The number of threads that reach together what all reach, of `most` that there are.
  void PutThreads(const char* all, const char* one, double most, double* threads) const {
    const double rate = Value(all), of_one = Value(one), at_most = kMostDeviation * most * of_one;
    if (rate == 0 || of_one == 0) return;
    if (rate >= of_one && rate <= at_most) {
      *threads = rate / of_one;
    } else if (ignored_ != nullptr) {
      ignored_->push_back(absl::StrFormat("%s of %.3g; expected %.3g, which one thread reaches, to %.3g", all,
                                          rate, of_one, at_most));
    }
  }

 private:
  const v1::DeviceConstants& constants_;
  std::vector<std::string>* const ignored_;
};

void PutCpu(const Overlay& overlay, Machine* machine) {
  MachineRow& row = machine->row;
  const double lanes = machine->vector_bytes / sizeof(float);
  double clock = row.ghz * 1e9;
  overlay.Put("a clock", overlay.Value(kClockConstant), &clock);
  row.ghz = clock / 1e9;
  overlay.Put("multiply-adds a cycle", overlay.Value(kPeakOfThread) / (kFlopsOfFma * lanes * clock),
              &row.fma_per_cycle);
  overlay.Put("a multiply-add's latency in cycles", overlay.Value(kFmaLatency) * clock, &row.fma_latency);
  overlay.Put("bytes a cycle from L2", overlay.Value(kL2OfThread) / clock, &row.l2_bytes_per_cycle);
  overlay.Put("bytes a cycle from L3", overlay.Value(kL3OfThread) / clock, &row.l3_bytes_per_cycle);
  overlay.Put("bytes a cycle from memory", overlay.Value(kMemoryOfThread) / clock, &row.dram_bytes_per_cycle);
  // They were measured with the device's threads; the target may have fewer.
  const double threads = overlay.Value(kThreadsConstant), most = std::max(threads, machine->threads);
  overlay.PutThreads(kPeakOfAll, kPeakOfThread, most, &machine->core_threads);
  overlay.PutThreads(kL2OfAll, kL2OfThread, most, &machine->l2_threads);
  overlay.PutThreads(kL3OfAll, kL3OfThread, most, &machine->l3_threads);
  overlay.PutThreads(kMemoryOfAll, kMemoryOfThread, most, &machine->dram_threads);
  if (threads > 0) {
    const double of_target = RegionSeconds(machine->threads), of_device = RegionSeconds(threads);
    overlay.Put("seconds of a parallel region", overlay.Value(kLaunchTime) * of_target / of_device,
                &machine->region_seconds);
  }
}

void PutGpu(const Overlay& overlay, GpuMachine* machine) {
  GpuRow& row = machine->row;
  overlay.Put("GHz", overlay.Value(kPeakOfAll) / (kFlopsOfFma * row.fma_per_cycle * machine->sms * 1e9),
              &row.ghz);
  overlay.Put("bytes a second from memory", overlay.Value(kMemoryOfAll), &row.dram_bytes_per_second);
  overlay.Put("bytes a second from L2", overlay.Value(kL2OfAll), &row.l2_bytes_per_second);
  overlay.Put("seconds of a load from memory", overlay.Value(kMemoryLatency), &row.dram_seconds);
  overlay.Put("seconds of a launch", overlay.Value(kLaunchTime), &machine->launch_seconds);
}

}  // namespace

Machine MeasuredMachine(const Target& target, const v1::DeviceConstants& constants,
                        std::vector<std::string>* ignored) {
  Machine machine(target);
  if (constants.version() != kConstantsVersion) return machine;
  const Overlay overlay(constants, ignored);
  if (machine.gpu) {
    PutGpu(overlay, &*machine.gpu);
  } else {
    PutCpu(overlay, &machine);
  }
  return machine;
}

}  // namespace mycc

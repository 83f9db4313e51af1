#include "mycc/cpu_stopwatch.h"

#include <emmintrin.h>

#include <algorithm>

#include "base/status.h"

namespace mycc {
namespace {

constexpr double kSampleSeconds = 200e-6;  // of a warm sample, at least: far above the clock's own cost
constexpr int64_t kCacheLine = 64;

// Takes the arguments out of the caches of every core.
void FlushArguments(Arguments* arguments) {
  for (const DLTensor* tensor : arguments->call_args()) {
    int64_t bytes = tensor->dtype.bits / 8;
    for (int i = 0; i < tensor->ndim; ++i) bytes *= tensor->shape[i];
    for (int64_t i = 0; i < bytes; i += kCacheLine) _mm_clflush(static_cast<const char*>(tensor->data) + i);
  }
  _mm_mfence();
}

// Calls one function again and again.
class RepeatedCalls : public Stopwatch {
 public:
  RepeatedCalls(Library::Entry entry, Arguments* arguments, bool cold, double warm_up_seconds)
      : entry_(entry), arguments_(arguments), cold_(cold) {
    const double once = WarmUp(warm_up_seconds);
    calls_ = cold ? 1 : std::max(1, static_cast<int>(kSampleSeconds / std::max(once, 1e-9)));
  }

  absl::Status Sample(std::vector<double>* seconds) override {
    if (cold_) FlushArguments(arguments_);
    seconds->push_back(TimeCalls(calls_));
    return absl::OkStatus();
  }

 private:
  double TimeCalls(int calls) {
    std::vector<DLTensor*>& args = arguments_->call_args();
    const bool resets = arguments_->has_bounded();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      if (resets) arguments_->ResetShapes();
      entry_(args.data(), static_cast<int32_t>(args.size()), nullptr);
    }
    return SecondsSince(start) / calls;
  }

  // The way it is measured. Returns the time of one call.
  double WarmUp(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    double fastest = TimeCalls(1);
    while (SecondsSince(start) < seconds) fastest = std::min(fastest, TimeCalls(1));
    return fastest;
  }

  const Library::Entry entry_;
  Arguments* const arguments_;
  const bool cold_;
  int calls_ = 1;  // of a sample
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stopwatch>> CpuStopwatch(Library* library, Arguments* arguments, bool cold,
                                                        double warm_up_seconds) {
  MYCC_ASSIGN_OR_RETURN(const Library::Entry entry, library->Symbol(arguments->function().name));
  return std::make_unique<RepeatedCalls>(entry, arguments, cold, warm_up_seconds);
}

}  // namespace mycc

// Plants faults in kernels, one at a time, and counts who notices. The last two lines are `planted: N` and
// `caught: N`; the exit status is 0 when they are the same.
//
//   planted_faults [--every N] [--only NAME] [--verbose] [--show]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/perf/planted/fault.h"
#include "tests/perf/planted/judge.h"

namespace mycc::planted {
namespace {

struct Options {
  int every = 1;  // plants each kernel with one class of faults in `every`, the next with others
  std::string only;
  bool verbose = false, show = false;
};

// The most faults of one class in one kernel: places of the same kind teach little more.
constexpr size_t kMostOfAClass = 4;

struct Counts {
  int planted = 0, caught = 0;
  std::map<std::string, int> by;
};

// At most kMostOfAClass of them, from all over the kernel.
std::vector<Fault> Spread(std::vector<Fault> faults) {
  if (faults.size() <= kMostOfAClass) return faults;
  std::vector<Fault> some;
  for (size_t i = 0; i < kMostOfAClass; ++i)
    some.push_back(std::move(faults[i * (faults.size() - 1) / (kMostOfAClass - 1)]));
  return some;
}

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {}

  bool Plant(const Recipe& recipe) {
    const absl::StatusOr<Kernel> kernel = Make(recipe);
    if (!kernel.ok()) {
      std::fprintf(stderr, "%s: %s\n", recipe.name.c_str(), std::string(kernel.status().message()).c_str());
      return false;
    }
    if (options_.show) std::printf("%s\n%s\n", recipe.name.c_str(), PrintLowered(kernel->code).c_str());
    if (const Verdict sound = Judge(*kernel, kernel->code); !sound.by.empty()) {
      std::fprintf(stderr, "%s: nothing is planted, and the %s says: %s\n", recipe.name.c_str(),
                   sound.by.c_str(), sound.what.c_str());
      return false;
    }
    const Counts before = all_;
    for (const auto* classes : {&PipelineFaults(), &LoopFaults(), &ElementFaults(), &ValueFaults()}) {
      for (const FaultClass& one : *classes) PlantClass(*kernel, one);
    }
    std::printf("%-40s %4d planted, %4d caught\n", recipe.name.c_str(), all_.planted - before.planted,
                all_.caught - before.caught);
    std::fflush(stdout);
    return true;
  }

  void Report() const {
    std::printf("\n");
    for (const auto& [name, counts] : by_class_) {
      std::string by;
      for (const auto& [who, times] : counts.by)
        absl::StrAppend(&by, by.empty() ? "" : ", ", times, " by the ", who);
      std::printf("%-48s %4d  %s\n", name.c_str(), counts.planted, by.c_str());
    }
    std::printf("\nplanted: %d\ncaught: %d\n", all_.planted, all_.caught);
  }
  bool AllCaught() const { return all_.planted > 0 && all_.planted == all_.caught; }

 private:
  void PlantClass(const Kernel& kernel, const FaultClass& one) {
    if (number_++ % options_.every != 0) return;
    Counts& of_class = by_class_[one.name];  // a class without a place is shown, too
    for (const Fault& fault : Spread(one.plant(kernel))) {
      const Verdict verdict = Judge(kernel, fault.code);
      for (Counts* counts : {&all_, &of_class}) {
        ++counts->planted;
        if (!verdict.by.empty()) ++counts->caught, ++counts->by[verdict.by];
      }
      if (options_.verbose || verdict.by.empty()) {
        std::printf("%s: %s: %s: %s %s\n", kernel.name.c_str(), one.name, fault.place.c_str(),
                    verdict.by.empty() ? "NOT CAUGHT" : verdict.by.c_str(),
                    verdict.what.substr(0, 160).c_str());
      }
    }
  }

  const Options options_;
  int number_ = 0;
  Counts all_;
  std::map<std::string, Counts> by_class_;
};

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
      options.every = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      options.only = argv[++i];
    } else if (std::strcmp(argv[i], "--verbose") == 0) {
      options.verbose = true;
    } else if (std::strcmp(argv[i], "--show") == 0) {
      options.show = true;
    } else {
      std::fprintf(stderr, "usage: planted_faults [--every N] [--only NAME] [--verbose] [--show]\n");
      return 2;
    }
  }
  Bench bench(options);
  bool sound = true;
  for (const Recipe& recipe : Recipes()) {
    if (absl::StrContains(recipe.name, options.only)) sound &= bench.Plant(recipe);
  }
  bench.Report();
  return sound && bench.AllCaught() ? 0 : 1;
}

}  // namespace
}  // namespace mycc::planted

int main(int argc, char** argv) { return mycc::planted::Main(argc, argv); }

// A processor that the detector is told of in place of the one that the tests run on: a test program that
// links this has another DetectHostTarget. The seam is the linker's; no program that is shipped has one.
//
//   finder_test --cpu=znver5
//
// Code is run by the processor that is really there: RunsHere asks both. Thread rule: told before threads
// start.
#pragma once

#include <optional>
#include <string>

#include "codegen/target/target.h"

namespace mycc {

// Tells the detector, as long as it lives, of a processor of told_cpus.h with two threads; nullopt: of the
// one that is there.
class ToldCpu {
 public:
  explicit ToldCpu(std::optional<std::string> name);
  ~ToldCpu();
  ToldCpu(const ToldCpu&) = delete;
  ToldCpu& operator=(const ToldCpu&) = delete;

 private:
  const std::optional<std::string> before_;
};

// Do the processor that the detector knows and the one that is there both have the code's instructions?
// Caches and threads do not matter.
bool RunsHere(const Target& code);

}  // namespace mycc

#include "codegen/ir/debug.h"

#include <cstdio>
#include <utility>

namespace mycc {
namespace {

PassDebug debug_options;

}  // namespace

void SetPassDebug(const PassDebug& debug) { debug_options = debug; }
const PassDebug& GetPassDebug() { return debug_options; }

void TimedStep::Begin(std::string subject) {
  subject_ = std::move(subject);
  start_ = std::chrono::steady_clock::now();
}

TimedStep::~TimedStep() {
  if (step_ == nullptr) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "%-18s %8.3f ms%s%s\n", step_, seconds.count() * 1e3, subject_.empty() ? "" : "  ",
               subject_.c_str());
}

}  // namespace mycc

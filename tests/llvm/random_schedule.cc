#include "tests/llvm/random_schedule.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "codegen/ir/verify.h"

namespace mycc {
namespace {

class Stepper {
 public:
  Stepper(Schedule schedule, uint64_t seed) : schedule_(std::move(schedule)), random_(seed) {}

  Schedule Run(int attempts) {
    for (int i = 0; i < attempts; ++i) {
      Survey();
      if (loops_.empty()) break;
      // A refusal is one of the answers that are expected; broken IR is the schedule tests' business.
      Schedule next = schedule_;
      if (next.Apply(RandomStep()).ok() && VerifyFunction(next.function()).ok()) schedule_ = std::move(next);
    }
    return std::move(schedule_);
  }

 private:
  int Below(size_t n) { return n == 0 ? 0 : static_cast<int>(random_() % n); }
  template <typename T>
  T Pick(const std::vector<T>& from) {
    return from.empty() ? T() : from[Below(from.size())];
  }

  void Survey() {
    loops_.clear();
    innermost_.clear();
    blocks_.clear();
    buffers_.clear();
    chains_.clear();
    for (const Param& param : schedule_.function().params) buffers_.push_back(param.buffer->name);
    VisitStmts(schedule_.function().body, [&](const Stmt& stmt) {
      if (const For* loop = DynAs<For>(stmt)) {
        loops_.push_back(loop->var->name);
        if (loop->body->kind == StmtKind::kBlock) innermost_.push_back(loop->var->name);
        std::vector<std::string> chain;
        for (const For* l = loop; l != nullptr; l = DynAs<For>(l->body)) chain.push_back(l->var->name);
        if (chain.size() > 1) chains_.push_back(chain);
      }
      if (const Block* block = DynAs<Block>(stmt)) blocks_.push_back(block->name);
      if (const Alloc* alloc = DynAs<Alloc>(stmt)) buffers_.push_back(alloc->buffer->name);
      return true;
    });
  }

  static StepArg Arg(std::string name) { return StepArg{std::move(name)}; }
  static StepArg Arg(StepArg::Names names) { return StepArg{std::move(names)}; }
  static StepArg Arg(StepArg::Ints ints) { return StepArg{std::move(ints)}; }

  Step RandomStep() {
    static const std::vector<int64_t> kFactors = {1, 2, 3, 4, 5, 6, 7, 8, 8, 16, 16, 32};
    static const std::vector<std::string> kKinds = {"vector", "parallel", "unroll", "serial"};
    switch (Below(16)) {
      case 0:
      case 1:
      case 2: {
        StepArg::Ints factors = {Pick(kFactors)};
        if (Below(3) == 0) factors.push_back(Pick(kFactors));
        return Step{"split", {Arg(Pick(loops_)), Arg(factors)}};
      }
      case 3:
      case 4: return Step{"bind", {Arg(Pick(innermost_)), Arg(std::string("vector"))}};
      case 5: return Step{"bind", {Arg(loops_.front()), Arg(std::string("parallel"))}};
      case 6: return Step{"bind", {Arg(Pick(loops_)), Arg(Pick(kKinds))}};
      case 7:
      case 8: {
        StepArg::Names chain = Pick(chains_);
        std::shuffle(chain.begin(), chain.end(), random_);
        return Step{"reorder", {Arg(chain)}};
      }
      case 9: {
        StepArg::Names chain = Pick(chains_);
        if (chain.size() > 2) chain.resize(2 + Below(chain.size() - 1));
        return Step{"fuse", {Arg(chain)}};
      }
      case 10: return Step{"compute_at", {Arg(Pick(blocks_)), Arg(Pick(loops_))}};
      case 11:
        return Step{Below(2) ? "reverse_compute_at" : "compute_at", {Arg(Pick(blocks_)), Arg(Pick(loops_))}};
      case 12: return Step{Below(2) ? "inline" : "reverse_inline", {Arg(Pick(blocks_))}};
      case 13: return Step{"cache_write", {Arg(Pick(blocks_)), Arg(Pick(loops_))}};
      case 14:
        return Step{
            "cache_read",
            {Arg(Pick(buffers_)), Arg(Pick(blocks_)), Arg(Below(2) ? Pick(loops_) : std::string("root")),
             Arg(std::string(Below(3) ? "local" : "packed"))}};
      default:
        if (Below(2)) return Step{"tensorize", {Arg(Pick(loops_)), Arg(std::string("fma.f32"))}};
        return Step{"rfactor", {Arg(Pick(loops_)), StepArg{Pick(kFactors)}}};
    }
  }

  Schedule schedule_;
  std::mt19937_64 random_;
  std::vector<std::string> loops_, innermost_, blocks_, buffers_;
  std::vector<std::vector<std::string>> chains_;
};

}  // namespace

Schedule RandomSchedule(const Workload& canonical, const Target& target, uint64_t seed, int attempts) {
  return Stepper(Schedule::Create(canonical, target), seed).Run(attempts);
}

}  // namespace mycc

#include "tests/schedule/random_schedule.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/verify.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// More than this is no better test, only a slower one: splits that do not divide leave iterations that do
// nothing.
constexpr double kMaxInstances = 3e5;

double CountInstances(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kBlock) return 1;
  double sum = 0;
  for (const Stmt& child : Children(stmt)) sum += CountInstances(child);
  const For* loop = DynAs<For>(stmt);
  return loop == nullptr ? sum : sum * static_cast<double>(loop->var->extent);
}

// Copies of the blocks in the code, once loops are unrolled and lanes of more than a register are several
// instructions.
constexpr double kMaxCopies = 2000;

double CountCopies(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kBlock) return 1;
  double sum = 0;
  for (const Stmt& child : Children(stmt)) sum += CountCopies(child);
  const For* loop = DynAs<For>(stmt);
  if (loop == nullptr) return sum;
  const auto extent = static_cast<double>(loop->var->extent);
  if (loop->loop_kind == LoopKind::kUnroll) return sum * extent;
  return loop->loop_kind == LoopKind::kVector ? sum * std::max(1.0, extent / 8) : sum;
}

class Stepper {
 public:
  Stepper(Schedule schedule, uint64_t seed) : schedule_(std::move(schedule)), random_(seed) {}

  absl::StatusOr<Schedule> Run(int attempts) {
    for (int i = 0; i < attempts; ++i) {
      Survey();
      if (loops_.empty()) break;
      MYCC_RETURN_IF_ERROR(Try(RandomStep()));
    }
    return std::move(schedule_);
  }

 private:
  absl::Status Try(const Step& step) {
    Schedule next = schedule_;
    const absl::Status status = next.Apply(step);
    if (!status.ok()) {
      const bool clean =
          absl::IsFailedPrecondition(status) && absl::StartsWith(status.message(), PrintStep(step));
      if (clean) return absl::OkStatus();
      return absl::InternalError(
          absl::StrCat("refused as ", status.ToString(), "\n", PrintTrace(schedule_.trace())));
    }
    const absl::Status verified = VerifyFunction(next.function());
    if (!verified.ok()) {
      return absl::InternalError(
          absl::StrCat(verified.message(), "\n", PrintTrace(next.trace()), PrintFunction(next.function())));
    }
    const Stmt& body = next.function().body;
    if (CountInstances(body) <= kMaxInstances && CountCopies(body) <= kMaxCopies) schedule_ = std::move(next);
    return absl::OkStatus();
  }

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
    static const std::vector<int64_t> kTiles = {2, 4};
    static const std::vector<std::string> kKinds = {"vector", "parallel", "unroll", "serial"};
    static const std::vector<StepArg::Names> kLayouts = {
        {"1", "0"}, {"0/2", "1", "0%2"}, {"1/8", "0", "1%8"}, {"0/3", "0%3"}};
    if (schedule_.target().kind == TargetKind::kCuda && Below(3) == 0) return RandomGpuStep();
    switch (Below(17)) {
      case 0:
      case 1:
      case 2: {
        StepArg::Ints factors = {Pick(kFactors)};
        if (Below(3) == 0) factors.push_back(Pick(kFactors));
        return Step{"split", {Arg(Pick(loops_)), Arg(factors)}};
      }
      case 3:
      case 4: return Step{"bind", {Arg(Pick(innermost_)), Arg("vector")}};
      case 5: return Step{"bind", {Arg(loops_.front()), Arg("parallel")}};
      case 6: return Step{"bind", {Arg(Pick(loops_)), Arg(Pick(kKinds))}};
      case 7:
      case 8: {
        StepArg::Names chain = Pick(chains_);
        std::ranges::shuffle(chain, random_);
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
      case 12:
        if (Below(3) == 0) return Step{"merge", {Arg(Pick(loops_)), Arg(Pick(loops_))}};
        return Step{Below(2) ? "inline" : "reverse_inline", {Arg(Pick(blocks_))}};
      case 13: return Step{"cache_write", {Arg(Pick(blocks_)), Arg(Pick(loops_))}};
      case 14:
        return Step{"cache_read",
                    {Arg(Pick(buffers_)), Arg(Pick(blocks_)), Arg(Below(2) ? Pick(loops_) : "root"),
                     Arg(Below(3) ? "local" : "packed")}};
      case 15: return Step{"pack", {Arg(Pick(buffers_)), Arg(Pick(kLayouts))}};
      default:
        if (Below(2)) return Step{"tensorize", {Arg(Pick(loops_)), Arg("fma.f32")}};
        if (Below(3) == 0) return Step{"split_axis", {Arg(Pick(loops_)), StepArg{Pick(kFactors)}}};
        if (Below(4) == 0) return Step{"winograd", {Arg(Pick(blocks_)), StepArg{Pick(kTiles)}}};
        if (Below(2))
          return Step{"skip_zeros", {Arg(Pick(blocks_)), Arg(Pick(buffers_)), StepArg{int64_t{Below(4)}}}};
        return Step{"rfactor", {Arg(Pick(loops_)), StepArg{Pick(kFactors)}}};
    }
  }

  // Blocks outside, threads inside, tiles in shared memory.
  Step RandomGpuStep() {
    switch (Below(6)) {
      case 0: return Step{"bind", {Arg(loops_.front()), Arg("block")}};
      case 1: return Step{"bind", {Arg(Pick(loops_)), Arg("block")}};
      case 2:
      case 3: return Step{"bind", {Arg(Pick(loops_)), Arg("thread")}};
      case 4:
        return Step{"cache_read",
                    {Arg(Pick(buffers_)), Arg(Pick(blocks_)), Arg(Pick(loops_)), Arg("shared")}};
      default:
        if (Below(2)) return Step{"set_scope", {Arg(Pick(buffers_)), Arg(Below(2) ? "shared" : "local")}};
        return Step{"layout",
                    {Arg(Pick(buffers_)), StepArg{Pick(std::vector<int64_t>{0, 1, 4})}, StepArg{int64_t{0}}}};
    }
  }

  Schedule schedule_;
  std::mt19937_64 random_;
  std::vector<std::string> loops_, innermost_, blocks_, buffers_;
  std::vector<std::vector<std::string>> chains_;
};

}  // namespace

absl::StatusOr<Schedule> RandomSchedule(const Workload& canonical, const Target& target, uint64_t seed,
                                        int attempts) {
  return Stepper(Schedule::Create(canonical, target), seed).Run(attempts);
}

}  // namespace mycc

// The GPU rule for reductions along the contiguous axis and the stages around them: softmax, layer and RMS
// norm, row sums, maxima and argmax. Memory is read once; a row stays in the registers of the threads that
// share it:
//
//   block rows.0:
//     alloc x.r                        in registers
//     x.r = x                          thread rows.1, thread t: unroll: vector
//     m (op)= f(x.r)                   thread rows.1, thread t (they reduce together): unroll: vector
//     e = g(x.r, m)                    the same threads
//     ...
//     y = h(e, ..)
//
// A cluster of thread blocks may share each row, where rows are long or few. Rows too long for registers are
// read again by each stage (keep 0). Then a reduction, and a sum that uses its result, may be
// one pass (row_joint). A handful of very long rows is cut into runs, one for each thread block,
// and every stage becomes a launch (row_runs.cc).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/rules/cuda/gemv.h"
#include "tuner/space/rules/cuda/gpu.h"
#include "tuner/space/rules/cuda/row_plan.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// Threads on a row of `length` elements, and the rows of a block: enough registers for the row, enough
// threads to fill an SM with few blocks.
int64_t ThreadsForRow(int64_t length, int64_t lanes) {
  constexpr int64_t kElementsOfThread = 32;
  const int64_t vectors = CeilDiv(length, lanes);
  const int64_t wanted =
      vectors <= kWarp ? PowerAtLeast(vectors) : PowerAtLeast(CeilDiv(length, kElementsOfThread));
  return std::clamp<int64_t>(std::max(wanted, std::min(kWarp, PowerAtLeast(vectors))), 1, kMaxBlockThreads);
}

// Thread blocks that have a row together: a decision only where there is a choice, so that traces of other
// rows do not mention it.
int64_t ClusterOf(const Values& v) { return v.contains("cluster") ? v.at("cluster") : 1; }

int64_t ThreadsOfRow(const Values& v) { return v.at("threads") * ClusterOf(v); }

// The vectors of a row that each of `threads` has.
int64_t Steps(int64_t length, int64_t threads, int64_t lanes) { return CeilDiv(length, threads * lanes); }

std::vector<int64_t> KeepsOf(const RowPlan& plan) {
  std::vector<int64_t> keeps = {kReadAgain};
  const bool kept_stages = std::ranges::any_of(plan.members, [](const RowMember& m) { return m.is_kept; });
  if (!plan.inputs.empty()) keeps.push_back(kKeepInputs);
  if (kept_stages) keeps.push_back(kKeepAll);
  return keeps;
}

// Registers of a thread that rows kept there take, where an element takes its own bytes, and `least` at
// least.
double KeptRegisters(const RowPlan& plan, const Values& v, int64_t least) {
  double bytes = 0;
  if (v.at("keep") >= kKeepInputs) {
    for (const RowInput& input : plan.inputs)
      bytes += static_cast<double>(std::max<int64_t>(DTypeBytes(input.buffer->dtype), least));
  }
  if (v.at("keep") >= kKeepAll) {
    for (const RowMember& m : plan.members)
      bytes += m.is_kept ? static_cast<double>(std::max(m.bytes, least)) : 0;
  }
  return bytes / 4 * static_cast<double>(Steps(plan.length, ThreadsOfRow(v), v.at("lanes")) * v.at("lanes"));
}

constexpr int64_t kMostCluster = 8;
constexpr int64_t kTurn = 4;  // vectors that a thread fetches at once, of a row that is read again

// Memory is read once: values that are read again stay in registers.
bool IsOnePass(const RowPlan& plan, const Values& v) {
  return v.at("keep") != kReadAgain || KeepsOf(plan).size() == 1;
}

// A cluster has one row, and each of its blocks holds a part that is worth its while.
bool IsLegalCluster(const RowPlan& plan, const Values& v) {
  if (ClusterOf(v) == 1) return true;
  return v.at("rows") == 1 && v.at("threads") % kWarp == 0 && IsOnePass(plan, v) &&
         ThreadsOfRow(v) * v.at("lanes") <= plan.length;
}

// A thread and its block have the registers.
bool HaveRegisters(double of_thread, int64_t threads) {
  constexpr double kRegisterFile = 65536, kMostRegisters = 255;
  return of_thread <= kMostRegisters &&
         of_thread * static_cast<double>(RoundUp(threads, kWarp)) <= kRegisterFile;
}

// Whether the anchor is a reduction whose result is stored from a register. A whole warp reads the register,
// so a whole warp has to reduce into it.
bool IsStoredFromRegisters(const RowPlan& plan) {
  const RowMember& anchor = plan.members.back();
  const bool is_joint = plan.joint && plan.joint->second == anchor.name;
  return anchor.is_reduction && !anchor.along.empty() && !is_joint;
}

// The fewest threads for each row with which a block of all rows has a whole warp.
int64_t ThreadsThatFillWarp(const RowPlan& plan) { return kWarp / PowerAtMost(std::min(plan.rows, kWarp)); }

bool Legal(const RowPlan& plan, const Values& v) {
  constexpr double kOtherRegisters = 40;
  constexpr int64_t kMostUnrolled = 512;
  const int64_t threads = v.at("threads") * v.at("rows");
  if (v.at("rows") > plan.rows || !IsLegalCluster(plan, v)) return false;
  if (threads > kMaxBlockThreads || (threads < kWarp && 2 * v.at("rows") <= plan.rows)) return false;
  const bool from_registers = IsStoredFromRegisters(plan);
  if (from_registers && threads < kWarp) return false;
  // Threads without work; the smallest group alone may have some.
  const int64_t smallest = from_registers ? ThreadsThatFillWarp(plan) : 1;
  if (v.at("threads") > smallest && (v.at("threads") / 2) * v.at("lanes") >= plan.length) return false;
  // Blocks that share an SM fill it with threads at most.
  constexpr int64_t kThreadsOfSm = 2048;
  if (v.at("resident") * RoundUp(threads, kWarp) > kThreadsOfSm) return false;
  if (v.at("keep") == kReadAgain)
    return v.at("turn") == kTurn || v.at("turn") / 2 < Steps(plan.length, ThreadsOfRow(v), v.at("lanes"));
  if (v.at("turn") != kTurn) return false;
  return HaveRegisters(KeptRegisters(plan, v, 1) + kOtherRegisters, threads) &&
         Steps(plan.length, ThreadsOfRow(v), v.at("lanes")) * v.at("lanes") <= kMostUnrolled;
}

// The loops of one stage under the row loop: rows and the group's threads outside, a thread's vectors inside.
void EmitAlong(const std::vector<std::string>& rows, const std::string& row,
               const std::vector<std::string>& along, const RowPlan& plan, const Values& v, bool kept,
               TraceBuilder* b) {
  // A row that is read again goes by in turns of a few vectors; one that is kept has each of them by name.
  const std::string flat = b->Fuse(along);
  b->Split(flat, {kept ? Steps(plan.length, ThreadsOfRow(v), v.at("lanes")) : v.at("turn"), ThreadsOfRow(v),
                  v.at("lanes")});
  std::vector<std::string> order;
  for (const std::string& other : rows) {
    if (other != row) order.push_back(other);
  }
  order.insert(order.end(), {row, SubLoop(flat, 2), SubLoop(flat, 0), SubLoop(flat, 1), SubLoop(flat, 3)});
  b->Reorder(order);
  b->Bind(row, "thread");
  b->Bind(SubLoop(flat, 2), "thread");
  b->Bind(SubLoop(flat, 1), "unroll");
  b->Bind(SubLoop(flat, 3), "vector");
}

// The member's own loops once it stands under the row loop.
void EmitMember(const RowPlan& plan, const RowMember& m, const Values& v, TraceBuilder* b) {
  EmitAlong(m.rows, m.rows[plan.split], m.along, plan, v, v.at("keep") != kReadAgain, b);
}

void EmitAnchor(const RowPlan& plan, const Values& v, TraceBuilder* b) {
  const RowMember& anchor = plan.members.back();
  const std::string row = SubLoop(anchor.rows[plan.split], 1);
  if (anchor.along.empty()) {
    b->LanePredicate(row, ThreadsOfRow(v));
    b->Bind(row, "thread");
    b->Bind(absl::StrCat(row, ".e"), "thread");
    return;
  }
  EmitAlong({row}, row, anchor.along, plan, v, v.at("keep") != kReadAgain, b);
  // A result is stored once, not read back. The threads combine tuples in accumulators of their own.
  if (IsStoredFromRegisters(plan)) b->CacheWrite(anchor.name, row);
}

void Emit(const RowPlan& plan, const Values& v, TraceBuilder* b) {
  const RowMember& anchor = plan.members.back();
  if (plan.joint) EmitJoint(*plan.joint, b);
  for (const RowMember& m : plan.members) {
    if (m.is_arg) b->SplitArg(m.name);
  }
  std::vector<std::string> blocks = anchor.rows;
  b->Split(blocks[plan.split], {v.at("rows")});
  const std::string inner = SubLoop(blocks[plan.split], 1);
  blocks[plan.split] = SubLoop(blocks[plan.split], 0);
  std::vector<std::string> order = blocks;
  order.push_back(inner);
  b->Reorder(order);
  b->BindAll(blocks, "block");
  if (ClusterOf(v) > 1) b->ClusterReduce(blocks.back(), ClusterOf(v));
  if (v.at("resident") > 0) b->MinBlocksPerSm(blocks.back(), v.at("resident"));
  std::vector<RowMember> moved;
  for (const RowMember& m : plan.members) {
    if (m.name == anchor.name) continue;
    if (!m.is_reduction && (m.along.empty() || v.at("keep") != kKeepAll)) {
      b->Inline(m.name);
    } else {
      moved.push_back(m);
    }
  }
  for (auto m = moved.rbegin(); m != moved.rend(); ++m) b->ComputeAt(m->name, blocks.back());
  if (v.at("keep") != kReadAgain) {
    for (const RowInput& input : plan.inputs) {
      const std::string copy = b->CacheRead(input.buffer->name, "all", blocks.back(), "local");
      std::vector<std::string> rows;
      for (int d = 0; d + 1 < input.buffer->rank(); ++d) rows.push_back(absl::StrCat(copy, ".a", d));
      const std::string last = absl::StrCat(copy, ".a", input.buffer->rank() - 1);
      EmitAlong(rows, rows[plan.split], {last}, plan, v, true, b);
    }
  }
  for (const RowMember& m : moved) EmitMember(plan, m, v, b);
  EmitAnchor(plan, v, b);
}

// Clusters that may hold a row: on Hopper, where rows are long or leave SMs without work, and each block has
// a part worth its while.
std::vector<int64_t> ClustersFor(const RowPlan& plan, const Target& target) {
  constexpr int64_t kLong = 1 << 14, kLeastOfBlock = 1024;
  std::vector<int64_t> clusters = {1};
  const bool wanted = plan.length >= kLong || plan.rows_of_output < int64_t{2} * target.sms;
  if (CudaArchOf(target) / 10 != 9 || !wanted) return clusters;
  while (clusters.back() < kMostCluster && plan.length >= 2 * clusters.back() * kLeastOfBlock)
    clusters.push_back(2 * clusters.back());
  return clusters;
}

// The threads of a block when `cluster` blocks hold a row: about those that are best for its part, even if
// the compiler does not pack narrow types; 0 when they do not hold it.
int64_t ThreadsThatHold(const RowPlan& plan, int64_t cluster) {
  constexpr double kOtherRegisters = 26;  // of what stands around a row
  Values v = {{"cluster", cluster}, {"keep", KeepsOf(plan).back()},
              {"rows", 1},          {"lanes", plan.lanes},
              {"turn", kTurn},      {"resident", 0}};
  int64_t& threads = v["threads"];
  for (threads = ThreadsForRow(CeilDiv(plan.length, cluster), plan.lanes); threads >= kWarp; threads /= 2) {
    const bool fits = HaveRegisters(KeptRegisters(plan, v, 4) + kOtherRegisters, threads);
    if (fits && IsOnePass(plan, v) && Legal(plan, v)) return threads;
  }
  return 0;
}

// The smallest cluster that holds a row, or a larger one where the SM that has most then has less to do, and
// the blocks' parts stay long; 1 where none holds a row.
int64_t PreferredCluster(const RowPlan& plan, const std::vector<int64_t>& clusters, const Target& target) {
  constexpr int64_t kLongPart = 1 << 13;
  constexpr double kMuchLess = 0.8;
  int64_t best = 0;
  double least = 0;
  for (const int64_t cluster : clusters) {
    if ((best != 0 && plan.length < cluster * kLongPart) || ThreadsThatHold(plan, cluster) == 0) continue;
    const double rows_of_sm =
        static_cast<double>(CeilDiv(plan.rows_of_output * cluster, std::max(target.sms, 1))) /
        static_cast<double>(cluster);
    if (best != 0 && rows_of_sm >= kMuchLess * least) continue;
    best = cluster;
    least = rows_of_sm;
  }
  return std::max<int64_t>(best, 1);
}

Part OnePassPart(const Anatomy& anatomy, const Group& group, const RowPlan& plan, const Target& target) {
  Part part;
  part.prefix = absl::StrCat(anatomy.name(group.anchor), ".");
  part.rule = plan.joint ? "row_joint" : "row";
  const std::vector<int64_t> clusters = ClustersFor(plan, target);
  const int64_t cluster = PreferredCluster(plan, clusters, target);
  int64_t threads = cluster > 1 ? ThreadsThatHold(plan, cluster) : ThreadsForRow(plan.length, plan.lanes);
  if (IsStoredFromRegisters(plan)) threads = std::max(threads, ThreadsThatFillWarp(plan));
  int64_t rows = cluster > 1 ? 1 : std::max<int64_t>(256 / threads, 1);
  while (rows > 1 && (rows > PowerAtLeast(plan.rows) || plan.rows_of_output / rows < int64_t{2} * target.sms))
    rows /= 2;
  while (rows * threads < kWarp && rows < plan.rows) rows *= 2;
  const std::vector<int64_t> keeps = KeepsOf(plan);
  part.Decide("keep", keeps, keeps.back(), false);
  if (clusters.size() > 1) part.Decide("cluster", clusters, cluster);
  part.Decide("threads",
              PowersOfTwo(std::max<int64_t>(threads / 8, 1), std::min(4 * threads, kMaxBlockThreads)),
              threads);
  part.Decide("rows", PowersOfTwo(1, 128), rows);
  part.Decide("lanes", {std::max<int64_t>(plan.lanes / 2, 1), plan.lanes}, plan.lanes);
  part.Decide("turn", {2, kTurn, 8, 16}, kTurn);
  part.Decide("resident", {0, 1, 2, 3, 4, 6, 8}, 0);
  part.legal = [plan](const Values& v) { return Legal(plan, v); };
  part.emit = [plan](const Values& v, TraceBuilder* b) { Emit(plan, v, b); };
  MakeDefaultsLegal(&part);
  return part;
}

// With a pass for each reduction.
std::vector<Part> RowPartsOf(const Anatomy& anatomy, const Group& group, const RowPlan& plan,
                             const Target& target) {
  if (plan.rows_of_output == 0) return {RowRunsPart(anatomy, plan, target)};
  if (!IsLongForFewBlocks(plan, target)) return {OnePassPart(anatomy, group, plan, target)};
  std::vector<Part> parts = {RowRunsPart(anatomy, plan, target)};
  // Blocks of clusters are few for so few rows; but they are one launch, and read memory once.
  if (PreferredCluster(plan, ClustersFor(plan, target), target) == 1) return parts;
  const bool fill = 2 * kMostCluster * plan.rows_of_output >= target.sms;
  parts.insert(fill ? parts.begin() : parts.end(), OnePassPart(anatomy, group, plan, target));
  return parts;
}

}  // namespace

std::vector<Part> GpuRowParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  if (IsGemv(anatomy, group)) return {GemvPart(anatomy, group, target)};
  const RowPlan plan = MakeRowPlan(anatomy, group);
  std::vector<Part> parts = RowPartsOf(anatomy, group, plan, target);
  // A row that a block or a cluster holds is read once anyway.
  const std::vector<int64_t> clusters = ClustersFor(plan, target);
  const auto holds = [&](int64_t cluster) { return ThreadsThatHold(plan, cluster) != 0; };
  if (std::ranges::any_of(clusters, holds)) return parts;
  if (const std::optional<RowPlan> joined = JoinedRowPlan(anatomy, group, plan, target)) {
    for (Part& part : RowPartsOf(anatomy, group, *joined, target)) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace mycc

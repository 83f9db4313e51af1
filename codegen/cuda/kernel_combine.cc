// Emits reductions across threads: over the lanes of a warp by shuffles, over warps through shared memory,
// and over the blocks of a cluster by messages (kernel_cluster_reduce.cc). The group's first thread adds the
// element's earlier value; all threads get the result.
#include <algorithm>
#include <vector>

#include "codegen/cuda/kernel_emitter.h"

namespace mycc {
namespace {

constexpr int64_t kWarp = 32;

}  // namespace

Code KernelEmitter::Combined(const Combine& combine, const std::string& a, const std::string& b) const {
  const DType dtype = combine.buffer->dtype;
  const Op op = ReduceCombine(combine.reduce, Load(combine.buffer, combine.indices), combine.value)->op;
  const Code left = Primary(a), right = Primary(b);
  return IsFloat(dtype) ? arithmetic_.WideBinary(op, dtype, left, right)
                        : arithmetic_.Binary(op, dtype, left, right);
}

// The thread loops that the element does not depend on, as groups of `extent` threads, `stride` apart: one
// for thread loops that are next to each other, the innermost first.
std::vector<ThreadDigit> KernelEmitter::GroupsOf(const Combine& combine) {
  std::vector<ThreadDigit> digits;
  const auto& around = PlaceOf(combine.buffer).threads_around;
  for (const auto& [var, digit] : threads_) {
    if (around.contains(var)) continue;
    const VarNode* thread = var;
    const bool chooses = std::any_of(combine.indices.begin(), combine.indices.end(),
                                     [&](const Expr& index) { return UsesVar(index, thread); });
    if (!chooses) digits.push_back(digit);
  }
  if (digits.empty()) return {ThreadDigit{1, 1, 1}};
  std::sort(digits.begin(), digits.end(),
            [](const ThreadDigit& a, const ThreadDigit& b) { return a.stride < b.stride; });
  std::vector<ThreadDigit> groups = {digits[0]};
  for (size_t i = 1; i < digits.size(); ++i) {
    ThreadDigit& last = groups.back();
    if (digits[i].stride == last.stride * last.extent) {
      last.extent *= digits[i].extent;
    } else {
      groups.push_back(digits[i]);
    }
  }
  return groups;
}

// The running thread's number within its group.
std::string KernelEmitter::MemberOf(const ThreadDigit& group) const {
  const std::string from = group.stride == 1 ? thread_ : absl::StrCat(thread_, " / ", group.stride);
  return absl::StrCat(from, " % ", group.extent);
}

void KernelEmitter::EmitCombine(const Combine& combine, const Expr& condition) {
  const std::vector<ThreadDigit> groups = GroupsOf(combine);
  if (launch_.cluster_reduce > 1 && groups.size() > 1) {
    return Fail(absl::StrCat("a thread loop that indexes ", combine.buffer->name,
                             " is between two that reduce it; in a cluster_reduce, expected the reducing ",
                             "thread loops next to each other"));
  }
  const DType dtype = combine.buffer->dtype;
  const bool in_registers = PlaceOf(combine.buffer).in_registers;
  OpenBlock();
  const std::string value = Name(combine.buffer->name + "_all");
  Line(arithmetic_.RegisterType(dtype), " ", value, " = ", Value(combine.value).text, ";");
  const std::string element = Element(combine.buffer, combine.indices);
  std::string first;
  for (const ThreadDigit& group : groups)
    absl::StrAppend(&first, first.empty() ? "" : " && ", MemberOf(group), " == 0");
  if (!in_registers && replication_ > 1)
    absl::StrAppend(&first, " && ", thread_, " % ", replication_, " == 0");
  std::string inside = condition ? Value(condition).At(kBothOf + 1) : "";
  Open("if (", first, inside.empty() ? "" : " && ", inside, ")");
  const std::string before = in_registers ? element : arithmetic_.FromMemory(dtype, Primary(element)).text;
  Line(value, " = ", Combined(combine, before, value).text, ";");
  Close();
  for (const ThreadDigit& group : groups) CombineGroup(combine, value, group);
  if (!in_registers) inside = inside.empty() ? first : absl::StrCat(first, " && ", inside);
  if (!inside.empty()) Open("if (", inside, ")");
  Line(element, " = ", in_registers ? value : arithmetic_.ToMemory(dtype, Primary(value)).text, ";");
  if (!inside.empty()) Close();
  Close();
}

void KernelEmitter::CombineGroup(const Combine& combine, const std::string& value, const ThreadDigit& group) {
  const int64_t threads = group.stride * group.extent, of_block = launch_.threads;
  if (launch_.cluster_reduce > 1 && threads > of_block && group.stride == 1 && threads % of_block == 0) {
    CombineGroup(combine, value, ThreadDigit{1, 1, of_block});
    return CombineBlocks(combine, value, threads / of_block);
  }
  if (launch_.cluster_reduce > 1 && of_block % threads != 0) {
    return Fail(absl::StrCat(group.extent, " threads, ", group.stride, " apart, combine ",
                             combine.buffer->name, "; in a cluster_reduce over blocks of ", of_block,
                             " threads, expected whole blocks or an equal part of one"));
  }
  if (IsPowerOfTwo(group.stride) && IsPowerOfTwo(group.extent) && threads <= kWarp) {
    CombineLanes(combine, value, group.stride, group.extent);
  } else if (group.stride == 1 && group.extent % kWarp == 0) {
    CombineLanes(combine, value, 1, kWarp);
    CombineWarps(combine, value, group.extent / kWarp);
  } else {
    CombineScattered(combine, value, group);
  }
}

// An unrolled loop over elements in registers has one barrier for all elements.
bool KernelEmitter::EmitCombinesTogether(const For& loop) {
  const Combine* combine = DynAs<Combine>(loop.body);
  const int64_t count = loop.var->extent;
  if (combine == nullptr || loop.loop_kind != LoopKind::kUnroll || !IsConstInt(loop.extent, count) ||
      count > kWarp || !PlaceOf(combine->buffer).in_registers || launch_.cluster_reduce > 1 ||
      launch_.barriers_before.count(loop.body.get()) != 0)
    return false;
  const std::vector<ThreadDigit> groups = GroupsOf(*combine);
  const ThreadDigit* const group = &groups.front();
  if (groups.size() > 1 || group->stride != 1 || group->extent <= kWarp || group->extent % kWarp != 0)
    return false;
  uses_scratch_ = true;
  const int64_t warps = group->extent / kWarp;
  const std::string type = arithmetic_.RegisterType(combine->buffer->dtype);
  const std::string all = Name(combine->buffer->name + "_all"), scratch = Name("scratch"),
                    first = Name("first"), warp = Name("warp"), var = Name(loop.var->name);
  const std::string value = absl::StrCat(all, "[", var, "]");
  const std::string row = absl::StrCat(scratch, "[", var, " * ", launch_.threads / kWarp, " + ");
  const auto for_each = [&](const auto& body) {
    Line("#pragma unroll");
    Open("for (int ", var, " = 0; ", var, " < ", count, "; ++", var, ")");
    With(loop.var.get(), var, body);
    Close();
  };
  OpenBlock();
  Line(type, " ", all, "[", count, "];");
  for_each([&] {
    const std::string element = Element(combine->buffer, combine->indices);
    Line(value, " = ", Value(combine->value).text, ";");
    Line("if (", MemberOf(*group), " == 0) ", value, " = ", Combined(*combine, element, value).text, ";");
    CombineLanes(*combine, value, 1, kWarp);
  });
  Line(type, "* const ", scratch, " = reinterpret_cast<", type, "*>(shared + ", ScratchOffset(launch_), ");");
  EmitBarrier();
  for_each([&] { Line("if (", thread_, " % 32 == 0) ", row, thread_, " / 32] = ", value, ";"); });
  EmitBarrier();
  Line("const int ", first, " = ", thread_, " / ", group->extent, " * ", warps, ";");
  for_each([&] {
    Line(value, " = ", row, first, "];");
    Line("#pragma unroll");
    Open("for (int ", warp, " = 1; ", warp, " < ", warps, "; ++", warp, ")");
    Line(value, " = ", Combined(*combine, value, absl::StrCat(row, first, " + ", warp, "]")).text, ";");
    Close();
    Line(Element(combine->buffer, combine->indices), " = ", value, ";");
  });
  Close();
  return true;
}

void KernelEmitter::CombineLanes(const Combine& combine, const std::string& value, int64_t stride,
                                 int64_t lanes) {
  if (lanes == 1) return;
  const std::string lane = Name("lane");
  Line("#pragma unroll");
  Open("for (int ", lane, " = ", stride * lanes / 2, "; ", lane, " >= ", stride, "; ", lane, " /= 2)");
  const std::string other = absl::StrCat("__shfl_xor_sync(", lanes_here_, ", ", value, ", ", lane, ")");
  Line(value, " = ", Combined(combine, value, other).text, ";");
  Close();
}

// Every lane has its warp's result. Each warp stores it in shared memory, and every thread reads the results
// of its group.
void KernelEmitter::CombineWarps(const Combine& combine, const std::string& value, int64_t warps) {
  if (warps == 1) return;
  uses_scratch_ = true;
  const std::string type = arithmetic_.RegisterType(combine.buffer->dtype), thread = ThreadOfBlock();
  const std::string scratch = Name("scratch");
  Line(type, "* const ", scratch, " = reinterpret_cast<", type, "*>(shared + ", ScratchOffset(launch_), ");");
  EmitBarrier();
  Line("if (", thread, " % 32 == 0) ", scratch, "[", thread, " / 32] = ", value, ";");
  EmitBarrier();
  const std::string first = Name("first"), warp = Name("warp");
  Line("const int ", first, " = ", thread, " / ", warps * kWarp, " * ", warps, ";");
  Line(value, " = ", scratch, "[", first, "];");
  Line("#pragma unroll");
  Open("for (int ", warp, " = 1; ", warp, " < ", warps, "; ++", warp, ")");
  Line(value, " = ", Combined(combine, value, absl::StrCat(scratch, "[", first, " + ", warp, "]")).text, ";");
  Close();
}

// For groups that are not whole warps: every thread reads the values that all threads of its group have
// stored.
void KernelEmitter::CombineScattered(const Combine& combine, const std::string& value,
                                     const ThreadDigit& group) {
  if (launch_.threads == kWarp) {
    const std::string own = Name("own"), lane = Name("lane"), first = Name("first");
    const std::string type = arithmetic_.RegisterType(combine.buffer->dtype);
    Line("const ", type, " ", own, " = ", value, ";");
    Line("const int ", first, " = ", thread_, " - ", MemberOf(group), " * ", group.stride, ";");
    Line(value, " = __shfl_sync(", lanes_here_, ", ", own, ", ", first, ");");
    Line("#pragma unroll");
    Open("for (int ", lane, " = 1; ", lane, " < ", group.extent, "; ++", lane, ")");
    const std::string other = absl::StrCat("__shfl_sync(", lanes_here_, ", ", own, ", ", first, " + ", lane,
                                           " * ", group.stride, ")");
    Line(value, " = ", Combined(combine, value, other).text, ";");
    return Close();
  }
  uses_scratch_ = true;
  const std::string type = arithmetic_.RegisterType(combine.buffer->dtype), thread = ThreadOfBlock();
  const std::string scratch = Name("scratch"), first = Name("first"), member = Name("member");
  Line(type, "* const ", scratch, " = reinterpret_cast<", type, "*>(shared + ", ScratchOffset(launch_), ");");
  EmitBarrier();
  Line(scratch, "[", thread, "] = ", value, ";");
  EmitBarrier();
  Line("const int ", first, " = ", thread, " - ", MemberOf(group), " * ", group.stride, ";");
  Line(value, " = ", scratch, "[", first, "];");
  Line("#pragma unroll 8");
  Open("for (int ", member, " = 1; ", member, " < ", group.extent, "; ++", member, ")");
  Line(value, " = ",
       Combined(combine, value, absl::StrCat(scratch, "[", first, " + ", member, " * ", group.stride, "]"))
           .text,
       ";");
  Close();
}

void KernelEmitter::EmitBarrier() {
  if (in_nest_ == 0 || in_nest_ == team_) return Sync();
  if (launch_.cluster_reduce > 1) {
    return Fail(absl::StrCat(in_nest_, " threads combine in a cluster_reduce with ", team_,
                             " threads in all its blocks; expected all of them"));
  }
  if (in_nest_ % kWarp != 0) {
    return Fail(absl::StrCat("threads combine across warps in a nest of ", in_nest_,
                             ", which are not whole warps; the team has ", team_));
  }
  Line(prelude_.Use("team_sync"), "(", NamedBarriers::kNests + (roles_ == nullptr ? 0 : roles_->number), ", ",
       in_nest_, ");");
}

}  // namespace mycc

// Emits reductions across threads: over the lanes of a warp by shuffles, over warps through shared memory,
// and over the blocks of a cluster by messages. The group's first thread adds the element's earlier value;
// all threads get the result.
#include "base/check.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/accumulators.h"

namespace mycc {

Code KernelEmitter::Combined(const Combine& combine, const std::string& a, const std::string& b) const {
  const DType dtype = combine.buffer->dtype;
  const Op op = CombinerOf(combine.reduce.op());
  const Code left = Primary(a), right = Primary(b);
  return IsFloat(dtype) ? arithmetic_.WideBinary(op, dtype, left, right)
                        : arithmetic_.Binary(op, dtype, left, right);
}

std::vector<std::string> KernelEmitter::TypesOf(const Combine& combine) const {
  std::vector<std::string> types;
  combine.ForEachBuffer(
      [&](const Buffer& buffer) { types.push_back(arithmetic_.RegisterType(buffer->dtype)); });
  return types;
}

// values = a merged with b. The parts of a tuple are read before any of them changes.
void KernelEmitter::Merge(const Combine& combine, const Parts& values, const Parts& a, const Parts& b) {
  const TupleFunction* tuple = combine.reduce.tuple();
  if (tuple == nullptr) return Line(values[0], " = ", Combined(combine, a[0], b[0]).text, ";");
  const std::vector<std::string> types = TypesOf(combine);
  const auto named = [&](const Parts& texts, size_t i) {
    return texts[i] == values[i] ? texts[i] : Define(types[i], "other", texts[i]);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    parts_[tuple->parts[i].a.get()] = named(a, i);
    parts_[tuple->parts[i].b.get()] = named(b, i);
  }
  Parts merged;
  for (size_t i = 0; i < values.size(); ++i)
    merged.push_back(Define(types[i], "merged", Value(tuple->parts[i].combined).text));
  SetEach(values, merged);
  parts_.clear();
}

// values = `first`, merged with the values of each other of `count` members.
void KernelEmitter::MergeAll(const Combine& combine, const Parts& values, const Parts& first,
                             const std::string& member, int64_t count, const Parts& others,
                             const char* pragma) {
  SetEach(values, first);
  OpenUnrolled(member, count, 1, pragma);
  Merge(combine, values, values, others);
  Close();
}

void KernelEmitter::SetEach(const Parts& parts, const Parts& values) {
  for (size_t i = 0; i < parts.size(); ++i) Line(parts[i], " = ", values[i], ";");
}

// The element of each array at a place.
KernelEmitter::Parts KernelEmitter::ElementsOf(const Parts& arrays, const std::string& place) {
  return EachPart(arrays, [&](const std::string& array) { return absl::StrCat(array, "[", place, "]"); });
}

// Declares an array in shared memory for each part, the first one at `offset`, with room for the values of
// `count` threads or blocks. `first`: code that is added to the addresses. Returns the arrays' names.
KernelEmitter::Parts KernelEmitter::DeclareArrays(const Combine& combine, const std::string& name,
                                                  int64_t offset, int64_t count, const std::string& first) {
  Parts arrays;
  combine.ForEachBuffer([&](const Buffer& buffer) {
    const std::string type = arithmetic_.RegisterType(buffer->dtype);
    arrays.push_back(Name(name));
    Line(type, "* const ", arrays.back(), " = reinterpret_cast<", type, "*>(shared + ", offset, ")", first,
         ";");
    offset += ExchangedBytes(buffer) * count;
  });
  return arrays;
}

// Declares the memory in which warps exchange values.
KernelEmitter::Parts KernelEmitter::DeclareScratch(const Combine& combine) {
  MYCC_CHECK(launch_.scratch_offset < launch_.shared_bytes)
      << "no scratch to combine " << combine.buffer->name;
  return DeclareArrays(combine, "scratch", launch_.scratch_offset, launch_.threads, "");
}

void KernelEmitter::EmitCombine(const Combine& combine) {
  const ReducedTuple reduced = ReducedBy(combine);
  const bool in_registers = PlaceOf(combine.buffer).in_registers;
  OpenBlock();
  Parts values, elements, before;
  for (size_t i = 0; i < reduced.buffers.size(); ++i) {
    const Buffer& buffer = reduced.buffers[i];
    values.push_back(Name(buffer->name + "_all"));
    Line(arithmetic_.RegisterType(buffer->dtype), " ", values[i], " = ", Value(reduced.values[i]).text, ";");
    elements.push_back(Element(buffer, combine.indices));
    before.push_back(in_registers ? elements[i]
                                  : arithmetic_.FromMemory(buffer->dtype, Primary(elements[i])).text);
  }
  std::string first;
  for (const CombineGroup& group : combine.groups)
    absl::StrAppend(&first, first.empty() ? "" : " && ", MemberOf(group), " == 0");
  if (!in_registers && replication_ > 1)
    absl::StrAppend(&first, " && ", thread_, " % ", replication_, " == 0");
  std::string inside = combine.condition ? Value(combine.condition).At(kBothOf + 1) : "";
  Open("if (", first, inside.empty() ? "" : " && ", inside, ")");
  Merge(combine, values, before, values);
  Close();
  for (const CombineGroup& group : combine.groups) {
    for (const Exchange& exchange : group.exchanges) Exchanged(combine, values, exchange);
  }
  if (!in_registers) inside = inside.empty() ? first : absl::StrCat(first, " && ", inside);
  if (!inside.empty()) Open("if (", inside, ")");
  for (size_t i = 0; i < values.size(); ++i) {
    const DType dtype = reduced.buffers[i]->dtype;
    Line(elements[i], " = ", in_registers ? values[i] : arithmetic_.ToMemory(dtype, Primary(values[i])).text,
         ";");
  }
  if (!inside.empty()) Close();
  Close();
}

void KernelEmitter::Exchanged(const Combine& combine, const Parts& values, const Exchange& exchange) {
  switch (exchange.kind) {
    case ExchangeKind::kLanes: return CombineLanes(combine, values, exchange);
    case ExchangeKind::kWarp: return CombineInWarp(combine, values, exchange);
    case ExchangeKind::kWarps: return CombineWarps(combine, values, exchange.extent);
    case ExchangeKind::kThreads: return CombineInBlock(combine, values, exchange);
    case ExchangeKind::kBlocks: return CombineBlocks(combine, values, exchange.extent);
  }
}

// One barrier for all elements of the loop, which are single values.
void KernelEmitter::EmitCombinesTogether(const For& loop, const Combine& combine) {
  const int64_t count = loop.var->extent;
  const CombineGroup& group = combine.groups[0];
  const Exchange &lanes = group.exchanges[0], &warps = group.exchanges[1];
  const std::string type = arithmetic_.RegisterType(combine.buffer->dtype);
  const std::string all = Name(combine.buffer->name + "_all"), first = Name("first"), warp = Name("warp"),
                    var = Name(loop.var->name);
  const std::string value = absl::StrCat(all, "[", var, "]");
  const auto for_each = [&](const auto& body) {
    OpenUnrolled(var, count);
    With(loop.var.get(), var, body);
    Close();
  };
  OpenBlock();
  Line(type, " ", all, "[", count, "];");
  for_each([&] {
    const std::string element = Element(combine.buffer, combine.indices);
    Line(value, " = ", Value(combine.value).text, ";");
    Line("if (", MemberOf(group), " == 0) ", value, " = ", Combined(combine, element, value).text, ";");
    CombineLanes(combine, {value}, lanes);
  });
  const std::string row =
      absl::StrCat(DeclareScratch(combine)[0], "[", var, " * ", launch_.threads / kThreadsOfWarp, " + ");
  EmitBarrier();
  for_each([&] { Line("if (", thread_, " % 32 == 0) ", row, thread_, " / 32] = ", value, ";"); });
  EmitBarrier();
  Line("const int ", first, " = ", thread_, " / ", group.extent, " * ", warps.extent, ";");
  for_each([&] {
    Line(value, " = ", row, first, "];");
    OpenUnrolled(warp, warps.extent, 1);
    Line(value, " = ", Combined(combine, value, absl::StrCat(row, first, " + ", warp, "]")).text, ";");
    Close();
    Line(Element(combine.buffer, combine.indices), " = ", value, ";");
  });
  Close();
}

void KernelEmitter::CombineLanes(const Combine& combine, const Parts& values, const Exchange& exchange) {
  const std::string lane = Name("lane");
  Line("#pragma unroll");
  Open("for (int ", lane, " = ", exchange.stride * exchange.extent / 2, "; ", lane, " >= ", exchange.stride,
       "; ", lane, " /= 2)");
  Merge(combine, values, values, EachPart(values, [&](const std::string& value) {
          return absl::StrCat("__shfl_xor_sync(", lanes_here_, ", ", value, ", ", lane, ")");
        }));
  Close();
}

// Every lane has its warp's result. Each warp stores it in shared memory, and every thread reads the results
// of its group.
void KernelEmitter::CombineWarps(const Combine& combine, const Parts& values, int64_t warps) {
  const Parts scratch = DeclareScratch(combine);
  const std::string thread = ThreadOfBlock();
  EmitBarrier();
  const Parts own = ElementsOf(scratch, thread + " / 32");
  for (size_t i = 0; i < values.size(); ++i)
    Line("if (", thread, " % 32 == 0) ", own[i], " = ", values[i], ";");
  EmitBarrier();
  const std::string warp = Name("warp");
  const std::string first = Define("int", "first", thread, " / ", warps * kThreadsOfWarp, " * ", warps);
  MergeAll(combine, values, ElementsOf(scratch, first), warp, warps,
           ElementsOf(scratch, absl::StrCat(first, " + ", warp)));
}

// Every lane reads the values of all lanes of its group.
void KernelEmitter::CombineInWarp(const Combine& combine, const Parts& values, const Exchange& group) {
  Parts own;
  const std::vector<std::string> types = TypesOf(combine);
  for (size_t i = 0; i < values.size(); ++i) own.push_back(Define(types[i], "own", values[i]));
  const std::string lane = Name("lane");
  const std::string first = Define("int", "first", thread_, " - ", MemberOf(group), " * ", group.stride);
  const auto from = [&](const std::string& place) {
    return EachPart(own, [&](const std::string& value) {
      return absl::StrCat("__shfl_sync(", lanes_here_, ", ", value, ", ", place, ")");
    });
  };
  MergeAll(combine, values, from(first), lane, group.extent,
           from(absl::StrCat(first, " + ", lane, " * ", group.stride)));
}

// Every thread reads the values that all threads of its group have stored.
void KernelEmitter::CombineInBlock(const Combine& combine, const Parts& values, const Exchange& group) {
  const Parts scratch = DeclareScratch(combine);
  const std::string thread = ThreadOfBlock(), member = Name("member");
  EmitBarrier();
  SetEach(ElementsOf(scratch, thread), values);
  EmitBarrier();
  const std::string first = Define("int", "first", thread, " - ", MemberOf(group), " * ", group.stride);
  MergeAll(combine, values, ElementsOf(scratch, first), member, group.extent,
           ElementsOf(scratch, absl::StrCat(first, " + ", member, " * ", group.stride)), "#pragma unroll 8");
}

void KernelEmitter::EmitBarrier() {
  if (in_nest_ == 0 || in_nest_ == team_) return Sync();
  const int role = roles_ ? roles_->number : 0;
  Line(Call("team_sync", NamedBarriers::kNests + role, in_nest_), ";");
}

// Reductions over the blocks of a cluster: each block combines its own threads' values, sends the
// result to all blocks, and combines what it has received in the order of their ranks. So all blocks have
// bitwise the same result.
//
// There is room for the partial results of two rounds, each with a barrier that counts its bytes. A block
// that sends in round r + 2 has received all of round r + 1, so every block has read round r. A block ends
// after it has received everything that is sent to it, so nothing is sent to an ended block. Hence the blocks
// synchronize only once: they arrive at their beginning, and wait before the first send.

void KernelEmitter::BeginClusterReduce() {
  if (!sends_) return;
  SetUpBarriers(std::vector<int>(kReceiveBuffers, 1));
  Line(Call("cluster_arrive"), ";");
  Line("bool alone = true;");
  Line("int round = 0;");
}

void KernelEmitter::EndClusterReduce() {
  if (sends_) Line("if (alone) ", Call("cluster_wait"), ";");
}

// Combines the parts of one result that `blocks` consecutive blocks have. All threads of a block have the
// same part.
void KernelEmitter::CombineBlocks(const Combine& combine, const Parts& values, int64_t blocks) {
  const std::string block = Name("block");
  Line("if (alone) ", Call("cluster_wait"), ";");
  Line("alone = false;");
  const Parts received =
      DeclareArrays(combine, "received", launch_.received_offset, kReceiveBuffers * launch_.cluster_reduce,
                    absl::StrCat(" + round % ", kReceiveBuffers, " * ", launch_.cluster_reduce));
  const std::vector<std::string> types = TypesOf(combine);
  std::string bytes = absl::StrCat("sizeof(", absl::StrJoin(types, ") + sizeof("), ")");
  if (types.size() > 1) bytes = absl::StrCat("(", bytes, ")");
  const std::string full = Define("unsigned", "full", "barriers + round % ", kReceiveBuffers, " * 8");
  Line("if (", ThreadOfBlock(), " == 0) ",
       Call("barrier_arrive_expect", full, absl::StrCat(blocks, " * ", bytes)), ";");
  const bool all = blocks == launch_.cluster_reduce;
  const std::string own = all ? "rank" : absl::StrCat("rank % ", blocks);
  const std::string first = all ? "" : absl::StrCat("rank / ", blocks, " * ", blocks, " + ");
  Open("if (", ThreadOfBlock(), " < ", blocks, ")");
  for (size_t i = 0; i < values.size(); ++i) {
    Line(Call("send_to_block", values[i], absl::StrCat(received[i], " + ", own), full,
              first + ThreadOfBlock()),
         ";");
  }
  Close();
  Line(Call("barrier_wait", full, absl::StrCat("round / ", kReceiveBuffers, " & 1")), ";");
  MergeAll(combine, values, ElementsOf(received, "0"), block, blocks, ElementsOf(received, block));
  Line("++round;");
}

}  // namespace mycc

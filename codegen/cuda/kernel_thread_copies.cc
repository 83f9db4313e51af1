// Emits copies that are divided among all threads: 4 to 16 bytes at a time by cp.async, or through registers
// when elements are too small for that, or adjacent at the source but not at the destination (a transposed
// tile).
//
// In the loop of a pipeline, registers are loaded before the step's work and stored after it:
//
//   for step: wait; moved = next tile; .. work on this tile ..; next slot = moved
#include <algorithm>
#include <numeric>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

constexpr int64_t kMostRegisters = 8;  // of a thread, for one copy, during a step
constexpr int64_t kLoads = 16;         // issued before the first of them is stored, outside of such loops

// number / stride % steps; with steps 0 only the quotient.
std::string Digit(const std::string& number, int64_t stride, int64_t steps) {
  const std::string quotient = stride == 1 ? number : absl::StrCat(number, " / ", stride);
  return steps == 0 ? quotient : absl::StrCat(quotient, " % ", steps);
}

int64_t RegistersOf(int64_t vectors, int64_t bytes) { return vectors * std::max<int64_t>(bytes / 4, 1); }

// The loop over the steps of a pipeline by threads.
bool IsStepLoop(const For& loop) {
  const Seq* body = DynAs<Seq>(loop.body);
  return body != nullptr && !body->stmts.empty() && body->stmts.front()->kind == StmtKind::kWaitGroup;
}

}  // namespace

// The elements, flattened in the order of the loops, are dealt to the threads in chunks. Thread loops come
// last, but before the innermost loop: neighbouring threads copy the neighbouring iterations of those loops.
std::optional<KernelEmitter::ThreadCopy> KernelEmitter::AnalyseThreadCopy(const Copy& copy) {
  ThreadCopy parts;
  Stmt inner = copy.body;
  while (const For* loop = DynAs<For>(inner)) {
    parts.loops.push_back(loop);
    inner = loop->body;
  }
  parts.store = DynAs<Store>(inner);
  if (parts.store == nullptr || parts.loops.empty()) return std::nullopt;
  parts.load = parts.store->value;
  if (parts.load->op == Op::kSelect) {
    parts.condition = parts.load->args[0];
    parts.load = parts.load->args[1];
  }
  const auto lanes = parts.loops.end() - (parts.loops.back()->loop_kind != LoopKind::kUnroll ? 1 : 0);
  std::stable_partition(parts.loops.begin(), lanes,
                        [](const For* loop) { return loop->loop_kind != LoopKind::kThread; });
  const For& last = *parts.loops.back();
  const int64_t element = DTypeBytes(parts.store->buffer->dtype);
  // A schedule with thread loops determines the elements that a thread copies at a time.
  const bool by_element = last.loop_kind != LoopKind::kVector &&
                          std::any_of(parts.loops.begin(), parts.loops.end(),
                                      [](const For* loop) { return loop->loop_kind == LoopKind::kThread; });
  const int64_t both = by_element ? 1 : ChunkOf(last, parts.store, parts.load, parts.condition),
                from = by_element ? 1 : ChunkOf(last, nullptr, parts.load, parts.condition);
  parts.in_registers = both * element < 4 || (both * element < 16 && from * element == 16);
  parts.chunk = parts.in_registers ? from : both;
  int64_t total = 1;
  for (const For* loop : parts.loops) total *= loop->var->extent;
  parts.chunks = total / parts.chunk;
  parts.steps = (parts.chunks + team_ - 1) / team_;
  return parts;
}

void KernelEmitter::EmitCopy(const Copy& copy) {
  if (copy.engine == CopyEngine::kBulk) return EmitBulkCopy(copy);
  const std::optional<ThreadCopy> parts = AnalyseThreadCopy(copy);
  if (!parts) return Fail("a copy by threads under a condition cannot be emitted");
  if (!parts->in_registers) return EmitAsyncCopy(*parts);
  const auto kept = kept_.find(&copy);
  if (kept == kept_.end()) return EmitCopyByRegisters(*parts);
  LoadRegisters(*parts, kept->second, parts->steps, "");
  pending_stores_.push_back({conditions_, *parts, kept->second});
}

// A loop's value in chunk number thread + step * team: number / stride % steps, or with steps 0 (the
// outermost loop) only the quotient. nullopt when the two parts of the number cannot be divided separately.
// Steps are unrolled, so a part that depends only on the step is a constant.
std::optional<std::string> KernelEmitter::PartOfChunk(const std::string& step, int64_t stride,
                                                      int64_t steps) const {
  if (steps == 1) return "0";
  if (stride % team_ == 0) return Digit(step, stride / team_, steps);
  if (steps != 0 && team_ % (stride * steps) == 0) return Digit(Thread(), stride, steps);
  if (steps == 0 && team_ % stride == 0)
    return absl::StrCat("(", Digit(Thread(), stride, 0), " + ", step, " * ", team_ / stride, ")");
  return std::nullopt;
}

// `emit` gets the names of the chunk's number and of the condition that it is inside of the tensor.
void KernelEmitter::EachChunk(const ThreadCopy& copy, int64_t count, const std::string& first,
                              const std::function<void(const std::string&, const std::string&)>& emit) {
  const std::string i = Name("i"), at = Name("chunk");
  Line("#pragma unroll");
  Open("for (int ", i, " = 0; ", i, " < ", count, "; ++", i, ")");
  const std::string step = first.empty() ? i : absl::StrCat("(", first, " + ", i, ")");
  const bool ragged = copy.steps * team_ > copy.chunks;
  bool numbered = ragged;
  std::vector<std::string> values;  // the loops' values, from the innermost
  int64_t stride = 1;
  for (size_t l = copy.loops.size(); l-- > 0;) {
    const bool last = l + 1 == copy.loops.size();
    const int64_t extent = copy.loops[l]->var->extent, steps = last ? extent / copy.chunk : extent;
    const std::optional<std::string> part = PartOfChunk(step, stride, l > 0 ? steps : 0);
    numbered |= !part.has_value();
    std::string value = part ? *part : Digit(at, stride, l > 0 ? steps : 0);
    if (last && copy.chunk > 1)
      value = absl::StrCat(l > 0 ? value : absl::StrCat("(", value, ")"), " * ", copy.chunk);
    values.push_back(std::move(value));
    stride *= steps;
  }
  if (numbered) Line("const int ", at, " = ", Thread(), " + ", step, " * ", team_, ";");
  if (ragged) Open("if (", at, " < ", copy.chunks, ")");
  for (size_t l = copy.loops.size(); l-- > 0;) {
    const Var& var = copy.loops[l]->var;
    vars_[var.get()] = Name(var->name);
    Line("const int ", vars_[var.get()], " = ", values[copy.loops.size() - 1 - l], ";");
  }
  emit(i, copy.condition ? Value(copy.condition).text : "true");
  for (const For* loop : copy.loops) vars_.erase(loop->var.get());
  if (ragged) Close();
  Close();
}

void KernelEmitter::EmitAsyncCopy(const ThreadCopy& copy) {
  const int64_t bytes = copy.chunk * DTypeBytes(copy.store->buffer->dtype);
  EachChunk(copy, copy.steps, "", [&](const std::string&, const std::string& inside) {
    Line(prelude_.Use("cp_async"), "<", bytes, ">(", prelude_.Use("shared_address"), "(&",
         Element(copy.store->buffer, copy.store->indices), "), ", PlaceOf(copy.load->buffer).name, ", ",
         Offset(copy), ", ", inside, ");");
  });
}

// The position of a chunk's first element in the source tensor, in elements.
std::string KernelEmitter::Offset(const ThreadCopy& copy) {
  return Index(FromLinear(Flat(PlaceOf(copy.load->buffer), copy.load->args))).text;
}

std::string KernelEmitter::ChunkType(const ThreadCopy& copy) {
  return absl::StrCat(prelude_.Use("Vec"), "<", arithmetic_.MemoryType(copy.store->buffer->dtype), ", ",
                      copy.chunk, ">");
}

void KernelEmitter::LoadRegisters(const ThreadCopy& copy, const std::string& moved, int64_t count,
                                  const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const std::string& inside) {
    Line(moved, "[", i, "] = ", prelude_.Use("load_ahead"), "<", copy.chunk, ">(",
         PlaceOf(copy.load->buffer).name, ", ", Offset(copy), ", ", inside, ");");
  });
}

void KernelEmitter::StoreRegisters(const ThreadCopy& copy, const std::string& moved, int64_t count,
                                   const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const std::string&) {
    const VarNode* last = copy.loops.back()->var.get();
    const std::string begin = vars_[last], e = Name("e");
    Line("#pragma unroll");
    Open("for (int ", e, " = 0; ", e, " < ", copy.chunk, "; ++", e, ")");
    vars_[last] = Name(copy.loops.back()->var->name);
    Line("const int ", vars_[last], " = ", begin, " + ", e, ";");
    Line(Element(copy.store->buffer, copy.store->indices), " = ", moved, "[", i, "].at[", e, "];");
    Close();
  });
}

void KernelEmitter::EmitCopyByRegisters(const ThreadCopy& copy) {
  const int64_t groups = (copy.steps + kLoads - 1) / kLoads, group = (copy.steps + groups - 1) / groups;
  const std::string first = groups > 1 ? Name("first") : "", moved = Name("moved");
  if (groups > 1) {
    Open("for (int ", first, " = 0; ", first, " < ", groups * group, "; ", first, " += ", group, ")");
  } else {
    OpenBlock();
  }
  Line(ChunkType(copy), " ", moved, "[", group, "];");
  LoadRegisters(copy, moved, group, first);
  StoreRegisters(copy, moved, group, first);
  Close();
}

// In the body of a pipeline's loop, the loaded elements are stored at the end, in slots that are not read
// before the next barrier.
void KernelEmitter::EmitLoopBody(const For& loop) {
  if (roles_ != nullptr || !IsStepLoop(loop)) return Statement(loop.body);
  const std::vector<std::string> around = std::exchange(conditions_, {});
  KeepThroughStep(loop.body);
  Statement(loop.body);
  for (const PendingStore& pending : pending_stores_) {
    for (const std::string& condition : pending.conditions) Open("if (", condition, ")");
    StoreRegisters(pending.copy, pending.moved, pending.copy.steps, "");
    for (size_t c = 0; c < pending.conditions.size(); ++c) Close();
  }
  pending_stores_.clear();
  kept_.clear();
  conditions_ = around;
}

// Declares registers for the step's copies, in the scope of both their loads and their stores.
void KernelEmitter::KeepThroughStep(const Stmt& body) {
  VisitStmts(body, [&](const Stmt& stmt) {
    const Copy* copy = DynAs<Copy>(stmt);
    if (copy == nullptr) return true;
    const std::optional<ThreadCopy> parts = AnalyseThreadCopy(*copy);
    const int64_t bytes = parts ? parts->chunk * DTypeBytes(parts->store->buffer->dtype) : 0;
    if (!parts || !parts->in_registers || RegistersOf(parts->steps, bytes) > kMostRegisters) return false;
    kept_[copy] = Name("moved");
    Line(ChunkType(*parts), " ", kept_[copy], "[", parts->steps, "];");
    return false;
  });
}

// The number of elements of one access: up to 16 bytes, contiguous along the last loop and aligned, at the
// source and (with `store`) at the destination, and all inside or all outside of the tensor.
int64_t KernelEmitter::ChunkOf(const For& last, const Store* store, const Expr& load, const Expr& condition) {
  int64_t common = std::gcd(16 / DTypeBytes(load->dtype), last.var->extent);
  const auto contiguous = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const Linear flat = Flat(PlaceOf(buffer), indices);
    if (flat.CoefficientOf(last.var.get()) != 1) common = 1;
    common = std::gcd(common, flat.constant);
    for (const auto& [atom, coefficient] : flat.terms) {
      if (atom->op == Op::kVar && atom->var == last.var) continue;
      common = UsesVar(atom, last.var.get()) ? 1 : std::gcd(common, coefficient);
    }
  };
  if (store != nullptr) contiguous(store->buffer, store->indices);
  contiguous(load->buffer, load->args);
  std::vector<Expr> parts;
  if (condition) SplitConjunction(condition, &parts);
  for (const Expr& part : parts) {
    if (!UsesVar(part, last.var.get())) continue;
    // last + ... < bound, with all terms multiples of the chunk.
    const Expr difference =
        part->op == Op::kLt || part->op == Op::kLe ? part->args[1] - part->args[0] : nullptr;
    if (!difference) return 1;
    const Linear linear = ToLinear(difference);
    common = std::gcd(common, linear.constant);
    for (const auto& [atom, coefficient] : linear.terms) {
      if (atom->op == Op::kVar && atom->var == last.var) continue;
      common = UsesVar(atom, last.var.get()) ? 1 : std::gcd(common, coefficient);
    }
  }
  return common;
}

}  // namespace mycc

// Emits copies that are divided among all threads: 4 to 16 bytes at a time by cp.async, or through registers.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/pipeline_stmts.h"

namespace mycc {
namespace {

// The loads that one copy issues before it stores the first. Each may have an address and a condition of its
// own.
constexpr int64_t kMostLoads = 32;

}  // namespace

// A copy through registers may begin and end apart.
void KernelEmitter::EmitCopy(const Copy& copy) {
  if (copy.engine == CopyEngine::kBulk) return EmitBulkCopy(copy);
  const ThreadCopyNest parts = *ThreadCopyNestOf(copy);
  if (copy.engine == CopyEngine::kThreads) return EmitAsyncCopy(parts);
  const int64_t steps = StepsOf(parts.chunks());
  if (parts.store->buffer->scope == Scope::kFragment)
    return LoadRegisters(parts, PlaceOf(parts.store->buffer).name, steps, "");
  if (parts.load->buffer->scope == Scope::kFragment)
    return StoreRegisters(parts, PlaceOf(parts.load->buffer).name, steps, "");
  EmitCopyByRegisters(parts);
}

// A loop's value in chunk number thread + step * team: number / stride % steps, or with steps 0 (the
// outermost loop) only the quotient. nullopt when the two parts of the number cannot be divided separately.
// Steps are unrolled, so a part that depends only on the step is a constant.
std::optional<std::string> KernelEmitter::PartOfChunk(const std::string& step, int64_t stride,
                                                      int64_t steps) const {
  if (steps == 1) return "0";
  if (stride % team_ == 0) return Digit(step, stride / team_, steps);
  if (steps != 0 && team_ % (stride * steps) == 0) return Digit(thread_, stride, steps);
  if (steps == 0 && team_ % stride == 0)
    return absl::StrCat("(", Digit(thread_, stride, 0), " + ", step, " * ", team_ / stride, ")");
  return std::nullopt;
}

// `emit` gets the names of the chunk's number and of the condition that it is inside of the tensor.
void KernelEmitter::EachChunk(const ThreadCopyNest& copy, int64_t count, const std::string& first,
                              const std::function<void(const std::string&, const std::string&)>& emit) {
  const std::string i = Name("i"), at = Name("chunk");
  OpenUnrolled(i, count);
  const std::string step = first.empty() ? i : absl::StrCat("(", first, " + ", i, ")");
  const bool ragged = StepsOf(copy.chunks()) * team_ > copy.chunks();
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
  if (numbered) Line("const int ", at, " = ", thread_, " + ", step, " * ", team_, ";");
  if (ragged) Open("if (", at, " < ", copy.chunks(), ")");
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

void KernelEmitter::EmitAsyncCopy(const ThreadCopyNest& copy) {
  const int64_t bytes = copy.chunk * DTypeBytes(copy.store->buffer->dtype);
  EachChunk(copy, StepsOf(copy.chunks()), "", [&](const std::string&, const std::string& inside) {
    Line(prelude_.Use("cp_async"), "<", bytes, ">(", prelude_.Use("shared_address"), "(&",
         Element(copy.store->buffer, copy.store->indices), "), ", PlaceOf(copy.load->buffer).name, ", ",
         Offset(copy), ", ", inside, ");");
  });
}

// The position of a chunk's first element in the source tensor, in elements.
std::string KernelEmitter::Offset(const ThreadCopyNest& copy) {
  return Index(FromLinear(Flat(PlaceOf(copy.load->buffer), copy.load->args))).text;
}

std::string KernelEmitter::ChunkType(DType dtype, int64_t chunk) {
  return absl::StrCat(prelude_.Use("Vec"), "<", arithmetic_.MemoryType(dtype), ", ", chunk, ">");
}

void KernelEmitter::LoadRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                                  const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const std::string& inside) {
    Line(moved, "[", i, "] = ", prelude_.Use("load_ahead"), "<", copy.chunk, ">(",
         PlaceOf(copy.load->buffer).name, ", ", Offset(copy), ", ", inside, ");");
  });
}

void KernelEmitter::StoreRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                                   const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const std::string&) {
    const VarNode* last = copy.loops.back()->var.get();
    const std::string begin = vars_[last], e = Name("e");
    OpenUnrolled(e, copy.chunk);
    vars_[last] = Name(copy.loops.back()->var->name);
    Line("const int ", vars_[last], " = ", begin, " + ", e, ";");
    Line(Element(copy.store->buffer, copy.store->indices), " = ", moved, "[", i, "].at[", e, "];");
    Close();
  });
}

void KernelEmitter::EmitCopyByRegisters(const ThreadCopyNest& copy) {
  const int64_t steps = StepsOf(copy.chunks());
  const int64_t most = std::min(kMostLoads, kRegistersOfCopies / copy.registers());
  const int64_t groups = (steps + most - 1) / most, group = (steps + groups - 1) / groups;
  const std::string first = groups > 1 ? Name("first") : "", moved = Name("moved");
  if (groups > 1) {
    Open("for (int ", first, " = 0; ", first, " < ", groups * group, "; ", first, " += ", group, ")");
  } else {
    OpenBlock();
  }
  Line(ChunkType(copy.load->dtype, copy.chunk), " ", moved, "[", group, "];");
  LoadRegisters(copy, moved, group, first);
  StoreRegisters(copy, moved, group, first);
  Close();
}

}  // namespace mycc

#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/function.h"

namespace mycc {
namespace {

// The tensor-core statement that adds to the buffer, if there is one.
const Mma* MmaInto(const Alloc& alloc) {
  const Mma* found = nullptr;
  VisitStmts(alloc.body, [&](const Stmt& stmt) {
    if (const Mma* mma = DynAs<Mma>(stmt); mma != nullptr && mma->acc.buffer == alloc.buffer) found = mma;
    return found == nullptr;
  });
  return found;
}

}  // namespace

void KernelEmitter::Statement(const Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
      return;
    case StmtKind::kFor: return EmitFor(As<For>(stmt));
    case StmtKind::kIf: return EmitIf(As<If>(stmt));
    case StmtKind::kAlloc: return EmitAlloc(As<Alloc>(stmt));
    case StmtKind::kStore: return EmitStore(As<Store>(stmt));
    case StmtKind::kMma: return EmitMma(As<Mma>(stmt));
    case StmtKind::kCopy: return EmitCopy(As<Copy>(stmt));
    case StmtKind::kRoles: return EmitRoles(As<Roles>(stmt));
    case StmtKind::kArrive: return EmitArrive(As<Arrive>(stmt));
    case StmtKind::kWait: return EmitWait(As<Wait>(stmt));
    case StmtKind::kCommitGroup: return EmitCommitGroup();
    case StmtKind::kWaitGroup: return EmitWaitGroup(As<WaitGroup>(stmt));
    case StmtKind::kFence: return EmitFence();
    default: return Fail(absl::StrCat("the CUDA back end has no emitter for the statement ", StmtName(stmt)));
  }
}

void KernelEmitter::EmitFor(const For& loop) {
  if (loop.loop_kind == LoopKind::kThread) return EmitThreadLoop(loop);
  if (loop.loop_kind == LoopKind::kVector) return EmitVectorLoop(loop);
  const std::string var = Name(loop.var->name);
  const std::string extent = Index(loop.extent).At(kRelation + 1);
  if (loop.loop_kind == LoopKind::kUnroll) Line("#pragma unroll");
  Open("for (int ", var, " = 0; ", var, " < ", extent, "; ++", var, ")");
  With(loop.var.get(), var, [&] { Statement(loop.body); });
  Close();
}

// The threads of the loop's iterations stand `alike` apart: those in between carry out the same iteration,
// until a loop further in tells them apart.
void KernelEmitter::EmitThreadLoop(const For& loop) {
  const int64_t around = alike_, extent = loop.var->extent;
  const int64_t stride = ThreadsUnder(loop.body);
  const bool is_outermost = around == team_;
  const int64_t used = stride * extent;
  std::string position = thread_;
  if (!is_outermost) position = absl::StrCat(thread_, " % ", around);
  const std::string var = Name(loop.var->name);
  const bool is_all = used == around;
  if (is_all) {
    OpenBlock();
  } else {
    Open("if (", position, " < ", used, ")");
  }
  std::string value = position;
  if (stride > 1) value = absl::StrCat(is_outermost ? value : absl::StrCat("(", value, ")"), " / ", stride);
  Line("const int ", var, " = ", value, ";");
  alike_ = stride;
  thread_vars_.insert(loop.var.get());
  With(loop.var.get(), var, [&] { Statement(loop.body); });
  alike_ = around;
  Close();
}

void KernelEmitter::EmitIf(const If& branch) {
  Open("if (", Value(branch.condition).text, ")");
  Statement(branch.then);
  Close();
  if (!branch.otherwise) return;
  text_.pop_back();
  absl::StrAppend(&text_, " else {\n");
  ++depth_;
  Statement(branch.otherwise);
  Close();
}

// An array of one thread's own, in registers where its indices are constants after unrolling.
void KernelEmitter::EmitAlloc(const Alloc& alloc) {
  const Buffer& buffer = alloc.buffer;
  if (buffer->scope == Scope::kShared) return Statement(alloc.body);
  if (const Mma* mma = MmaInto(alloc)) {
    const absl::StatusOr<FragmentLayout> layout = FragmentLayoutOf(*mma, target_);
    if (!layout.ok()) return Fail(std::string(layout.status().message()));
    return EmitAccumulator(alloc, *layout);
  }
  Place place;
  place.name = Name(buffer->name);
  for (int d = 0; d < buffer->rank(); ++d) place.strides.push_back(buffer->stride(d));
  place.in_registers = true;
  Line(arithmetic_.RegisterType(buffer->dtype), " ", place.name, "[", buffer->num_elements(), "];");
  places_[buffer.get()] = std::move(place);
  Statement(alloc.body);
  places_.erase(buffer.get());
}

bool KernelEmitter::OpenOneOfAlike() {
  if (alike_ == 1) return false;
  Open("if (", thread_, alike_ < team_ ? absl::StrCat(" % ", alike_) : "", " == 0)");
  return true;
}

void KernelEmitter::EmitStore(const Store& store) {
  const auto lane = stored_lanes_.find(&store);
  const bool in_registers = PlaceOf(store.buffer).in_registers;
  const bool guarded = !in_registers && lane == stored_lanes_.end() && OpenOneOfAlike();
  const Code value = Value(store.value);
  Line(lane != stored_lanes_.end() ? lane->second : Element(store.buffer, store.indices), " = ",
       in_registers ? value.text : arithmetic_.ToMemory(store.buffer->dtype, value).text, ";");
  if (guarded) Close();
}

}  // namespace mycc

// Emits statements as CUDA C++, by their kind: loops, thread loops, conditions, allocations and stores.
// Copies, tile statements and roles have files of their own.
#include <algorithm>

#include "codegen/cuda/barrier_plan.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

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

bool IsOperandUnder(const Stmt& root, const Buffer& buffer) {
  bool is_operand = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    if (const Mma* mma = DynAs<Mma>(stmt)) is_operand |= mma->a.buffer == buffer;
    return !is_operand;
  });
  return is_operand;
}

bool IsReducedUnder(const Stmt& root, const BufferNode* buffer) {
  bool reduced = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    const Combine* combine = DynAs<Combine>(stmt);
    reduced |= store != nullptr && store->buffer.get() == buffer && ReductionOf(*store) != ReduceOp::kNone;
    reduced |= combine != nullptr && combine->buffer.get() == buffer;
    return !reduced;
  });
  return reduced;
}

}  // namespace

void KernelEmitter::Statement(const Stmt& stmt) {
  if (!status_.ok()) return;
  if (launch_.barriers_before.count(stmt.get()) != 0) {
    if (launch_.cluster_reduce > 1)
      return Fail(absl::StrCat("threads of a cluster_reduce would need a barrier across blocks before ",
                               StmtName(stmt), "; values that they share must be in registers"));
    EmitBarrier();
  }
  switch (stmt->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
      return;
    case StmtKind::kFor: return EmitFor(As<For>(stmt));
    case StmtKind::kIf: return EmitIf(As<If>(stmt));
    case StmtKind::kLet: return EmitLet(As<Let>(stmt));
    case StmtKind::kAlloc: return EmitAlloc(As<Alloc>(stmt));
    case StmtKind::kStore: return EmitStore(As<Store>(stmt));
    case StmtKind::kCombine: return EmitCombine(As<Combine>(stmt), nullptr);
    case StmtKind::kMma: return EmitMma(As<Mma>(stmt));
    case StmtKind::kCopy: return EmitCopy(As<Copy>(stmt));
    case StmtKind::kRoles: return EmitRoles(As<Roles>(stmt));
    case StmtKind::kArrive: return EmitArrive(As<Arrive>(stmt));
    case StmtKind::kWait: return EmitWait(As<Wait>(stmt));
    case StmtKind::kCommitProducts: return Line(prelude_.Use("wgmma_commit"), "();");
    case StmtKind::kWaitProducts:
      return Line(prelude_.Use("wgmma_wait"), "<", As<WaitProducts>(stmt).pending, ">();");
    case StmtKind::kCommitGroup: return EmitCommitGroup();
    case StmtKind::kWaitGroup: return EmitWaitGroup(As<WaitGroup>(stmt));
    case StmtKind::kFence: return EmitFence();
    case StmtKind::kTurn: return EmitTurn(As<Turn>(stmt));
    case StmtKind::kBarrier: return Sync();
    case StmtKind::kSignal: return EmitSignal(As<Signal>(stmt));
    case StmtKind::kAwait: return EmitAwait(As<Await>(stmt));
    default: return Fail(absl::StrCat("the CUDA back end has no emitter for the statement ", StmtName(stmt)));
  }
}

void KernelEmitter::EmitFor(const For& loop) {
  if (loop.loop_kind == LoopKind::kThread) return EmitThreadLoop(loop);
  if (loop.loop_kind == LoopKind::kVector) {
    const StoreTargets targets = TargetsOf(loop.body, [&](const BufferNode& buffer) {
      const auto place = places_.find(&buffer);  // a buffer that is allocated inside has none yet
      return place == places_.end() || place->second.in_registers;
    });
    if (targets != StoreTargets::kOther && (replication_ == 1 || targets != StoreTargets::kBoth))
      return EmitVectorLoop(loop);
  }
  if (EmitCombinesTogether(loop)) return;
  const std::string var = Name(loop.var->name);
  const std::string extent = Index(loop.extent).At(kRelation + 1);
  const bool unrolled = loop.loop_kind == LoopKind::kUnroll || loop.loop_kind == LoopKind::kVector ||
                        unrolled_.count(loop.var.get()) != 0;
  if (unrolled) Line("#pragma unroll");
  if (loop.marks.unroll_by > 0) Line(prelude_.Use("TURNS"), "(", loop.marks.unroll_by, ")");
  Open("for (int ", var, " = 0; ", var, " < ", extent, "; ++", var, ")");
  With(loop.var.get(), var, [&] { EmitLoopBody(loop); });
  Close();
}

void KernelEmitter::EmitLet(const Let& let) {
  const std::string var = Name(let.var->name);
  Line("const int ", var, " = ", Index(let.value).text, ";");
  With(let.var.get(), var, [&] { Statement(let.body); });
}

// The threads of consecutive iterations are `replication` apart. Those in between execute the same iteration,
// until a loop further in divides them.
void KernelEmitter::EmitThreadLoop(const For& loop) {
  const int64_t around = replication_, extent = loop.var->extent;
  const int64_t stride = ThreadsUnder(loop.body), used = stride * extent;
  const bool is_outermost = in_nest_ == 0;
  const std::string mask = lanes_here_;
  const std::string position = is_outermost ? thread_ : absl::StrCat(thread_, " % ", around);
  if (used == around) {
    OpenBlock();
  } else {
    if (used % 32 != 0) {
      lanes_here_ = Name("lanes");
      Line("const unsigned ", lanes_here_, " = __ballot_sync(", mask, ", ", position, " < ", used, ");");
    }
    Open("if (", position, " < ", used, ")");
  }
  std::string value = position;
  if (stride > 1) value = absl::StrCat(is_outermost ? value : absl::StrCat("(", value, ")"), " / ", stride);
  const std::string var = Name(loop.var->name);
  if (!is_outermost && stride > 1 && used == around) {
    value = absl::StrCat(thread_, " / ", stride, " % ", extent);
  }
  Line("const int ", var, " = ", value, ";");
  replication_ = stride;
  if (is_outermost) in_nest_ = used;
  thread_vars_.insert(loop.var.get());
  threads_[loop.var.get()] = ThreadDigit{1, stride, extent};
  With(loop.var.get(), var, [&] { Statement(loop.body); });
  threads_.erase(loop.var.get());
  if (is_outermost) in_nest_ = 0;
  replication_ = around;
  lanes_here_ = mask;
  Close();
}

void KernelEmitter::EmitIf(const If& branch) {
  // A Combine is a barrier, so threads whose condition is false take part in it too.
  const Combine* combine = DynAs<Combine>(branch.then);
  if (combine != nullptr && !branch.otherwise) return EmitCombine(*combine, branch.condition);
  conditions_.push_back(Value(branch.condition).text);
  Open("if (", conditions_.back(), ")");
  Statement(branch.then);
  Close();
  conditions_.pop_back();
  if (!branch.otherwise) return;
  text_.pop_back();
  absl::StrAppend(&text_, " else {\n");
  ++depth_;
  Statement(branch.otherwise);
  Close();
}

// A thread's own array; it is in registers if its indices are constants after unrolling.
void KernelEmitter::EmitAlloc(const Alloc& alloc) {
  const Buffer& buffer = alloc.buffer;
  if (buffer->scope == Scope::kShared) return Statement(alloc.body);
  Place place;
  if (const Mma* mma = MmaInto(alloc)) {
    const absl::StatusOr<FragmentLayout> layout = FragmentLayoutOf(*mma, target_);
    if (!layout.ok()) return Fail(std::string(layout.status().message()));
    place.fragment = *layout;
  }
  place.name = Name(buffer->name);
  place.in_registers = true;
  for (const auto& [var, digit] : threads_) place.threads_around.insert(var);
  place.is_wide = IsNarrowFloat(buffer->dtype) &&
                  (IsReducedUnder(alloc.body, buffer.get()) || IsOperandUnder(alloc.body, buffer));
  std::vector<int64_t> shape = buffer->shape;
  const auto distribution = launch_.registers.find(buffer.get());
  if (distribution != launch_.registers.end()) {
    place.distribution = &distribution->second;
    shape = distribution->second.shape;
  }
  int64_t elements = 1;
  place.strides.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    place.strides[d] = elements;
    elements *= shape[d];
  }
  place.extents = std::move(shape);
  if (place.fragment && elements != place.fragment->registers())
    return Fail(absl::StrCat(buffer->name, " is an accumulator of ", DescribeLayout(*place.fragment),
                             ", but its uses give each thread ", elements, " elements"));
  Line(arithmetic_.RegisterType(buffer->dtype), " ", place.name, "[", elements, "];");
  places_[buffer.get()] = std::move(place);
  Statement(alloc.body);
  places_.erase(buffer.get());
}

bool KernelEmitter::OpenOneOfAlike() {
  if (replication_ == 1) return false;
  Open("if (", thread_, replication_ < team_ ? absl::StrCat(" % ", replication_) : "", " == 0)");
  return true;
}

// A value that is rounded where it is stored or used.
Code KernelEmitter::Unrounded(const Expr& value) {
  const DType dtype = value->dtype;
  const bool rounds = IsNarrowFloat(dtype);
  if (rounds && value->op == Op::kSelect)
    return Arithmetic::Select(Value(value->args[0]), Unrounded(value->args[1]), Unrounded(value->args[2]));
  if (rounds && value->op == Op::kCast && value->args[0]->dtype == DType::kF32) return Value(value->args[0]);
  const bool arithmetic =
      value->op == Op::kAdd || value->op == Op::kSub || value->op == Op::kMul || value->op == Op::kDiv;
  if (!rounds || !arithmetic) return Value(value);
  return arithmetic_.WideBinary(value->op, dtype, Value(value->args[0]), Value(value->args[1]));
}

// A reduction in registers keeps the precision that its type would lose.
Code KernelEmitter::StoredValue(const Store& store) {
  const Place& place = PlaceOf(store.buffer);
  if (!place.in_registers) return Unrounded(store.value);
  if (!place.is_wide) return Value(store.value);
  if (ReductionOf(store) == ReduceOp::kNone) return Unrounded(store.value);
  return arithmetic_.WideBinary(store.value->op, store.buffer->dtype,
                                Primary(Element(store.buffer, store.indices)), Value(store.value->args[1]));
}

void KernelEmitter::EmitStore(const Store& store) {
  const auto lane = stored_lanes_.find(&store);
  const bool in_registers = PlaceOf(store.buffer).in_registers;
  const bool guarded = !in_registers && lane == stored_lanes_.end() && OpenOneOfAlike();
  const Code value = StoredValue(store);
  Line(lane != stored_lanes_.end() ? lane->second : Element(store.buffer, store.indices), " = ",
       in_registers ? value.text : arithmetic_.ToMemory(store.buffer->dtype, value).text, ";");
  if (guarded) Close();
}

}  // namespace mycc

// Emits statements as CUDA C++, by their kind: loops, thread loops, conditions, allocations and stores.
// Copies, tile statements and roles have files of their own.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/function.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {

void KernelEmitter::Statement(const Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
      return;
    case StmtKind::kFor: return EmitFor(As<For>(stmt));
    case StmtKind::kIf: return EmitIf(As<If>(stmt));
    case StmtKind::kLet: return EmitLet(As<Let>(stmt));
    case StmtKind::kAlloc: return EmitAlloc(As<Alloc>(stmt));
    case StmtKind::kStore: return EmitStore(As<Store>(stmt));
    case StmtKind::kCombine: return EmitCombine(As<Combine>(stmt));
    case StmtKind::kMma: return EmitMma(As<Mma>(stmt));
    case StmtKind::kCopy: return EmitCopy(As<Copy>(stmt));
    case StmtKind::kVectors: return EmitVectors(As<Vectors>(stmt));
    case StmtKind::kRoles: return EmitRoles(As<Roles>(stmt));
    case StmtKind::kArrive: return EmitArrive(As<Arrive>(stmt));
    case StmtKind::kWait: return EmitWait(As<Wait>(stmt));
    case StmtKind::kCommitProducts: return Line(Call("wgmma_commit"), ";");
    case StmtKind::kWaitProducts: return EmitWaitProducts(As<WaitProducts>(stmt));
    case StmtKind::kCommitGroup: return EmitCommitGroup();
    case StmtKind::kWaitGroup: return EmitWaitGroup(As<WaitGroup>(stmt));
    case StmtKind::kFence: return Line(Call("async_fence"), ";");
    case StmtKind::kTurn: return EmitTurn(As<Turn>(stmt));
    case StmtKind::kBarrier: return Sync();
    case StmtKind::kSignal: return EmitSignal(As<Signal>(stmt));
    case StmtKind::kAwait: return EmitAwait(As<Await>(stmt));
    default: return Fail("the CUDA back end has no emitter for the statement ", StmtName(stmt));
  }
}

void KernelEmitter::EmitFor(const For& loop) {
  if (loop.loop_kind == LoopKind::kThread) return EmitThreadLoop(loop);
  const Combine* combine = DynAs<Combine>(loop.body);
  if (combine != nullptr && combine->together) return EmitCombinesTogether(loop, *combine);
  const std::string var = Name(loop.var->name);
  const std::string extent = Index(loop.extent).At(kRelation + 1);
  if (loop.loop_kind == LoopKind::kUnroll || loop.loop_kind == LoopKind::kVector) Line("#pragma unroll");
  if (loop.marks.unroll_by > 0) Line(Call("TURNS", loop.marks.unroll_by));
  Open("for (int ", var, " = 0; ", var, " < ", extent, "; ++", var, ")");
  With(loop.var.get(), var, [&] { Statement(loop.body); });
  Close();
}

void KernelEmitter::EmitLet(const Let& let) {
  std::string value = Index(let.value).text;
  if (HasLoad(let.value) && roles_ && roles_->lengths_in_memory && in_nest_ == 0)
    value = absl::StrCat("__shfl_sync(0xffffffffu, int(", value, "), 0)");
  With(let.var.get(), Define("int", let.var->name, value), [&] { Statement(let.body); });
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
  if (!is_outermost && stride > 1 && used == around) value = Digit(thread_, stride, extent);
  const std::string var = Define("int", loop.var->name, value);
  replication_ = stride;
  if (is_outermost) in_nest_ = used;
  threads_[loop.var.get()] = ThreadDigit{1, stride, extent};
  With(loop.var.get(), var, [&] { Statement(loop.body); });
  threads_.erase(loop.var.get());
  if (is_outermost) in_nest_ = 0;
  replication_ = around;
  lanes_here_ = mask;
  Close();
}

void KernelEmitter::EmitIf(const If& branch) {
  Open("if (", Value(branch.condition).text, ")");
  Statement(branch.then);
  if (branch.otherwise) {
    CloseAndOpen("else");
    Statement(branch.otherwise);
  }
  Close();
}

// A thread's own array.
void KernelEmitter::EmitAlloc(const Alloc& alloc) {
  const Buffer& buffer = alloc.buffer;
  if (buffer->scope == Scope::kShared) return Statement(alloc.body);
  Place place;
  if (buffer->scope == Scope::kFragment) {
    // A thread's part of a copy.
    place.name = Name("moved");
    Line(ChunkType(buffer->dtype, buffer->shape[1]), " ", place.name, "[", StepsOf(buffer->shape[0]), "];");
    places_[buffer.get()] = std::move(place);
    return Statement(alloc.body);
  }
  // A tensor-core statement that adds to the buffer.
  if (const Mma* sums = FirstOf<Mma>(alloc.body, [&](const Mma& mma) { return mma.acc.buffer == buffer; })) {
    const absl::StatusOr<FragmentLayout> layout = FragmentLayoutOf(*sums, target_);
    if (!layout.ok()) return Fail(std::string(layout.status().message()));
    place.fragment = *layout;
  }
  place.name = Name(buffer->name);
  place.in_registers = true;
  place.form = alloc.registers;
  const auto distribution = launch_.registers.find(buffer.get());
  if (distribution != launch_.registers.end()) place.distribution = &distribution->second;
  place.layout = Layout::RowMajor(place.distribution ? place.distribution->shape : buffer->shape).Coalesced();
  const int64_t elements = place.layout.size();
  if (place.fragment && elements != place.fragment->registers())
    return Fail(buffer->name, " is an accumulator of ", DescribeLayout(*place.fragment),
                ", but its uses give each thread ", elements, " elements");
  const bool pairs = place.form == RegisterForm::kPairs;
  Line(pairs ? "unsigned" : arithmetic_.RegisterType(buffer->dtype), " ", place.name, "[",
       pairs ? elements / 2 : elements, "];");
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
  if (!IsNarrowFloat(value->dtype)) return Value(value);
  if (value->op == Op::kSelect) return Choice(value, Unrounded(value->args[1]), Unrounded(value->args[2]));
  if (value->op == Op::kCast && value->args[0]->dtype == DType::kF32) return Value(value->args[0]);
  const bool arithmetic =
      value->op == Op::kAdd || value->op == Op::kSub || value->op == Op::kMul || value->op == Op::kDiv;
  if (!arithmetic) return Value(value);
  return arithmetic_.WideBinary(value->op, value->dtype, Value(value->args[0]), Value(value->args[1]));
}

// A reduction in registers keeps the precision that its type would lose.
Code KernelEmitter::StoredValue(const Store& store) {
  const Place& place = PlaceOf(store.buffer);
  if (!place.in_registers) return Unrounded(store.value);
  if (place.form != RegisterForm::kWide) return Value(store.value);
  if (ReductionOf(store) == ReduceOp::kNone) return Unrounded(store.value);
  return arithmetic_.WideBinary(store.value->op, store.buffer->dtype,
                                Primary(Element(store.buffer, store.indices)), Value(store.value->args[1]));
}

void KernelEmitter::EmitStore(const Store& store) {
  const bool in_registers = PlaceOf(store.buffer).in_registers;
  const bool guarded = !in_registers && PlaceOf(store.buffer).vector == 0 && OpenOneOfAlike();
  const Code value = StoredValue(store);
  Line(Element(store.buffer, store.indices), " = ",
       in_registers ? value.text : arithmetic_.ToMemory(store.buffer->dtype, value).text, ";");
  if (guarded) Close();
}

}  // namespace mycc

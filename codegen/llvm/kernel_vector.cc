// Emits vector loops: whole vectors, then the remainder, masked or in narrower vectors; and reductions over
// lanes.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"
#include "llvm/Analysis/VectorUtils.h"

namespace mycc {
namespace {

// The number of independent partial results of a reduction: the latency of a floating-point addition in issue
// slots, about.
constexpr int64_t kPartials = 4;

// The largest or smallest lane. NaN is looked for once, in all lanes: each step is one instruction then.
Value* ExtremeLane(Builder& b, Op op, Value* vector) {
  Value* any_nan = b.CreateOrReduce(b.CreateFCmpUNO(vector, vector));
  Value* nan = llvm::ConstantFP::getNaN(vector->getType()->getScalarType());
  int width = LanesOf(vector);
  for (int half = width / 2; half > 0; half /= 2) {
    width = std::max(half, std::min(width, 4));  // a register has no fewer
    Value* x = b.CreateShuffleVector(vector, llvm::createSequentialMask(0, width, 0));
    Value* y = b.CreateShuffleVector(vector, llvm::createSequentialMask(half, half, width - half));
    vector = b.CreateSelect(op == Op::kMax ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y), x, y);
  }
  return b.CreateSelect(any_nan, nan, b.CreateExtractElement(vector, uint64_t{0}));
}

}  // namespace

std::vector<LlvmKernelEmitter::Part> LlvmKernelEmitter::PartsOf(int64_t first, int64_t end, int width,
                                                                bool one_rest, int least_lanes) {
  MYCC_CHECK(width > 0) << "vectors of no lanes";
  std::vector<Part> parts;
  while (first < end) {
    const auto rest = static_cast<uint64_t>(end - first);
    const auto of_rest = static_cast<int>(one_rest ? std::bit_ceil(rest) : std::bit_floor(rest));
    const int lanes = end - first < width ? std::max(of_rest, least_lanes) : width;
    const int active = static_cast<int>(std::min<int64_t>(lanes, end - first));
    parts.push_back({first, lanes, active});
    first += active;
  }
  return parts;
}

// Calls `emit` for the loop's iterations in vectors. The remainder is one masked vector if the machine has
// masks, else narrower vectors.
void LlvmKernelEmitter::Chunks(const For& loop, const std::function<void(const Chunk&)>& emit) {
  const int width = loop.marks.lanes;
  const int64_t extent = *ConstExtent(loop), unroll_by = loop.marks.unroll_by, step = unroll_by * width;
  int64_t done = 0;
  if (step > 0) {
    done = extent / step * step;
    EmitLoop(b_.getInt64(0), b_.getInt64(done), step, /*runs_once=*/true, [&](Value* first) {
      for (int64_t i = 0; i < unroll_by; ++i)
        emit({b_.CreateAdd(first, b_.getInt64(i * width)), width, width});
    });
  }
  const bool has_masks = b_.features.avx512vl && b_.features.avx512bw;
  for (const auto& [first, lanes, active] : PartsOf(done, extent, width, has_masks))
    emit({b_.getInt64(first), lanes, active});
}

void LlvmKernelEmitter::InLanes(const For& loop, const Chunk& chunk, const std::function<void()>& body) {
  memo_.assign(1, {});
  if (chunk.count == 1) return With(loop.var.get(), chunk.first, body);
  Value* mask = chunk.active < chunk.count ? FirstLanes(chunk.active, chunk.count) : nullptr;
  lanes_ = Lanes{chunk, loop.var.get(), mask, mask != nullptr};
  body();
  lanes_.reset();
}

void LlvmKernelEmitter::EmitVectorLoop(const For& loop) {
  if (loop.marks.form == LaneForm::kReduces) return EmitLaneReduction(loop, As<Store>(loop.body));
  if (loop.marks.form == LaneForm::kOneByOne)
    return loop.marks.unroll_by == 0 ? EmitUnrolled(loop) : EmitRolled(loop);
  Chunks(loop, [&](const Chunk& chunk) { InLanes(loop, chunk, [&] { Statement(loop.body); }); });
}

// Vectors are combined lane by lane; the lanes are combined once, at the end.
void LlvmKernelEmitter::EmitLaneReduction(const For& loop, const Store& store) {
  const int width = loop.marks.lanes;
  const DType dtype = store.buffer->dtype;
  const Op op = store.value->op;
  Value* identity = b_.Constant(dtype, ReduceIdentity(ReductionOf(store), dtype)->value);
  const int64_t full = *ConstExtent(loop) / width;
  std::vector<llvm::AllocaInst*> partials;
  llvm::Type* vector_type = b_.RegisterType(dtype, width);
  for (int64_t i = 0; i < std::min(full, kPartials); ++i) {
    partials.push_back(OnStack(vector_type));
    b_.CreateStore(b_.Splat(identity, width), partials.back());
  }
  llvm::AllocaInst* rest = OnStack(b_.RegisterType(dtype));
  b_.CreateStore(identity, rest);
  size_t next = 0;
  Chunks(loop, [&](const Chunk& chunk) {
    InLanes(loop, chunk, [&] {
      Value* value = b_.Splat(Emit(store.value->args[1]), chunk.count);
      if (chunk.active < chunk.count)
        value = b_.CreateSelect(lanes_->mask, value, b_.Splat(identity, chunk.count));
      llvm::AllocaInst* partial = rest;
      if (chunk.active == width && !partials.empty()) {
        partial = partials[next++ % partials.size()];
      } else {
        value = ReduceLanes(op, dtype, value);
      }
      b_.CreateStore(Combined(op, dtype, b_.CreateLoad(value->getType(), partial), value), partial);
    });
  });
  Value* total = b_.CreateLoad(b_.RegisterType(dtype), rest);
  Value* wide = nullptr;
  for (llvm::AllocaInst* partial : partials) {
    Value* value = b_.CreateLoad(vector_type, partial);
    wide = wide ? Combined(op, dtype, wide, value) : value;
  }
  if (wide) total = Combined(op, dtype, total, ReduceLanes(op, dtype, wide));
  memo_.assign(1, {});
  Value* running = Emit(store.value->args[0]);
  const Access access = AccessOf(store);
  StoreAccess(access, b_.ToMemory(dtype, Combined(op, dtype, running, total)));
}

// The sign of a zero result of a reduction is not defined, so its initial zero need not be added.
Value* LlvmKernelEmitter::Combined(Op op, DType dtype, Value* a, Value* b) {
  const Builder::FastMathFlagGuard guard(b_);
  b_.getFastMathFlags().setNoSignedZeros();
  return b_.Binary(op, dtype, a, b);
}

Value* LlvmKernelEmitter::ReduceLanes(Op op, DType dtype, Value* vector) {
  if (!IsVector(vector)) return vector;
  if (IsFloat(dtype) && (op == Op::kMax || op == Op::kMin)) return ExtremeLane(b_, op, vector);
  for (int lanes = LanesOf(vector); lanes > 1; lanes /= 2) {
    Value *low = b_.HalfOf(vector, 0), *high = b_.HalfOf(vector, 1);
    vector = Combined(op, dtype, low, high);
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

}  // namespace mycc

// Emits loads and stores: the pointer of each buffer, and vector accesses that are uniform, contiguous,
// strided or scattered.
#include <algorithm>

#include "base/check.h"
#include "codegen/llvm/kernel_emitter.h"

namespace mycc {

Value* LlvmKernelEmitter::ByteOffset(Value* pointer, int64_t bytes) {
  return bytes == 0 ? pointer : b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer, bytes);
}

// Pointers of the buffers that the caller provides are made in the entry block, at the first use.
const LlvmKernelEmitter::Place& LlvmKernelEmitter::PlaceOf(const Buffer& buffer) {
  const auto known = places_.find(buffer.get());
  if (known != places_.end()) return known->second;
  const auto found = kernel_.layout.origins.find(buffer.get());
  MYCC_CHECK(found != kernel_.layout.origins.end()) << "buffer " << buffer->name << " has no place";
  const BufferOrigin& origin = found->second;
  const Builder::InsertPointGuard guard(b_);
  b_.SetInsertPoint(entry_->getTerminator());
  Place place{.read_only = origin.read_only, .over_read = origin.aligned, .alias_group = origin.alias_group};
  if (origin.kind == BufferOrigin::kTensor) {
    auto* load = b_.CreateLoad(b_.getPtrTy(), ByteOffset(arguments_.tensors, 8 * origin.tensor));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    place.pointer = ByteOffset(load, origin.offset);
  } else if (origin.kind == BufferOrigin::kSharedWorkspace) {
    place.pointer = ByteOffset(arguments_.shared, origin.offset);
  } else {
    Value* start = b_.CreateMul(arguments_.thread, b_.getInt64(kernel_.layout.thread_bytes));
    place.pointer = ByteOffset(b_.CreatePtrAdd(arguments_.threads, start), origin.offset);
  }
  return places_[buffer.get()] = place;
}

LlvmKernelEmitter::Access LlvmKernelEmitter::AccessOf(const Buffer& buffer, const std::vector<Expr>& indices,
                                                      const void* node) {
  const Place& place = PlaceOf(buffer);
  auto [cached, fresh] = flat_.try_emplace(node);
  if (fresh) cached->second = ToLinear(OffsetOf(buffer->layout, indices));
  const Linear& flat = cached->second;
  const int64_t size = DTypeBytes(buffer->dtype);
  // Elements of a lane's own buffer are interleaved with those of the other lanes.
  const int64_t scale = std::max(place.lanes, 1);

  Access access{&place, buffer->dtype, place.pointer, 0, nullptr, IsInside(*buffer, indices)};
  std::vector<std::pair<int, std::pair<Value*, int64_t>>> terms;  // by depth of the loop
  int64_t constant = flat.constant, lane_stride = 0;
  std::vector<std::pair<Expr, int64_t>> scattered;
  const auto add = [&](int depth, Value* value, int64_t coefficient) {
    if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(value)) {
      constant += c->getSExtValue() * coefficient;
    } else {
      terms.push_back({depth, {value, coefficient}});
    }
  };
  for (const auto& [atom, coefficient] : flat.terms) {
    if (!Varies(atom)) {
      add(DepthOf(atom), Emit(atom), coefficient);
    } else if (atom->op == Op::kVar) {
      lane_stride = coefficient;
      add(depth_, lanes_->first, coefficient);
    } else {
      scattered.push_back({atom, coefficient});
    }
  }
  llvm::stable_sort(terms, llvm::less_first());
  for (const auto& [depth, term] : terms) {
    Value* bytes = b_.CreateMul(term.first, b_.getInt64(term.second * size * scale));
    access.pointer = b_.CreatePtrAdd(access.pointer, bytes);
  }
  access.pointer = ByteOffset(access.pointer, constant * size * scale);
  if (lanes_) access.stride = lane_stride * scale + (place.lanes > 0 ? 1 : 0);
  if (scattered.empty()) return access;

  const bool narrow = buffer->num_elements() * scale < (int64_t{1} << 30) &&
                      std::ranges::all_of(scattered, [&](const auto& term) { return IsNarrow(term.first); });
  llvm::Type* element = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* offsets = LaneNumbers(element, *access.stride);
  for (const auto& [atom, coefficient] : scattered) {
    Value* factor = llvm::ConstantInt::get(offsets->getType(), coefficient * scale, /*IsSigned=*/true);
    offsets = b_.CreateAdd(offsets, b_.CreateMul(LaneIndex(atom, element), factor));
  }
  access.stride.reset();
  access.scattered = offsets;
  return access;
}

Value* LlvmKernelEmitter::LoadRaw(const Access& access, llvm::Type* type, Value* pointer) {
  auto* load = Annotate(access, b_.CreateAlignedLoad(type, pointer, llvm::Align(access.align())));
  if (access.place->read_only)
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return load;
}

void LlvmKernelEmitter::StoreRaw(const Access& access, Value* value, Value* pointer) {
  Annotate(access, b_.CreateAlignedStore(value, pointer, llvm::Align(access.align())));
}

llvm::Constant* LlvmKernelEmitter::FirstLanes(int active, int count, int group, int valid) {
  llvm::SmallVector<llvm::Constant*, 64> bits;
  for (int lane = 0; lane < count * group; ++lane)
    bits.push_back(b_.getInt1(lane < active * group && lane % group < valid));
  return llvm::ConstantVector::get(bits);
}

Value* LlvmKernelEmitter::LoadFirst(const Access& access, llvm::Type* type, Value* pointer, int active) {
  const int count = LanesOf(type);
  if (active == count) return LoadRaw(access, type, pointer);
  return LoadMasked(access, type, pointer, FirstLanes(active, count));
}

void LlvmKernelEmitter::StoreFirst(const Access& access, Value* value, Value* pointer, int active) {
  const int count = LanesOf(value);
  if (active == count) return StoreRaw(access, value, pointer);
  StoreMasked(access, value, pointer, FirstLanes(active, count));
}

Value* LlvmKernelEmitter::LoadMasked(const Access& access, llvm::Type* type, Value* pointer, Value* mask) {
  return Annotate(access, b_.CreateMaskedLoad(type, pointer, llvm::Align(access.align()), mask,
                                              llvm::Constant::getNullValue(type)));
}

void LlvmKernelEmitter::StoreMasked(const Access& access, Value* value, Value* pointer, Value* mask) {
  Annotate(access, b_.CreateMaskedStore(value, pointer, llvm::Align(access.align()), mask));
}

void LlvmKernelEmitter::Fetch(Value* pointer, bool to_write) {
  constexpr int kToL1 = 3, kData = 1;
  b_.CreateIntrinsic(intrinsic::prefetch, {pointer->getType()},
                     {pointer, b_.getInt32(to_write), b_.getInt32(kToL1), b_.getInt32(kData)});
}

void LlvmKernelEmitter::StorePastCaches(const Access& access, Value* value) {
  const uint64_t bytes = value->getType()->getPrimitiveSizeInBits().getFixedValue() / 8;
  auto* store = Annotate(access, b_.CreateAlignedStore(value, access.pointer, llvm::Align(bytes)));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
}

Value* LlvmKernelEmitter::LanePointer(const Access& access, int lane) {
  if (!access.scattered) return ElementAt(access, lane * *access.stride);
  Value* offset = b_.CreateSExt(b_.CreateExtractElement(access.scattered, lane), b_.getInt64Ty());
  return b_.CreatePtrAdd(access.pointer, b_.CreateMul(offset, b_.getInt64(access.align())));
}

Value* LlvmKernelEmitter::LanePointers(const Access& access) {
  Value* offsets = access.scattered ? access.scattered : LaneNumbers(b_.getInt64Ty(), *access.stride);
  return b_.CreateGEP(b_.MemoryType(access.dtype), access.pointer, offsets);
}

Value* LlvmKernelEmitter::LoadAccess(const Access& access) {
  Value* stored = access.stride == 0   ? LoadUniform(access)
                  : access.stride == 1 ? LoadContiguous(access)
                                       : LoadScattered(access);
  return b_.FromMemory(access.dtype, stored);
}

// A zero is read instead of an element that the lanes may not read.
Value* LlvmKernelEmitter::LoadUniform(const Access& access) {
  Value* pointer = access.pointer;
  if (HasHoles() && !access.in_bounds) {
    llvm::Constant* zero = kernel_.module.getOrInsertGlobal("mycc_zero", b_.getInt64Ty(), [&] {
      return new llvm::GlobalVariable(kernel_.module, b_.getInt64Ty(), /*isConstant=*/true,
                                      llvm::GlobalValue::InternalLinkage, b_.getInt64(0), "mycc_zero");
    });
    pointer = b_.CreateSelect(b_.CreateOrReduce(lanes_->mask), pointer, zero);
  }
  return LoadRaw(access, b_.MemoryType(access.dtype), pointer);
}

Value* LlvmKernelEmitter::LoadContiguous(const Access& access) {
  llvm::Type* type = b_.MemoryType(access.dtype, lanes_->count);
  const bool tail_readable = lanes_->active == lanes_->count || access.place->over_read;
  // Lanes that are disabled by a mask other than the tail's may be anywhere, even before the buffer.
  const bool whole =
      lanes_->mask == nullptr || (tail_readable && (lanes_->mask_is_prefix || access.in_bounds));
  if (whole) return LoadRaw(access, type, access.pointer);
  return LoadMasked(access, type, access.pointer, lanes_->mask);
}

// Loads lanes a few elements apart: loads the vectors that cover them, and shuffles. The last vector ends
// with the last lane's element, so that no element outside of the lanes' range is read.
Value* LlvmKernelEmitter::LoadStrided(const Access& access) {
  llvm::Type* type = b_.MemoryType(access.dtype, lanes_->count);
  const int count = lanes_->count, stride = static_cast<int>(*access.stride);
  const int span = stride * (lanes_->active - 1) + 1;
  Value* result = llvm::PoisonValue::get(type);
  for (int begin = 0, lane = 0; lane < lanes_->active; begin += count) {
    begin = std::min(begin, span - count);
    Value* part = LoadRaw(access, type, ElementAt(access, begin));
    llvm::SmallVector<int, 32> from(count, llvm::PoisonMaskElem);
    for (int before = 0; before < lane; ++before) from[before] = before;
    for (; lane < lanes_->active && lane * stride < begin + count; ++lane)
      from[lane] = count + lane * stride - begin;
    result = b_.CreateShuffleVector(result, part, from);
  }
  return result;
}

Value* LlvmKernelEmitter::LoadScattered(const Access& access) {
  llvm::Type* type = b_.MemoryType(access.dtype, lanes_->count);
  if (HasHoles() && !access.in_bounds) {
    return Annotate(access, b_.CreateMaskedGather(type, LanePointers(access), llvm::Align(access.align()),
                                                  lanes_->mask, llvm::Constant::getNullValue(type)));
  }
  const int64_t stride = access.stride.value_or(0);
  if (stride > 1 && stride <= kMostStride && access.align() >= 4 && lanes_->active >= 4)
    return LoadStrided(access);
  if (stride == -1 && !lanes_->mask)
    return b_.CreateVectorReverse(LoadRaw(access, type, ElementAt(access, 1 - lanes_->count)));
  Value* gathered = llvm::Constant::getNullValue(type);
  for (int lane = 0; lane < lanes_->active; ++lane) {
    Value* element = LoadRaw(access, b_.MemoryType(access.dtype), LanePointer(access, lane));
    gathered = b_.CreateInsertElement(gathered, element, lane);
  }
  return gathered;
}

void LlvmKernelEmitter::StoreAccess(const Access& access, Value* stored) {
  if (!lanes_) return StoreRaw(access, stored, access.pointer);
  MYCC_CHECK(access.stride != 0) << "lanes store to one element";
  stored = b_.Splat(stored, lanes_->count);
  access.stride == 1 ? StoreContiguous(access, stored) : StoreScattered(access, stored);
}

void LlvmKernelEmitter::StoreContiguous(const Access& access, Value* value) {
  if (!lanes_->mask && access.nontemporal) return StorePastCaches(access, value);
  if (!lanes_->mask) return StoreRaw(access, value, access.pointer);
  if (access.place->on_stack && (lanes_->mask_is_prefix || access.in_bounds)) {
    // The stack is private to this thread, and masked stores would keep register tiles in memory.
    Value* old = LoadRaw(access, value->getType(), access.pointer);
    return StoreRaw(access, b_.CreateSelect(lanes_->mask, value, old), access.pointer);
  }
  StoreMasked(access, value, access.pointer, lanes_->mask);
}

void LlvmKernelEmitter::StoreScattered(const Access& access, Value* value) {
  if (HasHoles()) {
    Annotate(access,
             b_.CreateMaskedScatter(value, LanePointers(access), llvm::Align(access.align()), lanes_->mask));
    return;
  }
  for (int lane = 0; lane < lanes_->active; ++lane) {
    StoreRaw(access, b_.CreateExtractElement(value, lane), LanePointer(access, lane));
  }
}

}  // namespace mycc

#include "codegen/ir/interpreter_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace mycc::interpreter {
namespace {

constexpr const char* kUnwritten = "is read before it is written";
constexpr const char* kParallelWrite = "was written by another iteration of the parallel loop";
constexpr const char* kParallelRead = "was read by another iteration of the parallel loop";
constexpr const char* kUnorderedWrite =
    "races with a write of another role or of an asynchronous copy or product: no barrier or group orders "
    "them";
constexpr const char* kUnorderedRead =
    "races with a read of another role or of an asynchronous copy or product: no barrier or group orders "
    "them";
constexpr const char* kThreadWrite = "was written by another thread of the block, and no barrier came since";
constexpr const char* kThreadRead = "was read by another thread of the block, and no barrier came since";
constexpr const char* kBytes =
    "has bytes of a buffer that another thread of the block touched, and no barrier came since";
constexpr const char* kUnfenced = "is read asynchronously without a fence after the ordinary write to it";

}  // namespace

void Join(VectorClock* clock, const VectorClock& other) {
  for (size_t i = 0; i < other.size(); ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
}

bool Covers(const VectorClock& clock, const VectorClock& other) {
  for (size_t i = 0; i < other.size(); ++i) {
    if (clock[i] < other[i]) return false;
  }
  return true;
}

Memory::Memory(Buffer buffer, int components, bool tells_threads)
    : buffer_(std::move(buffer)),
      rank_(buffer_->rank()),
      shape_(buffer_->shape.data()),
      components_(components) {
  elements_.resize(buffer_->num_elements());
  if (tells_threads) threaded_.resize(elements_.size());
  if (components_ == 0) return;
  last_writes_.resize(elements_.size());
  last_reads_.resize(elements_.size() * components_);
}

void Memory::Begin(const Accessor& accessor) {
  ++scope_;
  first_iteration_ = accessor.iteration;
}

void Memory::Initialize(int64_t flat, Scalar value) {
  elements_[flat].value = value;
  elements_[flat].scope = scope_;
}

const char* Memory::CheckWriteBefore(int64_t flat, const Accessor& accessor) const {
  const LastWrite& last = last_writes_[flat];
  return accessor.clock[last.component] < last.time ? kUnorderedWrite : nullptr;
}

const char* Memory::CheckReadsBefore(int64_t flat, const Accessor& accessor) const {
  const uint32_t* reads = &last_reads_[flat * components_];
  for (size_t c = 0; c < components_; ++c) {
    if (reads[c] > accessor.clock[c]) return kUnorderedRead;
  }
  return nullptr;
}

const char* Memory::TouchBytes(uint32_t interval, int64_t thread, bool is_write) {
  for (Memory* other : over_) {
    const Touched& last = other->bytes_;
    if (last.interval == interval && (last.thread != thread || thread == kSeveral)) return kBytes;
    if (is_write) ++other->scope_;
  }
  const bool alone = bytes_.interval != interval || bytes_.thread == thread;
  bytes_ = {interval, alone ? thread : kSeveral};
  return nullptr;
}

const char* Memory::ReadByThread(int64_t flat, const Accessor& accessor, Threads threads) {
  if (threaded_.empty() || accessor.interval == 0 || threads == Threads::kTogether) return nullptr;
  const bool one = threads == Threads::kFirst || (threads == Threads::kAll && accessor.replication == 1);
  const int64_t thread = one ? accessor.thread : kSeveral;
  if (!over_.empty()) {
    if (const char* fault = TouchBytes(accessor.interval, thread, /*is_write=*/false)) return fault;
  }
  auto& [written, read] = threaded_[flat];
  if (written.interval == accessor.interval && (written.thread != thread || thread == kSeveral))
    return kThreadWrite;
  read = {accessor.interval, read.interval == accessor.interval && read.thread != thread ? kSeveral : thread};
  return nullptr;
}

// Threads may write the same value to one element.
const char* Memory::WriteByThread(int64_t flat, const Accessor& accessor, Threads threads, Scalar value) {
  if (threaded_.empty() || accessor.interval == 0 || threads == Threads::kTogether) return nullptr;
  const int64_t thread = threads == Threads::kSome ? kSeveral : accessor.thread;
  if (!over_.empty()) {
    if (const char* fault = TouchBytes(accessor.interval, thread, /*is_write=*/true)) return fault;
  }
  auto& [written, read] = threaded_[flat];
  const auto by_others = [&](const Touched& touched) {
    return touched.interval == accessor.interval && (touched.thread != thread || thread == kSeveral);
  };
  if (by_others(read)) return kThreadRead;
  if (!by_others(written)) {
    written = {accessor.interval, thread};
    return nullptr;
  }
  if (std::bit_cast<uint64_t>(value.f) != std::bit_cast<uint64_t>(elements_[flat].value.f) ||
      value.i != elements_[flat].value.i)
    return kThreadWrite;
  written.thread = kSeveral;
  return nullptr;
}

const char* Memory::ReadElement(int64_t flat, const Accessor& accessor, Scalar* value) {
  Element& element = elements_[flat];
  if (element.scope != scope_) return kUnwritten;
  if (OfOtherIteration(element.writer, accessor)) return kParallelWrite;
  if (accessor.iteration != element.reader) {
    element.other_reader = element.reader;
    element.reader = accessor.iteration;
  }
  *value = element.value;
  return nullptr;
}

const char* Memory::WriteElement(int64_t flat, const Accessor& accessor, Scalar value) {
  Element& element = elements_[flat];
  if (OfOtherIteration(element.writer, accessor)) return kParallelWrite;
  if (OfOtherIteration(element.reader, accessor) || OfOtherIteration(element.other_reader, accessor))
    return kParallelRead;
  element.value = value;
  element.scope = scope_;
  element.writer = accessor.iteration;
  return nullptr;
}

const char* Memory::Read(int64_t flat, const Accessor& accessor, Threads threads, Scalar* value) {
  if (const char* fault = ReadByThread(flat, accessor, threads)) return fault;
  if (components_ != 0) {
    if (const char* fault = CheckWriteBefore(flat, accessor)) return fault;
    last_reads_[flat * components_ + accessor.agent] = accessor.clock[accessor.agent];
  }
  return ReadElement(flat, accessor, value);
}

const char* Memory::Write(int64_t flat, const Accessor& accessor, Threads threads, Scalar value) {
  if (const char* fault = WriteByThread(flat, accessor, threads, value)) return fault;
  if (components_ != 0) {
    if (const char* fault = CheckWriteBefore(flat, accessor)) return fault;
    if (const char* fault = CheckReadsBefore(flat, accessor)) return fault;
    last_writes_[flat] = LastWrite{accessor.agent, accessor.clock[accessor.agent],
                                   static_cast<uint32_t>(accessor.fences.size())};
  }
  return WriteElement(flat, accessor, value);
}

const char* Memory::AsyncRead(int64_t flat, const Accessor& accessor, const Completion& completion,
                              Scalar* value) {
  if (const char* fault = ReadByThread(flat, accessor, completion.threads)) return fault;
  if (const char* fault = CheckWriteBefore(flat, accessor)) return fault;
  const LastWrite& last = last_writes_[flat];
  const bool in_memory = buffer_->scope == Scope::kShared || buffer_->scope == Scope::kGlobal;
  if (in_memory && last.fence != kNeedsNoFence) {
    const std::vector<uint32_t>& fences = (*completion.agents)[last.component]->fences;
    const bool fenced = last.fence < fences.size() && fences[last.fence] <= accessor.clock[last.component];
    if (!fenced) return kUnfenced;
  }
  last_reads_[flat * components_ + completion.channel] = completion.time;
  return ReadElement(flat, accessor, value);
}

const char* Memory::AsyncWrite(int64_t flat, const Accessor& accessor, const Completion& completion,
                               Scalar value) {
  if (const char* fault = WriteByThread(flat, accessor, completion.threads, value)) return fault;
  if (const char* fault = CheckWriteBefore(flat, accessor)) return fault;
  return AsyncWriteSum(flat, accessor, completion, value);
}

const char* Memory::AsyncReadSum(int64_t flat, const Accessor& accessor, const Completion& completion,
                                 Scalar* value) {
  if (last_writes_[flat].component != completion.channel) {
    if (const char* fault = CheckWriteBefore(flat, accessor)) return fault;
  }
  return ReadElement(flat, accessor, value);
}

const char* Memory::AsyncWriteSum(int64_t flat, const Accessor& accessor, const Completion& completion,
                                  Scalar value) {
  if (const char* fault = CheckReadsBefore(flat, accessor)) return fault;
  last_writes_[flat] = LastWrite{completion.channel, completion.time, kNeedsNoFence};
  return WriteElement(flat, accessor, value);
}

}  // namespace mycc::interpreter

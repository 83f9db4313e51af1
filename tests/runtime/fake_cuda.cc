#include "tests/runtime/fake_cuda.h"

#include <cstdlib>
#include <utility>

#include "tests/runtime/fake_cuda_state.h"

namespace mycc::fake_cuda {

// Kept until the very end: artifacts call the driver when they are unloaded.
State& TheState() {
  static State& state = *new State;
  return state;
}
// Never used twice, so that tests do not share contexts or memory.
unsigned long long NewId() {
  static unsigned long long last = 0;
  return ++last;
}

thread_local ContextStack current_contexts;
thread_local int capture_mode = 0;

CuResult Enter(const char* function, bool allowed_in_capture) {
  State& state = TheState();
  ++state.counts[function];
  if (state.failing == function) return kUnknown;
  const bool forbidden =
      !allowed_in_capture && !state.captures.empty() && capture_mode != kCudaCaptureRelaxed;
  return forbidden ? kCaptureUnsupported : kCudaSuccess;
}

Context* PrimaryOf(int device) {
  State& state = TheState();
  if (state.primary[device] == nullptr)
    state.primary[device] = std::make_unique<Context>(Context{device, NewId()});
  return state.primary[device].get();
}

Block* BlockAt(uintptr_t address) {
  State& state = TheState();
  auto it = state.memory.upper_bound(address);
  if (it == state.memory.begin()) return nullptr;
  --it;
  return address < it->first + static_cast<uintptr_t>(it->second.bytes) ? &it->second : nullptr;
}

void Reset() {
  State& state = TheState();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  for (Device& device : state.devices) device = Device();
  state.failing.clear();
  state.work.clear();
  state.counts.clear();
  state.captures.clear();
  for (const auto& [graph, objects] : state.objects) {
    for (const UserObject& object : objects) state.destroyed.push_back(object.object);
  }
  state.objects.clear();
  current_contexts.clear();
  for (auto& context : state.primary) context.reset();
  state.own.clear();
}

Device& DeviceAt(int ordinal) { return TheState().devices[ordinal]; }
void Fail(const std::string& function) { TheState().failing = function; }

std::vector<std::string> TakeWork() {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  return std::exchange(TheState().work, {});
}

int CountOf(const std::string& function) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  return TheState().counts[function];
}

void MakeCurrent(int ordinal, bool primary) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  if (!primary) TheState().own.push_back(std::make_unique<Context>(Context{ordinal, NewId()}));
  current_contexts.clear();
  current_contexts.push_back(primary ? PrimaryOf(ordinal) : TheState().own.back().get());
}
bool HasCurrent() { return !current_contexts.empty(); }

void* NewStream() {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  return reinterpret_cast<void*>(TheState().last_stream += 16);
}

void BeginCapture(void* stream) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  const uint64_t id = ++TheState().captures_begun;
  TheState().captures[stream] = {id, static_cast<int>(id)};
}

int EndCapture(void* stream) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  const int graph = TheState().captures.at(stream).graph;
  TheState().captures.erase(stream);
  return graph;
}

void DestroyGraph(int graph) {
  std::vector<UserObject> objects;
  {
    std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
    objects = std::exchange(TheState().objects[graph], {});
    for (const UserObject& object : objects) TheState().destroyed.push_back(object.object);
  }
  for (const UserObject& object : objects) object.destroy(object.object);
}

void* Allocate(int64_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  TheState().memory[reinterpret_cast<uintptr_t>(memory)] = {bytes, NewId()};
  return memory;
}

void Free(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  TheState().memory.erase(reinterpret_cast<uintptr_t>(memory));
  std::free(memory);
}

void Renew(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  TheState().memory.at(reinterpret_cast<uintptr_t>(memory)).id = NewId();
}

int64_t AllocatedBytes() {
  std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
  int64_t bytes = 0;
  for (const auto& [address, block] : TheState().memory) bytes += block.bytes;
  return bytes;
}

}  // namespace mycc::fake_cuda

// A GPU as its runner sees it: a context, one stream on which everything happens in order, memory, and the
// measuring kernels. Thread rule: belongs to the thread that opened it, for which its context is current.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/cuda_api.h"

namespace mycc {

// Device memory, freed with its owner. The device must outlive it.
class GpuMemory {
 public:
  GpuMemory() = default;
  GpuMemory(const CudaApi* api, CudaAddress address, int64_t bytes)
      : api_(api), address_(address), bytes_(bytes) {}
  GpuMemory(GpuMemory&& other) noexcept { *this = std::move(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GpuMemory() {
    if (address_ != 0) api_->MemFree(address_);
  }
  CudaAddress address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  const CudaApi* api_ = nullptr;
  CudaAddress address_ = 0;
  int64_t bytes_ = 0;
};

// A point in the stream whose time the device notes.
class GpuEvent {
 public:
  GpuEvent(const CudaApi* api, void* event) : api_(api), event_(event) {}
  GpuEvent(GpuEvent&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  ~GpuEvent() {
    if (event_ != nullptr) api_->EventDestroy(event_);
  }
  void* get() const { return event_; }

 private:
  const CudaApi* api_;
  void* event_;
};

// Work on the stream that was captured, to be launched as often as wanted.
class GpuGraph {
 public:
  GpuGraph(const CudaApi* api, void* graph) : api_(api), graph_(graph) {}
  GpuGraph(GpuGraph&& other) noexcept
      : api_(other.api_),
        graph_(std::exchange(other.graph_, nullptr)),
        exec_(std::exchange(other.exec_, nullptr)) {}
  ~GpuGraph() {
    if (exec_ != nullptr) api_->GraphExecDestroy(exec_);
    if (graph_ != nullptr) api_->GraphDestroy(graph_);
  }

 private:
  friend class GpuContext;
  const CudaApi* api_;
  void* graph_;
  void* exec_ = nullptr;
};

class GpuContext {
 public:
  // The first device that this process sees; `kernels` is the cubin of the measuring kernels.
  static absl::StatusOr<std::unique_ptr<GpuContext>> Open(const std::string& kernels);

  const CudaApi& api() const { return *api_; }
  void* stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }
  int64_t l2_bytes() const { return l2_bytes_; }

  absl::StatusOr<GpuMemory> Allocate(int64_t bytes);
  // In bytes, of the whole device.
  absl::StatusOr<int64_t> FreeMemory();
  // In the stream's order, without waiting.
  absl::Status Fill(CudaAddress to, uint8_t byte, int64_t bytes);
  absl::Status Copy(CudaAddress to, CudaAddress from, int64_t bytes);
  // These wait.
  absl::Status Upload(CudaAddress to, const void* from, int64_t bytes);
  absl::Status Download(void* to, CudaAddress from, int64_t bytes);
  // Waits for everything; the error of what ran, where there was one.
  absl::Status Wait();
  // The same; DeadlineExceeded when it takes longer.
  absl::Status WaitAtMost(double seconds);

  // A measuring kernel over `elements`, with its arguments by value.
  template <typename... Arguments>
  absl::Status Launch(const char* kernel, int64_t elements, Arguments... arguments) {
    void* addresses[] = {&arguments...};
    return LaunchWith(kernel, elements, addresses);
  }

  absl::StatusOr<GpuEvent> MakeEvent();
  // Notes the time of the stream's present end, also within a capture.
  absl::Status Record(const GpuEvent& event);
  // Between two events that have passed.
  absl::StatusOr<double> SecondsBetween(const GpuEvent& start, const GpuEvent& end);

  // What `enqueue` puts on the stream.
  absl::StatusOr<GpuGraph> Capture(const std::function<absl::Status()>& enqueue);
  absl::Status Launch(const GpuGraph& graph);

 private:
  explicit GpuContext(const CudaApi* api) : api_(api) {}
  absl::Status Start(const std::string& kernels);
  absl::Status LaunchWith(const char* kernel, int64_t elements, void** arguments);

  const CudaApi* const api_;
  void* stream_ = nullptr;
  void* module_ = nullptr;
  bool capturing_ = false;
  int multiprocessors_ = 1;
  int64_t l2_bytes_ = 0;
};

}  // namespace mycc

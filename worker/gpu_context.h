// A GPU as its runner uses it: a CUDA context, a stream for all work in order, a second stream for the
// neighbour's, memory, and the measuring kernels. Thread rule: belongs to the thread that opened it, for
// which its context is current.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/cuda_session.h"

namespace mycc {

class GpuContext {
 public:
  // The first device that this process sees; `kernels` is the cubin of the measuring kernels.
  static absl::StatusOr<std::unique_ptr<GpuContext>> Open(const std::string& kernels);

  CuStream stream() const { return stream_.handle(); }
  int64_t l2_bytes() const { return l2_bytes_; }
  int multiprocessors() const { return multiprocessors_; }
  // Threads of a measuring kernel over a great many elements.
  int64_t most_threads() const;

  absl::StatusOr<CudaBuffer> Allocate(int64_t bytes) { return session_->Allocate(bytes); }
  // In bytes, of the whole device.
  absl::StatusOr<int64_t> FreeMemory();
  // In the stream's order, without waiting.
  absl::Status Fill(CuAddress to, uint8_t byte, int64_t bytes);
  absl::Status Copy(CuAddress to, CuAddress from, int64_t bytes);
  // These wait.
  absl::Status Upload(CuAddress to, const void* from, int64_t bytes);
  absl::Status Download(void* to, CuAddress from, int64_t bytes);
  // Waits for all work; returns its error, if any.
  absl::Status Wait() { return stream_.Synchronize(); }
  // The same; DeadlineExceeded when it takes longer.
  absl::Status WaitAtMost(double seconds);

  // A measuring kernel over `elements`, with its arguments by value.
  template <typename... Arguments>
  absl::Status Launch(const char* kernel, int64_t elements, Arguments... arguments) {
    void* addresses[] = {&arguments...};
    return LaunchWith(kernel, elements, addresses);
  }

  // A measuring kernel on the neighbour's stream, in a grid of its own.
  template <typename... Arguments>
  absl::Status LaunchBeside(const char* kernel, int blocks, int threads, int shared_bytes,
                            Arguments... arguments) {
    void* addresses[] = {&arguments...};
    return LaunchOn(beside_.handle(), kernel, blocks, threads, shared_bytes, addresses);
  }
  // Waits for the neighbour.
  absl::Status WaitBeside() { return beside_.Synchronize(); }

  absl::StatusOr<CudaEvent> MakeEvent() { return session_->CreateEvent(); }
  // Records an event at the stream's end, also within a capture.
  absl::Status Record(const CudaEvent& event) { return stream_.Record(event); }

  // A graph of what `enqueue` puts on the stream, to be launched as often as wanted.
  absl::StatusOr<CudaGraph> Capture(const std::function<absl::Status()>& enqueue) {
    return stream_.Capture(enqueue);
  }
  absl::Status Launch(const CudaGraph& graph) { return stream_.Launch(graph); }

 private:
  GpuContext(std::unique_ptr<CudaSession> session, CudaStream stream, CudaStream beside)
      : session_(std::move(session)),
        driver_(session_->driver()),
        stream_(std::move(stream)),
        beside_(std::move(beside)) {}
  absl::Status LaunchWith(const char* kernel, int64_t elements, void** arguments);
  absl::Status LaunchOn(CuStream stream, const char* kernel, int64_t blocks, int threads, int shared_bytes,
                        void** arguments);

  const std::unique_ptr<CudaSession> session_;
  const CudaDriver* const driver_;
  CudaStream stream_, beside_;
  CuModule module_ = nullptr;
  int multiprocessors_ = 1;
  int64_t l2_bytes_ = 0;
};

}  // namespace mycc

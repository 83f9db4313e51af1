// Owns a GPU's memory, streams, events and graphs, for programs that run kernels. Thread rule: a session's
// objects are used only by the thread that opened it, and do not outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/cuda_driver.h"

namespace mycc {

// Device memory; empty by default.
class CudaBuffer {
 public:
  CudaBuffer() = default;
  CudaBuffer(CudaBuffer&& other) noexcept { *this = std::move(other); }
  CudaBuffer& operator=(CudaBuffer&& other) noexcept;
  ~CudaBuffer();

  CuAddress address() const { return address_; }
  void* data() const { return reinterpret_cast<void*>(address_); }
  int64_t bytes() const { return bytes_; }
  // Copies bytes() bytes from and to host memory, and waits for the copy.
  absl::Status Write(const void* host);
  absl::Status Read(void* host) const;

 private:
  friend class CudaSession;
  CudaBuffer(const CudaDriver* driver, CuAddress address, int64_t bytes)
      : driver_(driver), address_(address), bytes_(bytes) {}
  const CudaDriver* driver_ = nullptr;
  CuAddress address_ = 0;
  int64_t bytes_ = 0;
};

// Work captured on a stream, ready to be launched.
class CudaGraph {
 public:
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&&) = delete;
  ~CudaGraph();

 private:
  friend class CudaStream;
  CudaGraph(const CudaDriver* driver, CuGraphExec executable) : driver_(driver), executable_(executable) {}
  const CudaDriver* driver_;
  CuGraphExec executable_;
};

// A point in a stream's work, with its time.
class CudaEvent {
 public:
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent();

  // The time from `earlier` to this one. REQUIRES: the device has reached both; see
  // CudaStream::Synchronize().
  absl::StatusOr<double> SecondsSince(const CudaEvent& earlier) const;

 private:
  friend class CudaSession;
  friend class CudaStream;
  CudaEvent(const CudaDriver* driver, CuEvent handle) : driver_(driver), handle_(handle) {}
  const CudaDriver* driver_;
  CuEvent handle_;
};

// A queue of work that runs in order, concurrently with other streams.
class CudaStream {
 public:
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream();

  CuStream handle() const { return handle_; }  // what an artifact's functions take
  absl::Status Synchronize();
  // Records the stream's current point in `event`; inside Capture(), on each launch of the graph.
  absl::Status Record(const CudaEvent& event);
  // Sets all bytes of the buffer, without waiting.
  absl::Status Fill(const CudaBuffer& buffer, uint8_t value);
  // A graph of the work that `enqueue` puts on this stream. An error of `enqueue` ends the capture and is
  // returned.
  absl::StatusOr<CudaGraph> Capture(const std::function<absl::Status()>& enqueue);
  absl::Status Launch(const CudaGraph& graph);

 private:
  friend class CudaSession;
  CudaStream(const CudaDriver* driver, CuStream handle) : driver_(driver), handle_(handle) {}
  const CudaDriver* driver_;
  CuStream handle_;
  bool is_capturing_ = false;
};

// A device's primary context, current on the thread that opened the session until the session ends.
class CudaSession {
 public:
  // Errors: those of CudaDriver::Open() and of driver calls; NotFound when there is no such device.
  static absl::StatusOr<std::unique_ptr<CudaSession>> Open(int ordinal);
  ~CudaSession();

  const CudaDriver* driver() const { return driver_; }
  int ordinal() const { return ordinal_; }
  // ResourceExhausted says how much was asked for and how much is free.
  absl::StatusOr<CudaBuffer> Allocate(int64_t bytes);
  absl::StatusOr<CudaStream> CreateStream();
  absl::StatusOr<CudaEvent> CreateEvent();
  // Waits for all work on the device, and returns the error of work that failed.
  absl::Status Synchronize();

 private:
  CudaSession(const CudaDriver* driver, int ordinal, CuDevice device)
      : driver_(driver), ordinal_(ordinal), device_(device) {}
  const CudaDriver* const driver_;
  const int ordinal_;
  const CuDevice device_;
};

}  // namespace mycc

// NVIDIA's driver, opened at run time: devices, memory, streams, events and graphs, for programs that run
// kernels. No type of CUDA's headers appears here. Thread rule: a session's objects are used from one thread,
// the one that opened it, and do not outlive it; the functions that describe devices from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

struct CudaDeviceInfo {
  int ordinal = 0;
  std::string name;  // "NVIDIA H200"
  int major = 0, minor = 0;
  int sms = 0;
  int64_t shared_bytes = 0;  // of a block that asks for it
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  std::string pci_bus_id;  // "0000:1b:00.0"
  int driver_version = 0;  // of the newest CUDA that it knows: 13000 for 13.0
};

// Errors: NotFound when there is no driver or no device, in words that say which and what was looked for.
absl::StatusOr<int> CountCudaDevices();
absl::StatusOr<CudaDeviceInfo> DescribeCudaDevice(int ordinal);

// Memory of a device.
class CudaBuffer {
 public:
  CudaBuffer(CudaBuffer&& other) noexcept;
  CudaBuffer& operator=(CudaBuffer&&) = delete;
  ~CudaBuffer();

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // From and to host memory of bytes(); they wait until it is done.
  absl::Status Write(const void* host);
  absl::Status Read(void* host) const;

 private:
  friend class CudaSession;
  CudaBuffer(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  void* data_;
  int64_t bytes_;
};

// What was captured on a stream, ready to be launched.
class CudaGraph {
 public:
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&&) = delete;
  ~CudaGraph();

 private:
  friend class CudaStream;
  explicit CudaGraph(void* executable) : executable_(executable) {}
  void* executable_;
};

// A moment in a stream.
class CudaEvent {
 public:
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent();

  // The time from `earlier` to this one. REQUIRES: both have come to pass, see CudaStream::Synchronize().
  absl::StatusOr<double> SecondsSince(const CudaEvent& earlier) const;

 private:
  friend class CudaSession;
  friend class CudaStream;
  explicit CudaEvent(void* handle) : handle_(handle) {}
  void* handle_;
};

// Work that runs in order, beside that of other streams.
class CudaStream {
 public:
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream();

  void* handle() const { return handle_; }  // what an artifact's functions take
  absl::Status Synchronize();
  // Records where the stream is; inside Capture(), on each launch of the graph.
  absl::Status Record(const CudaEvent& event);
  // Sets all bytes of the buffer, without waiting.
  absl::Status Fill(const CudaBuffer& buffer, uint8_t value);
  // What `enqueue` puts on this stream, as a graph. Its error ends the capture.
  absl::StatusOr<CudaGraph> Capture(const std::function<absl::Status()>& enqueue);
  absl::Status Launch(const CudaGraph& graph);

 private:
  friend class CudaSession;
  explicit CudaStream(void* handle) : handle_(handle) {}
  void* handle_;
  bool is_capturing_ = false;
};

// A device's primary context, current on the thread that opened the session until the session ends.
class CudaSession {
 public:
  // Errors as above, and ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CudaSession>> Open(int ordinal);
  ~CudaSession();

  int ordinal() const { return ordinal_; }
  // ResourceExhausted says how much was asked for and how much is free.
  absl::StatusOr<CudaBuffer> Allocate(int64_t bytes);
  absl::StatusOr<CudaStream> CreateStream();
  absl::StatusOr<CudaEvent> CreateEvent();
  // Waits for all work on the device; the error of work that failed.
  absl::Status Synchronize();

 private:
  CudaSession(int ordinal, int device) : ordinal_(ordinal), device_(device) {}
  const int ordinal_;
  const int device_;
};

}  // namespace mycc

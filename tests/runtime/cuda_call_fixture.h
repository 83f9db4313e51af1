// A test with a freshly loaded artifact, tensors in the fake device's memory, and what the fake driver was
// asked for.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/temporary_folder.h"
#include "dlpack/dlpack.h"
#include "tests/runtime/fake_cuda.h"

namespace mycc {

// A tensor in the fake device's memory.
class Tensor {
 public:
  Tensor(std::vector<int64_t> shape, DLDataType type, int64_t bytes)
      : memory_(fake_cuda::Allocate(bytes)), shape_(std::move(shape)) {
    view = {memory_, {kDLCUDA, 0}, static_cast<int>(shape_.size()), type, shape_.data(), nullptr, 0};
  }
  ~Tensor() { fake_cuda::Free(memory_); }
  char* data() const { return static_cast<char*>(memory_); }
  const std::vector<int64_t>& shape() const { return shape_; }

  DLTensor view;

 private:
  void* memory_;
  std::vector<int64_t> shape_;
};

constexpr DLDataType kF32 = {kDLFloat, 32, 1}, kF16 = {kDLFloat, 16, 1}, kU8 = {kDLUInt, 8, 1};

inline std::string Hex(const void* address) { return absl::StrFormat("%p", address); }

// Each test has an artifact of its own, freshly loaded.
class CudaCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_cuda::Reset();
    const std::string copy = folder_.path() + "/m.so";
    std::filesystem::copy_file(std::getenv("CUDA_TEST_MODULE"), copy);
    library_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    stream_ = fake_cuda::NewStream();
  }
  void TearDown() override { dlclose(library_); }

  int Call(const std::string& name, std::vector<DLTensor*> args, void* stream) {
    auto* function = reinterpret_cast<int32_t (*)(DLTensor**, int32_t, void*)>(dlsym(library_, name.c_str()));
    return function(args.data(), static_cast<int32_t>(args.size()), stream);
  }
  int Prepare(int device = 0) {
    return reinterpret_cast<int32_t (*)(int32_t)>(dlsym(library_, "m_prepare"))(device);
  }
  std::string Error() { return reinterpret_cast<const char* (*)()>(dlsym(library_, "m_last_error"))(); }

  int Pack(void* stream) { return Call("m_scale_pack", {&w_.view, &packed_.view}, stream); }
  int Scale(void* stream) { return Call("m_scale", {&x_.view, &packed_.view, &y_.view}, stream); }
  // The workspace that a call on the stream uses.
  std::string WorkspaceOf(void* stream) {
    fake_cuda::TakeWork();
    EXPECT_EQ(Scale(stream), 0) << Error();
    for (const std::string& line : fake_cuda::TakeWork()) {
      if (line.rfind("launch scale_3 ", 0) == 0) return line.substr(line.rfind(' ') + 1);
    }
    return "none";
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  void* library_ = nullptr;
  void* stream_ = nullptr;
  Tensor x_{{2, 3}, kF32, 24}, y_{{2, 3}, kF32, 24}, w_{{4}, kF32, 16}, packed_{{128}, kU8, 128};
  Tensor a_{{8, 64}, kF16, 1024}, b_{{8, 64}, kF16, 1024};
};

}  // namespace mycc

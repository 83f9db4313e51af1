// Placements of tensors and code in memory: where they are, that they are the same ones again, and that a
// function computes the same at each.
#include "codegen/runtime/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

TEST(PlacementTest, TheFirstIsTheAllocators) {
  for (int tensor = 0; tensor < 4; ++tensor) {
    EXPECT_EQ(PlaceOf(0, tensor).alignment, 64);
    EXPECT_EQ(PlaceOf(0, tensor).offset, 0);
  }
}

TEST(PlacementTest, OthersAreUnrelatedLines) {
  std::set<int64_t> offsets, in_page;
  for (int placement = 1; placement <= 16; ++placement) {
    for (int tensor = 0; tensor < 4; ++tensor) {
      const MemoryPlace place = PlaceOf(placement, tensor);
      EXPECT_EQ(place.alignment, 4096);
      EXPECT_EQ(place.offset % 64, 0);
      EXPECT_GE(place.offset, 0);
      EXPECT_LT(place.offset, 65536);
      EXPECT_EQ(PlaceOf(placement, tensor).offset, place.offset);
      offsets.insert(place.offset);
      in_page.insert(place.offset % 4096);
    }
  }
  EXPECT_GT(offsets.size(), 55u);
  EXPECT_GT(in_page.size(), 30u);
}

TEST(PlacementTest, ATensorBeginsThereAndIsZeroed) {
  const MemoryPlace place{4096, 4096 + 192};
  HostTensor tensor = *HostTensor::Create(DType::kF32, {33}, /*is_text=*/false, place);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 4096, 192u);
  EXPECT_EQ(tensor.view()->data, tensor.data());
  EXPECT_TRUE(
      std::all_of(tensor.data(), tensor.data() + tensor.bytes(), [](uint8_t byte) { return byte == 0; }));
}

TEST(PlacementTest, CodeAndTensorsMoveAndTheResultStays) {
  const Target target = ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value();
  const auto workload = ParseWorkload(
      "workload f(x: f32[4], w: const f32[4]) -> (y: f32[4]) {\n  y[i] = x[i] * w[i]\n}\n", "test");
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(
      BuildLibrary({"m", target, {CompileKernel(*workload, target, {}).value()}}, folder->path()).ok());
  std::set<const void*> inputs, entries;
  for (int placement = 0; placement < 8; ++placement) {
    const Spacer spacer(placement);
    const auto library = Library::Open(folder->path() + "/m.so").value();
    Arguments arguments = Arguments::Create(library.get(), "f", placement).value();
    for (int i = 0; i < 4; ++i) {
      StoreScalar(DType::kF32, arguments.tensor(0).data() + 4 * i, {1.0 + i, 0});
      StoreScalar(DType::kF32, arguments.tensor(1).data() + 4 * i, {10, 0});
    }
    ASSERT_TRUE(arguments.Pack().ok());
    ASSERT_TRUE(arguments.Call().ok());
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(LoadScalar(DType::kF32, arguments.tensor(2).data() + 4 * i).f, 10 + 10 * i);
    const uintptr_t input = reinterpret_cast<uintptr_t>(arguments.tensor(0).data());
    if (placement > 0) {
      EXPECT_EQ(input % 4096, static_cast<uintptr_t>(PlaceOf(placement, 0).offset % 4096));
    }
    inputs.insert(arguments.tensor(0).data());
    entries.insert(reinterpret_cast<const void*>(library->Symbol("f").value()));
  }
  EXPECT_GT(inputs.size(), 4u);
  EXPECT_GT(entries.size(), 1u) << "a library that is loaded anew lies elsewhere";
}

}  // namespace
}  // namespace mycc

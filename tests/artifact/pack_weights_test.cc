// The places of a model's constants in its library.
#include "codegen/artifact/pack_weights.h"

#include <gmock/gmock.h>

namespace mycc {
namespace {

using testing::ElementsAre;

KernelLaunch LibraryLaunch(std::vector<TensorPlace> places) {
  KernelLaunch launch;
  launch.tensors.assign(places.size(), MakeBuffer("t", DType::kF32, {16}));
  launch.places = std::move(places);
  return launch;
}

TEST(LayOutWeightsTest, LibraryKernelsReadOneConstantAsAnotherArgument) {
  const TensorPlace constant = {TensorPlace::kConstant, 0}, arena = {TensorPlace::kArena, 0};
  ModelProgram program;
  program.launches.push_back(LibraryLaunch({constant, arena, arena}));
  program.launches.push_back(LibraryLaunch({arena, constant, arena}));
  program.launches.push_back(LibraryLaunch({constant, arena, arena}));
  const WeightLayout layout = LayOutWeights(program, {});
  const int64_t second = layout.offsets[1][1];
  EXPECT_GT(second, 0);
  EXPECT_THAT(layout.offsets,
              ElementsAre(ElementsAre(0, -1, -1), ElementsAre(-1, second, -1), ElementsAre(0, -1, -1)));
}

}  // namespace
}  // namespace mycc

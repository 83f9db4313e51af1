// Runs programs by the reference, and compares them with their graphs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "codegen/graph/interpret.h"
#include "codegen/graph/library_kernels.h"
#include "codegen/program/program.h"
#include "tests/graph/graph_cases.h"

namespace mycc {

// Runs a program as its library does, with the reference in place of compiled kernels.
class ProgramRun {
 public:
  ProgramRun(const ModelProgram& program, std::vector<NDArray> inputs)
      : program_(program), inputs_(std::move(inputs)), arena_(program.arena_bytes, 0xa5) {
    for (const NamedTensor& output : program.outputs)
      outputs_.push_back(NDArray::Zeros(output.tensor->dtype, output.tensor->shape));
  }

  std::vector<NDArray> Run() {
    for (const KernelLaunch& launch : program_.launches) Launch(launch);
    return outputs_;
  }

 private:
  void Launch(const KernelLaunch& launch) {
    ASSERT_EQ(launch.places.size(), launch.tensors.size());
    const size_t num_inputs = launch.tensors.size() - launch.num_outputs;
    std::vector<NDArray> values;
    for (size_t i = 0; i < num_inputs; ++i) {
      // A kernel may take the tensor in another shape, with the same bytes.
      const Buffer& tensor =
          launch.kernel < 0 ? launch.tensors[i] : program_.kernels[launch.kernel].inputs[i].tensor;
      values.push_back(NDArray::Zeros(tensor->dtype, tensor->shape));
      std::vector<uint8_t>& bytes = values.back().bytes;
      std::copy_n(At(launch.places[i], bytes.size()), bytes.size(), bytes.data());
    }
    const std::vector<Buffer> outputs(launch.tensors.begin() + num_inputs, launch.tensors.end());
    std::vector<const NDArray*> arguments;
    for (const NDArray& value : values) arguments.push_back(&value);
    const auto results = launch.kernel < 0 ? RunLibraryCall(launch.call, outputs, arguments)
                                           : RunReference(program_.kernels[launch.kernel], values);
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; i < results->size(); ++i) {
      const std::vector<uint8_t>& bytes = (*results)[i].bytes;
      std::ranges::copy(bytes, At(launch.places[num_inputs + i], bytes.size()));
    }
  }

  uint8_t* At(const TensorPlace& place, size_t size) {
    std::vector<uint8_t>* bytes = &arena_;
    if (place.kind == TensorPlace::kInput) bytes = &inputs_[place.at].bytes;
    if (place.kind == TensorPlace::kOutput) bytes = &outputs_[place.at].bytes;
    if (place.kind == TensorPlace::kConstant)
      return const_cast<uint8_t*>(program_.constants[place.at]->bytes.data());
    const int64_t offset = place.kind == TensorPlace::kArena ? place.at : 0;
    EXPECT_LE(offset + size, bytes->size());
    return bytes->data() + offset;
  }

  const ModelProgram& program_;
  std::vector<NDArray> inputs_, outputs_;
  std::vector<uint8_t> arena_;
};

// The program gives the bytes that the graph gives.
inline void ExpectComputes(const ModelProgram& program, const Graph& graph) {
  const std::vector<NDArray> inputs = RandomValues(graph, 1);
  const auto expected = InterpretGraph(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::vector<NDArray> got = ProgramRun(program, inputs).Run();
  ASSERT_EQ(got.size(), expected->size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i].bytes == (*expected)[i].bytes) << graph.outputs[i].name << "\n" << PrintGraph(graph);
}

}  // namespace mycc

#include "codegen/ir/interpreter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/cluster.h"
#include "codegen/ir/interpreter_machine.h"

namespace mycc {
namespace {

absl::Status CheckInput(const Buffer& buffer, const NDArray& input) {
  if (input.dtype == buffer->dtype && input.shape == buffer->shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("interpreter: input ", buffer->name, " is ",
                                                 TypeText(input.dtype, input.shape), ", expected ",
                                                 TypeText(buffer)));
}

absl::StatusOr<NDArray> TakeOutput(const interpreter::Memory& memory) {
  NDArray output = NDArray::Zeros(memory.buffer().dtype, memory.buffer().shape);
  for (int64_t flat = 0; flat < memory.size(); ++flat) {
    if (!memory.IsWritten(flat)) {
      return Refusal("interpreter: output ", memory.buffer().name, ": element ", flat, " of ", memory.size(),
                     " is never written");
    }
    output.Set(flat, memory.Value(flat));
  }
  return output;
}

}  // namespace

absl::StatusOr<std::vector<NDArray>> RunFunction(const Function& function, const std::vector<NDArray>& inputs,
                                                 uint64_t seed) {
  const size_t num_inputs = std::ranges::count_if(
      function.params, [](const Param& param) { return param.kind != ParamKind::kOutput; });
  if (inputs.size() != num_inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("interpreter: ", inputs.size(), " inputs, expected ", num_inputs));
  }
  Function expanded = function;
  expanded.body = ExpandBlocks(function.body);
  MYCC_ASSIGN_OR_RETURN(const interpreter::Program program, interpreter::Compile(expanded));
  interpreter::Machine machine(program, seed);
  auto input = inputs.begin();
  for (size_t p = 0; p < function.params.size(); ++p) {
    interpreter::Memory& memory = machine.memory(static_cast<int>(p));
    memory.Begin(interpreter::Accessor());
    if (function.params[p].kind == ParamKind::kOutput) continue;
    MYCC_RETURN_IF_ERROR(CheckInput(function.params[p].buffer, *input));
    for (int64_t flat = 0; flat < memory.size(); ++flat) memory.Initialize(flat, input->Get(flat));
    ++input;
  }
  MYCC_RETURN_IF_ERROR(machine.Run());
  std::vector<NDArray> outputs;
  for (size_t p = 0; p < function.params.size(); ++p) {
    if (function.params[p].kind != ParamKind::kOutput) continue;
    MYCC_ASSIGN_OR_RETURN(NDArray output, TakeOutput(machine.memory(static_cast<int>(p))));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace mycc

#include "codegen/cuda/portable.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/portable.pb.h"

namespace mycc {
namespace {

constexpr uint32_t kPortableVersion = 1;

std::vector<int64_t> ToVector(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

void FillOperand(const CudaOperand& operand, portable::Operand* out) {
  out->set_argument(operand.argument);
  out->set_offset(operand.offset);
}

void FillMap(const CudaTensorMap& map, portable::TensorMap* out) {
  FillOperand(map.operand, out->mutable_operand());
  out->set_dtype(DTypeName(map.dtype));
  out->mutable_dims()->Add(map.dims.begin(), map.dims.end());
  out->mutable_strides()->Add(map.strides.begin(), map.strides.end());
  out->mutable_box()->Add(map.box.begin(), map.box.end());
  out->mutable_element_strides()->Add(map.element_strides.begin(), map.element_strides.end());
  out->set_swizzle_bytes(map.swizzle_bytes);
}

void FillStep(const CudaStep& step, portable::Step* out) {
  out->set_kernel(step.kernel);
  out->mutable_grid()->Add(step.grid.begin(), step.grid.end());
  out->set_cluster(step.cluster);
  out->set_threads(step.threads);
  out->set_shared_bytes(step.shared_bytes);
  out->set_waits(step.waits);
  for (const CudaTensorMap& map : step.maps) FillMap(map, out->add_maps());
  for (const CudaOperand& pointer : step.pointers) FillOperand(pointer, out->add_pointers());
}

CudaOperand OperandOf(const portable::Operand& operand) {
  return {.argument = operand.argument(), .offset = operand.offset()};
}

absl::StatusOr<std::vector<CudaStep>> StepsOf(const google::protobuf::RepeatedPtrField<portable::Step>& all) {
  std::vector<CudaStep> steps;
  for (const portable::Step& read : all) {
    if (read.grid_size() != 3) return WrongPortable("a grid of ", read.grid_size(), " dimensions");
    CudaStep& step = steps.emplace_back(CudaStep{.kernel = read.kernel(),
                                                 .grid = {read.grid(0), read.grid(1), read.grid(2)},
                                                 .cluster = read.cluster(),
                                                 .threads = read.threads(),
                                                 .shared_bytes = read.shared_bytes(),
                                                 .waits = read.waits()});
    for (const portable::TensorMap& map : read.maps()) {
      const std::optional<DType> dtype = ParseDType(map.dtype());
      if (!dtype) return WrongPortable("a TMA descriptor of an unknown type");
      step.maps.push_back({.operand = OperandOf(map.operand()),
                           .dtype = *dtype,
                           .dims = ToVector(map.dims()),
                           .strides = ToVector(map.strides()),
                           .box = ToVector(map.box()),
                           .element_strides = ToVector(map.element_strides()),
                           .swizzle_bytes = map.swizzle_bytes()});
    }
    for (const portable::Operand& pointer : read.pointers()) step.pointers.push_back(OperandOf(pointer));
  }
  return steps;
}

}  // namespace

std::string SerializePortable(const Portable& portable) {
  portable::Portable out;
  out.set_version(kPortableVersion);
  out.set_target(portable.target);
  out.set_code_digest(portable.code_digest);
  out.set_compiler(portable.compiler);
  out.set_machine_code(portable.image.cubin);
  for (const CudaKernelResources& kernel : portable.image.kernels) {
    portable::Kernel& written = *out.add_kernels();
    written.set_name(kernel.kernel);
    written.set_registers(kernel.registers);
    written.set_spill_bytes(kernel.spill_bytes);
    written.set_stack_bytes(kernel.stack_bytes);
    written.set_shared_bytes(kernel.shared_bytes);
  }
  for (const CudaStep& step : portable.program.call) FillStep(step, out.add_call());
  for (const CudaStep& step : portable.program.pack) FillStep(step, out.add_pack());
  out.set_workspace_bytes(portable.program.workspace_bytes);
  out.mutable_packed_bytes()->Add(portable.packed_bytes.begin(), portable.packed_bytes.end());
  return out.SerializeAsString();
}

absl::StatusOr<Portable> ParsePortable(std::string_view bytes, const Workload& workload,
                                       const Target& target) {
  portable::Portable read;
  if (bytes.size() > kMostPortableBytes)
    return WrongPortable(bytes.size(), " bytes; expected at most ", kMostPortableBytes);
  if (!read.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return WrongPortable("its bytes are not those of a message");
  if (read.version() != kPortableVersion)
    return WrongPortable("version ", read.version(), "; expected ", kPortableVersion);
  Portable portable;
  portable.target = read.target();
  portable.code_digest = read.code_digest();
  portable.compiler = read.compiler();
  portable.image.cubin = std::move(*read.mutable_machine_code());
  for (const portable::Kernel& kernel : read.kernels()) {
    portable.image.kernels.push_back({.kernel = kernel.name(),
                                      .registers = kernel.registers(),
                                      .spill_bytes = kernel.spill_bytes(),
                                      .stack_bytes = kernel.stack_bytes(),
                                      .shared_bytes = kernel.shared_bytes()});
  }
  MYCC_ASSIGN_OR_RETURN(portable.program.call, StepsOf(read.call()));
  MYCC_ASSIGN_OR_RETURN(portable.program.pack, StepsOf(read.pack()));
  portable.program.workspace_bytes = read.workspace_bytes();
  portable.packed_bytes = ToVector(read.packed_bytes());
  MYCC_RETURN_IF_ERROR(CheckPortable(portable, workload, target));
  return portable;
}

}  // namespace mycc

// Writes the constant tables of a GPU library: its programs, kernels, steps and TMA descriptors.
#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/artifact/glue.h"
#include "codegen/artifact/glue_module.h"
#include "codegen/runtime/artifact/cuda_artifact.h"

namespace mycc {
namespace {

static_assert(sizeof(MyccCudaOperand) == 2 * 8 && sizeof(MyccCudaMap) == 9 * 8 &&
              sizeof(MyccCudaStep) == 12 * 8 && sizeof(MyccCudaEntry) == 7 * 8 &&
              sizeof(MyccCudaImage) == 8 && sizeof(MyccCudaKernel) == 4 * 8 &&
              sizeof(MyccCudaModule) == 16 * 8);

constexpr int64_t kAlignment = 16;       // of tensors, in bytes: the widest load needs it
constexpr int64_t kPortableCluster = 8;  // blocks

int64_t MapType(DType dtype) {
  switch (dtype) {
    case DType::kF64: return kCudaMapF64;
    case DType::kF32: return kCudaMapF32;
    case DType::kF16: return kCudaMapF16;
    case DType::kBF16: return kCudaMapBF16;
    case DType::kI64: return kCudaMapI64;
    case DType::kI32: return kCudaMapI32;
    case DType::kI16:
    case DType::kU16: return kCudaMapU16;
    case DType::kU32: return kCudaMapU32;
    case DType::kU64: return kCudaMapU64;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2: return kCudaMapU8;
  }
  return kCudaMapU8;
}

// The driver's number of a swizzle: 0 for none, 1 for 32 bytes, 2 for 64, 3 for 128.
int64_t MapSwizzle(int bytes) { return bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : 0; }

bool UsesWorkspace(const CudaStep& step) {
  const auto is_workspace = [](const CudaOperand& operand) {
    return operand.argument == CudaOperand::kWorkspace;
  };
  return std::ranges::any_of(step.pointers, is_workspace) ||
         std::ranges::any_of(step.maps, [&](const CudaTensorMap& map) { return is_workspace(map.operand); });
}

class CudaTables {
 public:
  CudaTables(const LibrarySpec& spec, const CudaModel* model, GlueModule* glue)
      : spec_(spec), model_(model), glue_(*glue) {
    if (model != nullptr) workspace_bytes_ = model->workspace_bytes;
  }

  absl::Status AddUnit(const CudaUnit& unit) {
    const auto image = static_cast<int64_t>(images_.size());
    images_.push_back(glue_.Row({glue_.Bytes(unit.image.cubin)}));
    for (const CudaKernelResources& kernel : unit.image.kernels) {
      const auto [it, is_new] = kernels_.try_emplace(kernel.kernel, Kernel{});
      if (!is_new) return absl::InternalError(absl::StrCat("two kernels are called ", kernel.kernel));
      it->second = {static_cast<int64_t>(kernels_.size()) - 1, image, kernel.shared_bytes, 0, false};
    }
    for (const auto* steps : {&unit.program.call, &unit.program.pack}) {
      for (const CudaStep& step : *steps) MYCC_RETURN_IF_ERROR(NoteStep(step));
    }
    workspace_bytes_ = std::max(workspace_bytes_, unit.program.workspace_bytes);
    return absl::OkStatus();
  }

  // REQUIRES: all units are added.
  llvm::Constant* EntryRow(const Entry& entry, const std::vector<CudaStep>& entry_steps) {
    std::vector<llvm::Constant*> fields = glue_.SignatureFields(entry, kAlignment), steps;
    bool uses_workspace = false;
    for (const CudaStep& step : entry_steps) {
      steps.push_back(StepRow(step));
      uses_workspace |= UsesWorkspace(step);
    }
    fields.insert(fields.end(), {glue_.Int(steps.size()), glue_.Array(steps), glue_.Int(uses_workspace)});
    return glue_.Row(fields);
  }

  llvm::Constant* ModuleRow(const std::vector<llvm::Constant*>& entries, llvm::Constant* table) {
    std::vector<llvm::Constant*> kernels(kernels_.size());
    int64_t most_shared_bytes = 0;
    for (const auto& [name, kernel] : kernels_) {
      kernels[kernel.index] = glue_.Row({glue_.Text(name), glue_.Int(kernel.image),
                                         glue_.Int(kernel.dynamic_bytes), glue_.Int(kernel.any_cluster)});
      most_shared_bytes = std::max(most_shared_bytes, kernel.static_bytes + kernel.dynamic_bytes);
    }
    // "sm_90a"
    const std::string number = spec_.target.arch.substr(3);
    const bool specific = !number.empty() && number.back() == 'a';
    int64_t arch = 0;
    if (!absl::SimpleAtoi(specific ? number.substr(0, number.size() - 1) : number, &arch)) arch = 0;
    return glue_.Row(
        {glue_.Text(spec_.module), glue_.Text(PrintTarget(spec_.target)), glue_.Int(arch),
         glue_.Int(specific), glue_.Int(most_shared_bytes), glue_.Int(workspace_bytes_),
         glue_.Int(images_.size()), glue_.Array(images_), glue_.Int(kernels.size()), glue_.Array(kernels),
         glue_.Int(entries.size()), table, glue_.Pointers(images_.size()), glue_.Pointers(kernels.size()),
         model_ == nullptr || model_->weight_bytes == 0 ? glue_.Null()
                                                        : glue_.HiddenData(model_->weights_symbol),
         glue_.Int(model_ == nullptr ? 0 : model_->weight_bytes)});
  }

 private:
  struct Kernel {
    int64_t index, image, static_bytes, dynamic_bytes;
    bool any_cluster;
  };

  absl::Status NoteStep(const CudaStep& step) {
    const auto it = kernels_.find(step.kernel);
    if (it == kernels_.end())
      return absl::InternalError(absl::StrCat("no kernel ", step.kernel, " in the compiled code"));
    it->second.dynamic_bytes = std::max(it->second.dynamic_bytes, step.shared_bytes);
    it->second.any_cluster |= step.cluster > kPortableCluster;
    return absl::OkStatus();
  }

  llvm::Constant* OperandRow(const CudaOperand& operand) {
    return glue_.Row({glue_.Int(operand.argument), glue_.Int(operand.offset)});
  }

  template <typename Number>
  llvm::Constant* Numbers(const std::vector<int64_t>& values, Number number) {
    std::vector<llvm::Constant*> constants;
    for (int64_t value : values) constants.push_back(number(value));
    return glue_.Array(constants);
  }

  llvm::Constant* MapRow(const CudaTensorMap& map) {
    const auto wide = [this](int64_t value) { return glue_.Int(value); };
    const auto narrow = [this](int64_t value) { return glue_.Int32(static_cast<uint32_t>(value)); };
    return glue_.Row({OperandRow(map.operand), glue_.Int(MapType(map.dtype)), glue_.Int(map.dims.size()),
                      Numbers(map.dims, wide), Numbers(map.strides, wide), Numbers(map.box, narrow),
                      Numbers(map.element_strides, narrow), glue_.Int(MapSwizzle(map.swizzle_bytes))});
  }

  llvm::Constant* StepRow(const CudaStep& step) {
    std::vector<llvm::Constant*> maps, pointers;
    for (const CudaTensorMap& map : step.maps) maps.push_back(MapRow(map));
    for (const CudaOperand& pointer : step.pointers) pointers.push_back(OperandRow(pointer));
    return glue_.Row({glue_.Int(kernels_.at(step.kernel).index), glue_.Int(step.grid[0]),
                      glue_.Int(step.grid[1]), glue_.Int(step.grid[2]), glue_.Int(step.cluster),
                      glue_.Int(step.threads), glue_.Int(step.shared_bytes), glue_.Int(step.waits),
                      glue_.Int(maps.size()), glue_.Array(maps), glue_.Int(pointers.size()),
                      glue_.Array(pointers)});
  }

  const LibrarySpec& spec_;
  const CudaModel* const model_;  // null: a library of kernels
  GlueModule& glue_;
  std::vector<llvm::Constant*> images_;
  std::map<std::string, Kernel> kernels_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::string> EmitCudaGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                         const std::vector<CudaUnit>& units, const std::string& json,
                                         const CudaModel* model) {
  GlueModule glue;
  CudaTables tables(spec, model, &glue);
  for (const CudaUnit& unit : units) MYCC_RETURN_IF_ERROR(tables.AddUnit(unit));
  std::vector<llvm::Constant*> rows;
  for (const Entry& entry : entries) {
    if (model != nullptr) {
      rows.push_back(tables.EntryRow(entry, model->steps));
      continue;
    }
    const CudaProgram& program = units[entry.kernel - spec.kernels.data()].program;
    rows.push_back(tables.EntryRow(entry, entry.is_packer ? program.pack : program.call));
  }
  llvm::Constant* table = glue.Array(rows);
  glue.Define("mycc_cuda_module", tables.ModuleRow(rows, table));
  if (!rows.empty())
    glue.ExportCalls(entries, table, rows[0]->getType(), "MyccCudaCall", /*with_stream=*/true);
  glue.ExportModule(spec, "MyccCudaPrepare", json);
  return glue.EmitObject();
}

}  // namespace mycc

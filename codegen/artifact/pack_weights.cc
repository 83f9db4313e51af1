#include "codegen/artifact/pack_weights.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/data_object.h"
#include "codegen/artifact/library.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lower.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"

namespace mycc {
namespace {

constexpr int64_t kPackedAlignment = 64;
// Kernels may read this many bytes behind a packed buffer.
constexpr int64_t kSlack = 64;

// A kernel's constants, by the numbers of the arguments; a launch with the same ones shares their packed
// form. Calls of library kernels are all kernel -1, so the key has the other arguments too, as -1.
using PackKey = std::pair<int64_t, std::vector<int64_t>>;

PackKey KeyOf(const KernelLaunch& launch) {
  PackKey key = {launch.kernel, {}};
  for (const TensorPlace& place : launch.places)
    key.second.push_back(place.kind == TensorPlace::kConstant ? place.at : -1);
  return key;
}

std::vector<int64_t> ConstantsOf(const KernelLaunch& launch) {
  std::vector<int64_t> constants;
  for (const TensorPlace& place : launch.places) {
    if (place.kind == TensorPlace::kConstant) constants.push_back(place.at);
  }
  return constants;
}

// A GPU's packing code as loops of a CPU: blocks and threads are independent iterations.
Stmt ForHost(const Stmt& body) {
  return RewriteStmts(body, [](const Stmt& stmt) -> Stmt {
    if (const Launch* launch = DynAs<Launch>(stmt)) return launch->body;
    if (stmt->kind == StmtKind::kBarrier) return MakeSeq({});  // one thread executes all iterations
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr || (loop->loop_kind != LoopKind::kGrid && loop->loop_kind != LoopKind::kThread))
      return nullptr;
    const LoopKind kind = loop->loop_kind == LoopKind::kGrid ? LoopKind::kParallel : LoopKind::kSerial;
    return loop->With({.loop_kind = kind});
  });
}

// Code that runs on every x86-64, for the packing functions alone.
absl::StatusOr<std::unique_ptr<Library>> BuildPackers(const std::vector<KernelSpec>& kernels,
                                                      const std::string& folder) {
  LibrarySpec spec;
  spec.module = "packers";
  spec.target.mcpu = "x86-64";
  spec.target.l1d_bytes = 32 << 10;
  spec.target.l2_bytes = 256 << 10;
  for (const KernelSpec& kernel : kernels) {
    spec.kernels.push_back(kernel);
    spec.kernels.back().lowered.kernel.body = MakeSeq({});
    spec.kernels.back().lowered.pack.body = ForHost(kernel.lowered.pack.body);
  }
  const std::string path = folder + "/packers.so";
  MYCC_RETURN_IF_ERROR(BuildSharedObject(spec, path).status());
  return Library::Open(path);
}

DLTensor View(const Buffer& tensor, const uint8_t* data) {
  DLTensor view = {};
  view.data = const_cast<uint8_t*>(data);
  view.device = {kDLCPU, 0};
  view.ndim = tensor->rank();
  view.dtype = DLPackType(tensor->dtype);
  view.shape = const_cast<int64_t*>(tensor->shape.data());
  return view;
}

// Writes the packed constants of one launch.
class LaunchPacker {
 public:
  LaunchPacker(const ModelProgram& program, const KernelSpec& kernel, const KernelLaunch& launch)
      : program_(program), kernel_(kernel), launch_(launch) {}

  absl::Status Run(Library* packers, DataObject* object, int64_t* written,
                   const std::vector<int64_t>& offsets) {
    std::vector<HostTensor> packed;
    std::vector<DLTensor> views;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < launch_.places.size(); ++i) {
      if (launch_.places[i].kind != TensorPlace::kConstant) continue;
      numbers.push_back(i);
      views.push_back(
          View(kernel_.workload.inputs[i].tensor, program_.constants[launch_.places[i].at]->bytes.data()));
      MYCC_ASSIGN_OR_RETURN(HostTensor tensor,
                            HostTensor::Create(DType::kU8, {kernel_.lowered.packed_bytes[i]}));
      packed.push_back(std::move(tensor));
    }
    std::vector<DLTensor*> args;
    for (DLTensor& view : views) args.push_back(&view);
    for (HostTensor& tensor : packed) args.push_back(tensor.view());
    MYCC_RETURN_IF_ERROR(packers->Pack(kernel_.workload.name, args));
    for (size_t k = 0; k < packed.size(); ++k) {
      MYCC_RETURN_IF_ERROR(object->AppendZeros(offsets[numbers[k]] - *written));
      MYCC_RETURN_IF_ERROR(object->Append(
          {reinterpret_cast<const char*>(packed[k].data()), static_cast<size_t>(packed[k].bytes())}));
      *written = offsets[numbers[k]] + packed[k].bytes();
    }
    return absl::OkStatus();
  }

 private:
  const ModelProgram& program_;
  const KernelSpec& kernel_;
  const KernelLaunch& launch_;
};

}  // namespace

WeightLayout LayOutWeights(const ModelProgram& program, const std::vector<KernelSpec>& kernels) {
  WeightLayout layout;
  std::map<PackKey, std::vector<int64_t>> known;
  for (const KernelLaunch& launch : program.launches) {
    const auto [at, is_new] = known.try_emplace(KeyOf(launch));
    if (is_new) {
      at->second.assign(launch.places.size(), -1);
      for (size_t i = 0; i < launch.places.size(); ++i) {
        if (launch.places[i].kind != TensorPlace::kConstant) continue;
        const int64_t bytes =
            launch.kernel < 0 ? launch.tensors[i]->bytes() : kernels[launch.kernel].lowered.packed_bytes[i];
        at->second[i] = layout.bytes;
        layout.bytes += (bytes + kSlack + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
      }
    }
    layout.offsets.push_back(at->second);
  }
  return layout;
}

absl::Status WriteWeights(ModelProgram* program, const std::vector<KernelSpec>& kernels,
                          const WeightLayout& layout, const std::string& symbol, const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> packers, BuildPackers(kernels, folder.path()));
  MYCC_ASSIGN_OR_RETURN(DataObject object, DataObject::Create(path, symbol, layout.bytes));
  std::vector<size_t> last_use(program->constants.size());
  for (size_t i = 0; i < program->launches.size(); ++i) {
    for (int64_t constant : ConstantsOf(program->launches[i])) last_use[constant] = i;
  }
  int64_t written = 0;
  for (size_t i = 0; i < program->launches.size(); ++i) {
    const KernelLaunch& launch = program->launches[i];
    const std::vector<int64_t> constants = ConstantsOf(launch);
    int64_t first = -1;
    for (int64_t offset : layout.offsets[i]) first = first < 0 ? offset : first;
    // A later launch of the same kernel with the same constants finds them packed.
    if (constants.empty() || (first < written && written > 0)) continue;
    if (launch.kernel >= 0) {
      LaunchPacker packer(*program, kernels[launch.kernel], launch);
      MYCC_RETURN_IF_ERROR(packer.Run(packers.get(), &object, &written, layout.offsets[i]));
    } else {
      for (size_t k = 0; k < launch.places.size(); ++k) {
        if (launch.places[k].kind != TensorPlace::kConstant) continue;
        const NDArray& value = *program->constants[launch.places[k].at];
        MYCC_RETURN_IF_ERROR(object.AppendZeros(layout.offsets[i][k] - written));
        MYCC_RETURN_IF_ERROR(
            object.Append({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()}));
        written = layout.offsets[i][k] + static_cast<int64_t>(value.bytes.size());
      }
    }
    for (int64_t constant : constants) {
      if (last_use[constant] == i) program->constants[constant] = nullptr;
    }
  }
  return object.Finish();
}

}  // namespace mycc

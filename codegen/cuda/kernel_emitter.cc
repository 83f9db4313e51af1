#include "codegen/cuda/kernel_emitter.h"

#include "absl/strings/ascii.h"

namespace mycc {

KernelEmitter::KernelEmitter(const CudaLaunch& launch, const Target& target, Prelude* prelude)
    : launch_(launch),
      target_(target),
      prelude_(*prelude),
      arithmetic_(prelude),
      replication_(launch.threads * launch.cluster_reduce),
      team_(launch.threads * launch.cluster_reduce),
      names_({"thread", "shared", "barriers", "alone", "round", "rank"}) {}

std::string KernelEmitter::Name(const std::string& base) {
  std::string name = base;
  for (char& c : name) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = absl::StrCat(name, "_", i);
  return unique;
}

absl::StatusOr<std::string> KernelEmitter::Kernel(const std::string& name) {
  for (const LaunchBuffer& launched : launch_.buffers) {
    const BufferNode& buffer = *launched.buffer;
    places_[&buffer] = {.name = Name(buffer.name), .layout = buffer.layout.Coalesced()};
  }
  const bool of_cluster = launch_.cluster_reduce > 1;
  if (of_cluster) Line("const int rank = blockIdx.x % ", launch_.cluster_reduce, ";");
  Line("const int thread = ", of_cluster ? absl::StrCat("rank * ", launch_.threads, " + ") : "",
       "threadIdx.x;");
  WaitForNeighbours();
  DeclareShared();
  BeginClusterReduce();
  DeclareBlocks();
  Statement(launch_.body);
  EndClusterReduce();
  if (!status_.ok()) return status_;
  if (launch_.shared_bytes > 0)
    text_ = absl::StrCat("  extern __shared__ __align__(1024) unsigned char shared[];\n", text_);
  std::vector<std::string> params;
  for (size_t i = 0; i < maps_.size(); ++i)
    params.push_back(absl::StrCat("const __grid_constant__ CUtensorMap map", i));
  for (const auto& [buffer, operand, read_only] : launch_.buffers) {
    params.push_back(absl::StrCat(read_only ? "const " : "", arithmetic_.MemoryType(buffer->dtype),
                                  "* __restrict__ ", places_.at(buffer.get()).name));
  }
  const std::string bounds =
      launch_.min_blocks_per_sm > 0
          ? absl::StrCat("__launch_bounds__(", launch_.threads, ", ", launch_.min_blocks_per_sm, ")")
          : Call("BLOCK_OF", launch_.threads);
  return absl::StrCat("extern \"C\" __global__ void ", bounds, " ", name, "(", absl::StrJoin(params, ", "),
                      ") {\n", text_, "}\n");
}

// Tensors that earlier launches write are read through pointers made after the wait, so that the compiler
// cannot move a load before it. The next launch may start on free SMs; it waits in the same way.
void KernelEmitter::WaitForNeighbours() {
  if (launch_.after_launch) {
    Line(Call("wait_for_launch"), ";");
    for (const LaunchBuffer& buffer : launch_.buffers) {
      if (buffer.read_only) continue;
      const std::string& name = places_.at(buffer.buffer.get()).name;
      Line(name, " = ", Call("from_here_on", name), ";");
    }
  }
  if (launch_.before_launch) Line(Call("allow_next_launch"), ";");
}

// The grid has one dimension. The blocks of a cluster are neighbours (the iterations of the outermost loop,
// or the blocks that execute an iteration together); after them the innermost grid loop runs fastest.
void KernelEmitter::DeclareBlocks() {
  const bool has_cluster = launch_.cluster > 1 && launch_.cluster_reduce == 1;
  int64_t stride = launch_.cluster;
  std::vector<std::string> lines;
  for (size_t i = launch_.blocks.size(); i-- > 0;) {
    const For& loop = *launch_.blocks[i];
    const bool of_cluster = has_cluster && i == 0, slowest = i == (has_cluster ? 1 : 0);
    std::string value = "blockIdx.x";
    if (stride > 1 && !of_cluster) value = absl::StrCat(value, " / ", stride);
    if (!slowest) value = absl::StrCat(value, " % ", loop.var->extent);
    vars_[loop.var.get()] = Name(loop.var->name);
    lines.push_back(absl::StrCat("const int ", vars_[loop.var.get()], " = ", value, ";"));
    stride *= loop.var->extent;
  }
  for (size_t i = lines.size(); i-- > 0;) Line(lines[i]);
}

}  // namespace mycc

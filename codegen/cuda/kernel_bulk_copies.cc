// Emits bulk copies by the copy engine (TMA): one thread issues the copy of each box.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/product_functions.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/passes/bulk_box.h"

namespace mycc {
namespace {

// cp.async.bulk.tensor of one rank [PTX ISA]: into this block's shared memory, into the same place of all
// blocks of its cluster (multicast), or out of shared memory.
DeviceFunction BulkFunction(int rank, bool to_shared, bool multicast) {
  const std::string name =
      absl::StrCat(to_shared ? "bulk_load_" : "bulk_store_", rank, multicast ? "d_to_all" : "d");
  const std::string box = Registers(to_shared ? 3 : 2, rank), coordinates = Numbered(rank, "int c", "");
  const std::string values = Numbered(rank, "\"r\"(c", ")");
  if (to_shared) {
    return {name, absl::StrCat("\n__device__ __forceinline__ void ", name,
                               "(unsigned to, const CUtensorMap& map, unsigned barrier, ", coordinates,
                               multicast ? ", unsigned short blocks" : "",
                               ") {\n  asm volatile(\"cp.async.bulk.tensor.", rank,
                               "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
                               multicast ? ".multicast::cluster" : "", " [%0], [%1, ", box, "], [%2]",
                               multicast ? absl::StrCat(", %", rank + 3) : "",
                               ";\"\n               ::\"r\"(to), \"l\"(&map), \"r\"(barrier), ", values,
                               multicast ? ", \"h\"(blocks)" : "", " : \"memory\");\n}\n")};
  }
  return {name,
          absl::StrCat("\n__device__ __forceinline__ void ", name, "(const CUtensorMap& map, unsigned from, ",
                       coordinates, ") {\n  asm volatile(\"cp.async.bulk.tensor.", rank,
                       "d.global.shared::cta.tile.bulk_group [%0, ", box,
                       "], [%1];\"\n               ::\"l\"(&map), \"r\"(from), ", values,
                       " : \"memory\");\n}\n")};
}

}  // namespace

// Returns the name of the kernel's parameter for the map.
std::string KernelEmitter::TensorMapOf(const BulkBox& box, int64_t panel) {
  CudaTensorMap map;
  for (const LaunchBuffer& buffer : launch_.buffers) {
    if (buffer.buffer == box.global) map.operand = buffer.operand;
  }
  const int64_t element = DTypeBytes(box.global->dtype);
  map.dtype = box.global->dtype;
  map.swizzle_bytes = static_cast<int>(box.shared->swizzle_bytes());
  for (auto dim = box.dims.rbegin(); dim != box.dims.rend(); ++dim) {
    const bool is_last = dim == box.dims.rbegin();
    map.dims.push_back(dim->size);
    if (!is_last) map.strides.push_back(dim->stride * element);
    map.box.push_back(((is_last ? panel : dim->extent) - 1) * dim->step + 1);
    map.element_strides.push_back(dim->step);
  }
  maps_.push_back(std::move(map));
  return absl::StrCat("map", maps_.size() - 1);
}

void KernelEmitter::EmitBulkCopy(const Copy& copy) {
  absl::StatusOr<BulkBox> box = BulkBoxOf(copy.body);
  if (!box.ok()) return Fail(std::string(box.status().message()));
  const int64_t blocks = copy.cluster ? launch_.cluster : 1;
  if (blocks > 1) TakePart(copy.cluster, blocks, &*box);
  const BufferNode& shared = *box->shared;
  const int64_t element = DTypeBytes(shared.dtype), swizzle = shared.swizzle_bytes();
  const int64_t columns = box->dims.back().extent;
  // A swizzled tile wider than its swizzle is stored as panels, one box for each.
  const int64_t panel = swizzle == 0 ? columns : std::min(columns, swizzle / element);
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < box->dims.size(); ++d) rows *= box->dims[d].extent;
  const std::string map = TensorMapOf(*box, panel);
  const int rank = static_cast<int>(box->dims.size());
  prelude_.Use("CUtensorMap");
  const std::string function = prelude_.Add(BulkFunction(rank, box->to_shared, blocks > 1));
  std::vector<Expr> at = box->shared_prefix;
  while (at.size() < shared.shape.size()) at.push_back(IntConst(0));
  std::vector<int64_t> in_tile(shared.shape.size());
  if (!box->to_shared) {
    Sync();
    Open("if (", thread_, " == 0)");
  }
  for (int64_t column = 0; column < columns; column += panel) {
    std::vector<std::string> coordinates;
    for (int d = rank; d-- > 0;) {
      const Expr begin = d + 1 == rank ? box->dims[d].begin + column : box->dims[d].begin;
      coordinates.push_back(Index(Simplify(begin)).text);
    }
    // A part of the tile is the same part of each panel.
    in_tile.back() = column;
    std::string tile =
        absl::StrCat(SharedAddress(box->shared, at),
                     column == 0 ? "" : absl::StrCat(" + ", shared.layout.Flat(in_tile) * element));
    const int64_t bytes = rows * std::min(panel, columns - column) * element;
    if (blocks > 1) absl::StrAppend(&tile, " + ", Index(copy.cluster).At(kProduct), " * ", bytes);
    const std::string where = absl::StrJoin(coordinates, ", ");
    if (box->to_shared) {
      const std::string to_all = blocks > 1 ? absl::StrCat(", ", (1 << blocks) - 1) : "";
      Line(function, "(", tile, ", ", map, ", ", BarrierAddress(copy.barrier), ", ", where, to_all, ");");
    } else {
      Line(function, "(", map, ", ", tile, ", ", where, ");");
    }
  }
  if (!box->to_shared) Close();
}

// Reduces the box to the part of block `rank` among `blocks`.
void KernelEmitter::TakePart(const Expr& rank, int64_t blocks, BulkBox* box) {
  for (size_t d = 0; d + 1 < box->dims.size(); ++d) {
    BulkBox::Dim& dim = box->dims[d];
    if (dim.extent == 1) continue;
    dim.extent /= blocks;
    dim.begin = dim.begin + rank * (dim.extent * dim.step);
    return;
  }
  Fail("no dimension of ", box->shared->name, " can be divided among the blocks of a cluster");
}

}  // namespace mycc

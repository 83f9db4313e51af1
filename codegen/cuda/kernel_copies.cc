// Asynchronous copies: boxes by the copy engine (TMA), issued by one thread, and 16 bytes at a time by all
// threads (cp.async).
#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/copy_stmt.h"

namespace mycc {
namespace {

// cp.async.bulk.tensor of one rank [PTX ISA]: into this block's shared memory, into that of all blocks of its
// cluster (multicast, each at the same place), or out of it.
std::string BulkFunction(const std::string& name, int rank, bool to_shared, bool multicast) {
  std::vector<std::string> parameters, places, operands;
  for (int d = 0; d < rank; ++d) {
    parameters.push_back(absl::StrCat("int c", d));
    places.push_back(absl::StrCat("%", d + (to_shared ? 3 : 2)));
    operands.push_back(absl::StrCat("\"r\"(c", d, ")"));
  }
  const std::string box = absl::StrJoin(places, ", "), coordinates = absl::StrJoin(parameters, ", ");
  const std::string values = absl::StrJoin(operands, ", ");
  if (to_shared) {
    return absl::StrCat(
        "\n__device__ __forceinline__ void ", name,
        "(unsigned to, const CUtensorMap& map, unsigned barrier, ", coordinates,
        multicast ? ", unsigned short blocks" : "", ") {\n  asm volatile(\"cp.async.bulk.tensor.", rank,
        "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", multicast ? ".multicast::cluster" : "",
        " [%0], [%1, {", box, "}], [%2]", multicast ? absl::StrCat(", %", rank + 3) : "",
        ";\"\n               ::\"r\"(to), \"l\"(&map), \"r\"(barrier), ", values,
        multicast ? ", \"h\"(blocks)" : "", " : \"memory\");\n}\n");
  }
  return absl::StrCat(
      "\n__device__ __forceinline__ void ", name, "(const CUtensorMap& map, unsigned from, ", coordinates,
      ") {\n  asm volatile(\"cp.async.bulk.tensor.", rank, "d.global.shared::cta.tile.bulk_group [%0, {", box,
      "}], [%1];\"\n               ::\"l\"(&map), \"r\"(from), ", values, " : \"memory\");\n}\n");
}

}  // namespace

void KernelEmitter::EmitCopy(const Copy& copy) {
  if (copy.engine == CopyEngine::kBulk) return EmitBulkCopy(copy);
  EmitThreadCopy(copy);
}

// Returns the name of the kernel's parameter.
std::string KernelEmitter::TensorMapOf(const BulkBox& box, int64_t panel) {
  CudaTensorMap map;
  for (const LaunchBuffer& buffer : launch_.buffers) {
    if (buffer.buffer == box.global) map.operand = buffer.operand;
  }
  const BufferNode& global = *box.global;
  map.dtype = global.dtype;
  map.swizzle_bytes = box.shared->layout.swizzle_bytes;
  for (int d = global.rank(); d-- > 0;) {
    map.dims.push_back(global.shape[d]);
    if (d + 1 < global.rank()) map.strides.push_back(global.stride(d) * DTypeBytes(global.dtype));
    const int64_t extent = d + 1 == global.rank() ? panel : box.extent[d];
    map.box.push_back((extent - 1) * box.step[d] + 1);
    map.element_strides.push_back(box.step[d]);
  }
  maps_.push_back(std::move(map));
  return absl::StrCat("map", maps_.size() - 1);
}

void KernelEmitter::EmitBulkCopy(const Copy& copy) {
  absl::StatusOr<BulkBox> box = BulkBoxOf(copy.body);
  if (!box.ok()) return Fail(std::string(box.status().message()));
  const int64_t blocks = copy.cluster ? launch_.cluster : 1;
  const Expr part = blocks > 1 ? TakePart(copy.cluster, blocks, &*box) : nullptr;
  const BufferNode& shared = *box->shared;
  const int64_t element = DTypeBytes(shared.dtype), swizzle = shared.layout.swizzle_bytes;
  const int64_t columns = box->extent.back();
  // A swizzled tile wider than its swizzle lies in panels, one box each.
  const int64_t panel = swizzle == 0 ? columns : std::min(columns, swizzle / element);
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < box->extent.size(); ++d) rows *= box->extent[d];
  const std::string map = TensorMapOf(*box, panel);
  const int rank = box->global->rank();
  const std::string function =
      absl::StrCat(box->to_shared ? "bulk_load_" : "bulk_store_", rank, blocks > 1 ? "d_to_all" : "d");
  prelude_.Use("CUtensorMap");
  prelude_.Add(function, BulkFunction(function, rank, box->to_shared, blocks > 1));
  std::vector<Expr> at = box->shared_prefix;
  while (at.size() < shared.shape.size()) at.push_back(IntConst(0));
  if (!box->to_shared) {
    Sync();
    Open("if (", Thread(), " == 0)");
  }
  for (int64_t column = 0; column < columns; column += panel) {
    std::vector<std::string> coordinates;
    for (int d = rank; d-- > 0;) {
      const Expr begin = d + 1 == rank ? box->begin[d] + column : box->begin[d];
      coordinates.push_back(Index(Simplify(begin)).text);
    }
    // A part of the tile lies in the part of each panel.
    std::string tile = absl::StrCat(SharedAddress(box->shared, at),
                                    column == 0 ? "" : absl::StrCat(" + ", column * rows * blocks * element));
    if (part) {
      const int64_t part_bytes = rows * std::min(panel, columns - column) * element;
      absl::StrAppend(&tile, " + ", Index(part).At(kProduct), " * ", part_bytes);
    }
    const std::string where = absl::StrJoin(coordinates, ", ");
    if (box->to_shared) {
      const std::string to_all = blocks > 1 ? absl::StrCat(", ", (1 << blocks) - 1) : "";
      Line(function, "(", tile, ", ", map, ", ", BarrierAddress(copy.barrier), ", ", where, to_all, ");");
      // The other blocks send their parts.
      roles_->expected_bytes += rows * blocks * std::min(panel, columns - column) * element;
    } else {
      Line(function, "(", map, ", ", tile, ", ", where, ");");
    }
  }
  if (!box->to_shared) Close();
}

// The box becomes that of block `rank` of `blocks`; returns the number of its part.
Expr KernelEmitter::TakePart(const Expr& rank, int64_t blocks, BulkBox* box) {
  for (size_t d = 0; d + 1 < box->extent.size(); ++d) {
    if (box->extent[d] == 1) continue;
    box->extent[d] /= blocks;
    box->begin[d] = box->begin[d] + rank * (box->extent[d] * box->step[d]);
    return rank;
  }
  Fail(absl::StrCat("no dimension of ", box->shared->name, " to share out in a cluster"));
  return rank;
}

// The tile's elements, flattened in the order of the loops, go round the threads in chunks that are
// contiguous and aligned on both sides.
void KernelEmitter::EmitThreadCopy(const Copy& copy) {
  std::vector<const For*> loops;
  Stmt inner = copy.body;
  while (const For* loop = DynAs<For>(inner)) {
    loops.push_back(loop);
    inner = loop->body;
  }
  const Store* store = DynAs<Store>(inner);
  if (store == nullptr) return Fail("a copy by threads under a condition");
  Expr condition, load = store->value;
  if (load->op == Op::kSelect) {
    condition = load->args[0];
    load = load->args[1];
  }
  int64_t total = 1;
  for (const For* loop : loops) total *= loop->var->extent;
  const int64_t element = DTypeBytes(store->buffer->dtype);
  const int64_t chunk = loops.empty() ? 1 : ChunkOf(*loops.back(), *store, load, condition);
  const int64_t chunks = total / chunk, steps = (chunks + team_ - 1) / team_;
  const auto each_chunk = [&](int64_t count, const std::string& first, const auto& emit) {
    const std::string i = Name("i"), at = Name("chunk");
    Line("#pragma unroll");
    Open("for (int ", i, " = 0; ", i, " < ", count, "; ++", i, ")");
    const std::string step = first.empty() ? i : absl::StrCat("(", first, " + ", i, ")");
    Line("const int ", at, " = ", Thread(), " + ", step, " * ", team_, ";");
    if (steps * team_ > chunks) Open("if (", at, " < ", chunks, ")");
    PlaceChunk(loops, chunk, at);
    emit(i, condition ? Value(condition).text : "true");
    for (const For* loop : loops) vars_.erase(loop->var.get());
    if (steps * team_ > chunks) Close();
    Close();
  };
  const std::string type = arithmetic_.MemoryType(store->buffer->dtype);
  if (chunk * element >= 4) {
    // A pointer outside of the tensor is never followed, but must not be made up either.
    return each_chunk(steps, "", [&](const std::string&, const std::string& inside) {
      Line(prelude_.Use("cp_async"), "<", chunk * element, ">(", prelude_.Use("shared_address"), "(&",
           Element(store->buffer, store->indices), "), ", condition ? absl::StrCat("(", inside, ") ? ") : "",
           "&", Element(load->buffer, load->args),
           condition ? absl::StrCat(" : ", PlaceOf(load->buffer).name) : "", ", ", inside, ");");
    });
  }
  // Too little for cp.async: many loads are on their way before the first of them is stored.
  constexpr int64_t kLoads = 16;
  const int64_t groups = (steps + kLoads - 1) / kLoads, group = (steps + groups - 1) / groups;
  const std::string first = groups > 1 ? Name("first") : "", moved = Name("moved");
  if (groups > 1) {
    Open("for (int ", first, " = 0; ", first, " < ", groups * group, "; ", first, " += ", group, ")");
  } else {
    OpenBlock();
  }
  Line(type, " ", moved, "[", group, "];");
  each_chunk(group, first, [&](const std::string& i, const std::string& inside) {
    Line(moved, "[", i, "] = ", condition ? absl::StrCat("(", inside, ") ? ") : "",
         Element(load->buffer, load->args), condition ? absl::StrCat(" : ", type, "()") : "", ";");
  });
  each_chunk(group, first, [&](const std::string& i, const std::string&) {
    Line(Element(store->buffer, store->indices), " = ", moved, "[", i, "];");
  });
  Close();
}

// Declares the loops' variables for the chunk of number `at`.
void KernelEmitter::PlaceChunk(const std::vector<const For*>& loops, int64_t chunk, const std::string& at) {
  int64_t stride = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const bool last = i + 1 == loops.size();
    const int64_t steps = last ? loops[i]->var->extent / chunk : loops[i]->var->extent;
    std::string value = stride == 1 ? at : absl::StrCat(at, " / ", stride);
    if (i > 0) value = absl::StrCat(value, " % ", steps);
    if (last && chunk > 1) value = absl::StrCat(i > 0 ? value : absl::StrCat("(", value, ")"), " * ", chunk);
    const std::string name = Name(loops[i]->var->name);
    Line("const int ", name, " = ", value, ";");
    vars_[loops[i]->var.get()] = name;
    stride *= steps;
  }
}

// Elements of one access: up to 16 bytes that are contiguous along the last loop and aligned on both sides,
// and inside or outside of the tensor together.
int64_t KernelEmitter::ChunkOf(const For& last, const Store& store, const Expr& load, const Expr& condition) {
  const int64_t element = DTypeBytes(store.buffer->dtype);
  int64_t common = std::gcd(16 / element, last.var->extent);
  const auto contiguous = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const Linear flat = Flat(PlaceOf(buffer), indices);
    if (flat.CoefficientOf(last.var.get()) != 1) common = 1;
    common = std::gcd(common, flat.constant);
    for (const auto& [atom, coefficient] : flat.terms) {
      if (atom->op == Op::kVar && atom->var == last.var) continue;
      common = UsesVar(atom, last.var.get()) ? 1 : std::gcd(common, coefficient);
    }
  };
  contiguous(store.buffer, store.indices);
  contiguous(load->buffer, load->args);
  std::vector<Expr> parts;
  if (condition) SplitConjunction(condition, &parts);
  for (const Expr& part : parts) {
    if (!UsesVar(part, last.var.get())) continue;
    // last + ... < bound, all of it in steps of the chunk.
    const Expr difference =
        part->op == Op::kLt || part->op == Op::kLe ? part->args[1] - part->args[0] : nullptr;
    if (!difference) return 1;
    const Linear linear = ToLinear(difference);
    common = std::gcd(common, linear.constant);
    for (const auto& [atom, coefficient] : linear.terms) {
      if (atom->op == Op::kVar && atom->var == last.var) continue;
      common = UsesVar(atom, last.var.get()) ? 1 : std::gcd(common, coefficient);
    }
  }
  return common;
}

}  // namespace mycc

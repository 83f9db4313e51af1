// Emits copies: by the copy engine (TMA), where one thread issues the copy of each box; or divided among all
// threads, 4 to 16 bytes at a time by cp.async, or through registers.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/cuda/product_functions.h"

namespace mycc {
namespace {

// The loads that one copy issues before it stores the first. Each may have an address and a condition of its
// own.
constexpr int64_t kMostLoads = 32;

// cp.async.bulk.tensor of one rank [PTX ISA]: into this block's shared memory, into the same place of all
// blocks of its cluster (multicast), or out of shared memory.
DeviceFunction BulkFunction(int rank, bool to_shared, bool multicast) {
  const std::string name =
      absl::StrCat(to_shared ? "bulk_load_" : "bulk_store_", rank, multicast ? "d_to_all" : "d");
  const std::string box = Registers(to_shared ? 3 : 2, rank), coordinates = Numbered(rank, "int c", "");
  const std::string values = Numbered(rank, "\"r\"(c", ")");
  const std::string instruction = absl::StrCat("cp.async.bulk.tensor.", rank);
  if (!to_shared) {
    return MemoryFunction(
        name, absl::StrCat("const CUtensorMap& map, unsigned from, ", coordinates),
        absl::StrCat(instruction, "d.global.shared::cta.tile.bulk_group [%0, ", box, "], [%1]"),
        absl::StrCat("::\"l\"(&map), \"r\"(from), ", values));
  }
  return MemoryFunction(
      name,
      absl::StrCat("unsigned to, const CUtensorMap& map, unsigned barrier, ", coordinates,
                   multicast ? ", unsigned short blocks" : ""),
      absl::StrCat(instruction, "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
                   multicast ? ".multicast::cluster" : "", " [%0], [%1, ", box, "], [%2]",
                   multicast ? absl::StrCat(", %", rank + 3) : ""),
      absl::StrCat("::\"r\"(to), \"l\"(&map), \"r\"(barrier), ", values, multicast ? ", \"h\"(blocks)" : ""));
}

}  // namespace

// A copy through registers may begin and end apart.
void KernelEmitter::EmitCopy(const Copy& copy) {
  if (copy.engine == CopyEngine::kBulk) return EmitBulkCopy(copy);
  const ThreadCopyNest parts = *ThreadCopyNestOf(copy);
  const Buffer &from = parts.load->buffer, &to = parts.store->buffer;
  const int64_t steps = StepsOf(parts.chunks());
  if (copy.engine == CopyEngine::kThreads) {
    const int64_t bytes = parts.chunk * DTypeBytes(to->dtype);
    return EachChunk(parts, steps, "", [&](const std::string&, const ChunkPlace& place) {
      Line(prelude_.Use("cp_async"), "<", bytes, ">(", prelude_.Use("shared_address"), "(&",
           Element(to, place.Indices(parts.store->indices)), "), ", PlaceOf(from).name, ", ",
           Offset(from, place.Indices(parts.load->args)).text, ", ", Inside(parts, place), ");");
    });
  }
  if (to->scope == Scope::kFragment) return LoadRegisters(parts, PlaceOf(to).name, steps, "");
  if (from->scope == Scope::kFragment) return StoreRegisters(parts, PlaceOf(from).name, steps, "");
  const int64_t most = std::min(kMostLoads, kRegistersOfCopies / parts.registers());
  const int64_t groups = CeilDiv(steps, most), group = CeilDiv(steps, groups);
  const std::string first = groups > 1 ? Name("first") : "", moved = Name("moved");
  if (groups > 1) {
    Open("for (int ", first, " = 0; ", first, " < ", groups * group, "; ", first, " += ", group, ")");
  } else {
    OpenBlock();
  }
  Line(ChunkType(from->dtype, parts.chunk), " ", moved, "[", group, "];");
  LoadRegisters(parts, moved, group, first);
  StoreRegisters(parts, moved, group, first);
  Close();
}

// A loop's value in the chunk with the number thread + step * team: number / stride % extent. The outermost
// loop has no remainder. Steps are unrolled, so a part that depends only on the step is a constant. Where the
// thread and the step cannot be divided separately, the value is computed from the number in each step.
KernelEmitter::PartOfChunk KernelEmitter::PartOf(const std::string& step, const std::string& number,
                                                 int64_t stride, int64_t extent, bool is_outermost) const {
  const int64_t modulus = is_outermost ? 0 : extent;  // 0: none
  if (modulus == 1) return {.of_thread = "0"};
  if (stride % team_ == 0) return {.of_step = Digit(step, stride / team_, modulus)};
  if (team_ % stride == 0) {
    const int64_t values = team_ / stride;  // of the loop, that the team has in a step
    const bool has_all = is_outermost ? extent <= values : values % extent == 0;
    if (has_all) return {.of_thread = Digit(thread_, stride, modulus)};
    if (modulus % values == 0) return {Digit(thread_, stride, 0), Digit(step, 1, modulus / values), values};
  }
  return {.of_step = Digit(number, stride, modulus)};
}

// Defines the values of the copy's loops in a chunk. A value with two parts becomes a sum of two variables.
ChunkPlace KernelEmitter::DefinePlace(const ThreadCopyNest& copy, const std::string& step,
                                      const std::string& number) {
  ChunkPlace place;
  const auto define = [&](const Var& var, const std::string& value, bool of_step) {
    vars_[var.get()] = Define("int", var->name, value);
    (of_step ? place.of_step : place.of_thread).push_back(var);
  };
  int64_t stride = 1;
  for (size_t l = copy.loops.size(); l-- > 0;) {
    const bool last = l + 1 == copy.loops.size();
    const Var& var = copy.loops[l]->var;
    const int64_t lanes = last ? copy.chunk : 1, extent = var->extent / lanes;
    const PartOfChunk part = PartOf(step, number, stride, extent, /*is_outermost=*/l == 0);
    if (part.of_thread.empty() || part.of_step.empty()) {
      const bool of_step = part.of_thread.empty();
      const std::string& value = of_step ? part.of_step : part.of_thread;
      const std::string in_lanes = l > 0 ? value : absl::StrCat("(", value, ")");
      define(var, lanes == 1 ? value : absl::StrCat(in_lanes, " * ", lanes), of_step);
    } else {
      const Var of_thread = MakeVar(var->name, part.values),
                of_step = MakeVar(var->name + ".step", CeilDiv(extent, part.values));
      define(of_thread, part.of_thread, false);
      define(of_step, part.of_step, true);
      place.sums[var.get()] = (VarRef(of_thread) + VarRef(of_step) * part.values) * lanes;
    }
    stride *= extent;
  }
  return place;
}

// `emit` gets the name of the step's number in its group, and the chunk's place.
void KernelEmitter::EachChunk(const ThreadCopyNest& copy, int64_t count, const std::string& first,
                              const std::function<void(const std::string&, const ChunkPlace&)>& emit) {
  const std::string i = Name("i"), at = Name("chunk");
  OpenUnrolled(i, count);
  const std::string step = first.empty() ? i : absl::StrCat("(", first, " + ", i, ")");
  // The last group of steps may go beyond the last chunk.
  const bool ragged = RoundUp(StepsOf(copy.chunks()), count) * team_ > copy.chunks();
  const std::string number = absl::StrCat("(", thread_, " + ", step, " * ", team_, ")");
  if (ragged) {
    Line("const int ", at, " = ", number, ";");
    Open("if (", at, " < ", copy.chunks(), ")");
  }
  const ChunkPlace place = DefinePlace(copy, step, ragged ? at : number);
  emit(i, place);
  for (const std::vector<Var>& vars : {place.of_thread, place.of_step}) {
    for (const Var& var : vars) vars_.erase(var.get());
  }
  if (ragged) Close();
  Close();
}

std::string KernelEmitter::ChunkType(DType dtype, int64_t chunk) {
  return absl::StrCat(prelude_.Use("Vec"), "<", arithmetic_.MemoryType(dtype), ", ", chunk, ">");
}

void KernelEmitter::LoadRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                                  const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const ChunkPlace& place) {
    Line(moved, "[", i, "] = ", prelude_.Use("load_ahead"), "<", copy.chunk, ">(",
         PlaceOf(copy.load->buffer).name, ", ",
         Offset(copy.load->buffer, place.Indices(copy.load->args)).text, ", ", Inside(copy, place), ");");
  });
}

void KernelEmitter::StoreRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                                   const std::string& first) {
  EachChunk(copy, count, first, [&](const std::string& i, const ChunkPlace& place) {
    const Var& last = copy.loops.back()->var;
    const Var element = MakeVar("e", copy.chunk);
    const std::string e = Name(element->name);
    OpenUnrolled(e, copy.chunk);
    vars_[element.get()] = e;
    std::vector<Expr> indices = copy.store->indices;
    for (Expr& index : indices) index = Substitute(index, {{last.get(), VarRef(last) + VarRef(element)}});
    Line(Element(copy.store->buffer, place.Indices(indices)), " = ", moved, "[", i, "].at[", e, "];");
    vars_.erase(element.get());
    Close();
  });
}

// Returns the name of the kernel's parameter for the map.
std::string KernelEmitter::TensorMapOf(const BulkBox& box, int64_t panel) {
  const auto global = std::ranges::find(launch_.buffers, box.global, &LaunchBuffer::buffer);
  if (global == launch_.buffers.end()) {
    Fail("the copy engine does not reach ", box.global->name);
    return "";
  }
  CudaTensorMap map;
  map.operand = global->operand;
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
  const int64_t column_bytes = BytesOfBox(*box) / columns;
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
    const int64_t bytes = column_bytes * std::min(panel, columns - column);
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

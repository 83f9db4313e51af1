// Emits vector loops: each lane is scalar code, unrolled, between loads and stores of whole vectors.
//
//   vectors                              const Vec<float, 4> x_v = load_vec<4>(&x[i * 4]);
//     load x.v = x[i*4], ..        ->    Vec<float, 4> y_v;
//     vector v in 4: ..                  for v in 4: y_v.at[v] = x_v.at[v] * 2
//     store y[i*4] = y.v, ..             store_vec(&y[i * 4], y_v);
#include "codegen/cuda/kernel_emitter.h"

namespace mycc {

// Two lanes that a store packs into one register are an array.
void KernelEmitter::DeclareLanes(const VectorMove& move) {
  const bool packs = PlaceOf(move.tensor).form == RegisterForm::kPairs;
  const std::string name = Name(move.tensor->name + (packs ? "_pair" : "_v"));
  const Layout layout = Layout::RowMajor(move.lanes->shape).Coalesced();
  const int64_t lanes = move.lanes->shape[0], vectors = lanes / move.count;
  Place& place = places_[move.lanes.get()];
  if (packs) {
    place = {.name = name, .layout = layout, .in_registers = true, .form = RegisterForm::kWide};
    Line("float ", name, "[", lanes, "];");
  } else {
    place = {.name = name, .layout = layout, .vector = move.count};
    Line(ChunkType(move.tensor->dtype, move.count), " ", name,
         vectors > 1 ? absl::StrCat("[", vectors, "];") : ";");
  }
}

// Calls `line` with each vector's name and the address of its first element.
void KernelEmitter::ForVectors(const VectorMove& move,
                               const std::function<void(const std::string&, const std::string&)>& line) {
  const Place& lanes = PlaceOf(move.lanes);
  Linear first = Flat(PlaceOf(move.tensor), move.indices);
  const int64_t vectors = move.lanes->shape[0] / move.count;
  for (int64_t i = 0; i < vectors; ++i) {
    const std::string at = vectors > 1 ? absl::StrCat(lanes.name, "[", i, "]") : lanes.name;
    line(at, absl::StrCat("&", At(PlaceOf(move.tensor), first)));
    first.constant += move.count;
  }
}

void KernelEmitter::EmitVectors(const Vectors& vectors) {
  const For& loop = As<For>(vectors.loop);
  const int64_t replication = replication_;
  if (vectors.by_one && OpenOneOfAlike()) {
    replication_ = 1;
  } else {
    OpenBlock();
  }
  const std::string lane = Name(loop.var->name);
  for (const VectorMove& load : vectors.loads) {
    std::string guard;
    for (const Expr& condition : load.conditions)
      absl::StrAppend(&guard, guard.empty() ? "if (" : " && ", Value(condition).At(kBothOf + 1));
    if (!guard.empty()) absl::StrAppend(&guard, ") ");
    DeclareLanes(load);
    ForVectors(load, [&](const std::string& at, const std::string& address) {
      Line(guard, at, " = ", prelude_.Use(load.once ? "load_once" : "load_vec"), "<", load.count, ">(",
           address, ");");
    });
  }
  for (const VectorMove& store : vectors.stores) DeclareLanes(store);
  OpenUnrolled(lane, Index(loop.extent).text);
  With(loop.var.get(), lane, [&] { Statement(loop.body); });
  Close();
  for (const VectorMove& store : vectors.stores) {
    if (PlaceOf(store.tensor).form == RegisterForm::kPairs) {
      StorePair(store);
      continue;
    }
    ForVectors(store, [&](const std::string& at, const std::string& address) {
      Line(Call("store_vec", address, store.sums ? Call("in_other_registers", at) : at), ";");
    });
  }
  for (const auto* moves : {&vectors.loads, &vectors.stores}) {
    for (const VectorMove& move : *moves) places_.erase(move.lanes.get());
  }
  replication_ = replication;
  Close();
}

}  // namespace mycc

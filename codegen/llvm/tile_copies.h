// Recognizes statements around a tile's products that tile registers execute directly: setting the sums to
// zero, loading them from a tensor, storing them to one.
#pragma once

#include <optional>

#include "codegen/ir/stmt.h"

namespace mycc {

// Nothing but sums = 0, all of them.
bool SetsSumsToZero(const Stmt& stmt, const Mma& mma);

// Nothing but sums = tensor[..], or tensor[..] = sums, element by element and all of them: where the tensor's
// are, in rows equally far apart. nullopt for anything else.
std::optional<TileView> LoadsSums(const Stmt& stmt, const Mma& mma);
std::optional<TileView> StoresSums(const Stmt& stmt, const Mma& mma);

}  // namespace mycc

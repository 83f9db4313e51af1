// Recognizes statements around a tile's products that tile registers execute directly: setting the sums to
// zero, loading them from a tensor, storing them to one. Pure functions.
#pragma once

#include <optional>

#include "codegen/ir/stmt.h"

namespace mycc {

// Whether the statement only sets all sums to zero.
bool SetsSumsToZero(const Stmt& stmt, const Mma& mma);

// The tensor's elements of a statement that only copies all sums from a tensor (LoadsSums) or to it
// (StoresSums), in rows of equal distance; nullopt for other statements.
std::optional<TileView> LoadsSums(const Stmt& stmt, const Mma& mma);
std::optional<TileView> StoresSums(const Stmt& stmt, const Mma& mma);

}  // namespace mycc

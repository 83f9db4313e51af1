// The parts of one block's cost, for analytic.cc. Pure functions.
#pragma once

#include "tuner/cost/analytic.h"

namespace mycc {

// What the core does: instructions and their dependences, all operands in L1.
void AddCoreCost(const NestBlock& nest, const Machine& machine, BlockCost* cost);

// What memory does. `resident_bytes`: what the whole function touches; a cache that holds all of it still
// does when the kernel runs again.
void AddMemoryCost(const NestBlock& nest, const Machine& machine, double resident_bytes, BlockCost* cost);

// Bytes of a cache of `capacity` bytes that an access takes while the loops from `level` inwards run: its
// lines, and more where they meet in few sets.
double CacheBytes(const NestBlock& nest, const NestAccess& access, size_t level, double capacity);

// Bytes that one access brings into a cache of `capacity` bytes, over the whole run of the block.
double TrafficBytes(const NestBlock& nest, const NestAccess& access, double capacity);

}  // namespace mycc

// The parts of a block's cost on a CPU, core and memory, which analytic.cc adds up. Pure functions.
#pragma once

#include "tuner/cost/analytic.h"

namespace mycc {

// Adds the cost of the core: instructions and their dependences, all operands in L1.
void AddCoreCost(const NestBlock& nest, const Machine& machine, BlockCost* cost);

// Adds the cost of memory. The whole function touches `resident_bytes`; a cache that holds all of them still
// does when the kernel runs again.
void AddMemoryCost(const NestBlock& nest, const Machine& machine, double resident_bytes, BlockCost* cost);

// Bytes of a cache of `capacity` bytes that an access takes while the loops from `level` inwards run: its
// lines, and more where they meet in few sets.
double CacheBytes(const NestBlock& nest, const NestAccess& access, size_t level, double capacity);

// Bytes that one access brings into a cache of `capacity` bytes, over the whole run of the block.
double TrafficBytes(const NestBlock& nest, const NestAccess& access, double capacity);

}  // namespace mycc

// How the threads of a warp touch memory in one access: sectors, bank conflicts. It computes the addresses of
// the first warp exactly. Pure functions.
#pragma once

#include <vector>

#include "tuner/cost/nest.h"

namespace mycc {

inline constexpr double kWarpThreads = 32, kSectorBytes = 32;

// One access of a block, with the loops around it divided by kind.
struct WarpAccess {
  Buffer buffer;
  bool write = false;
  double executions = 1;    // of one thread, in a thread block: vectors where a lane loop is one access
  double instructions = 1;  // for one execution: 1 for an access of up to 16 bytes
  double bytes = 0;         // that one thread's execution is about
  double sectors = 0;       // of 32 bytes, that one warp's execution touches in global memory
  double wavefronts = 0;    // turns that one warp's execution takes in L1, or in shared memory
  double unrolled = 1;      // executions that the compiler can have in flight together
};

// The accesses of a block to buffers in memory (not in registers), reads that are alike once.
std::vector<WarpAccess> WarpAccessesOf(const NestBlock& nest);

// Elements that each thread holds of a register buffer under `depth` loops, which the block's thread loops
// that move its write divide.
double ElementsOfThread(const NestBlock& writer, size_t depth);

// The share of a block's instances inside its iteration domains.
double UsefulShare(const NestBlock& nest);

double ThreadsOf(const NestBlock& nest);  // of a thread block: product of its thread loops
double BlocksOf(const NestBlock& nest);   // of its block loops
// The number of thread blocks that execute each iteration of the block loops together; both counts include
// all of them.
double ClusterReduceBlocksOf(const NestBlock& nest);

}  // namespace mycc

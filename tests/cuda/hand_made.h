// Libraries with CUDA programs written by hand: what the emitter makes for real ones, in small, so that the
// way from a program to a call is tested by itself.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/artifact/cuda_library.h"
#include "codegen/target/target.h"

namespace mycc {

// A library with the module name `hand`:
//   add(x: f32[4099], y: f32[4099]) -> (z: f32[4099])           z = x + y
//   scale(x: f32[64,32], w: const f32[32]) -> (y: f32[64,32])   y = x * (w packed, twice), by two
//                                                               kernels through the workspace
// and where the architecture has TMA and clusters
//   flip(x: bf16[512,64]) -> (y: bf16[512,64])                  y = x, in boxes of 64x64 by TMA, by blocks in
//                                                               clusters of two
absl::StatusOr<SharedObject> HandMadeLibrary(const Target& target);

// A target of the architecture that has what these programs need.
Target TargetOfArch(const std::string& arch);

}  // namespace mycc

// The tables of a small module written by hand: what the code generator writes for a real one.
//
//   scale(x: f32[2,3], w: packed u8[128], flag: bool[]) -> (y: f32[2,3])     y = x; needs a workspace of 100
//                                                                            shared and 40 bytes a thread
//   scale_pack(w: f32[4]) -> (w: packed u8[128])
#pragma once

#include <cstdint>
#include <functional>

#include "codegen/runtime/artifact/artifact.h"

namespace mycc {

inline constexpr int kScale = 0;
inline constexpr int kScalePack = 1;

// Called with the arguments of a body, which does nothing else.
extern std::function<void(void* const* tensors, uint8_t* shared, uint8_t* threads)> on_scale;

// The one thing that the module needs of the CPU.
extern MyccCpuNeed cpu_need;

extern const uint8_t packed_header[kMyccHeaderBytes];

}  // namespace mycc

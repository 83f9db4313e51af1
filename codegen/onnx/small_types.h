// The element types of ONNX that the language lacks. The floats FLOAT8E4M3FNUZ, FLOAT8E5M2FNUZ, FLOAT4E2M1
// and FLOAT8E8M0 are held as their bits in u8; integers of 4 and 2 bits are held one per i8 or u8. Internal
// to this folder. Thread rule: pure functions.
#pragma once

#include <functional>
#include <string>

#include "codegen/graph/builder.h"
#include "codegen/onnx/model.h"

namespace mycc::onnx {

// Floats that are held as bits, and the bits of a narrow integer: 4, 2, or 0 for other types.
bool IsHeldAsBits(int type);
int PackedBits(int type);
bool IsFloat8Type(int type);  // the four types of 8 bits with a sign

// Makes of an element as it is held, which must be a read, the number that it stands for: f32 for floats held
// as bits, other elements as they are. Adds the table that it reads to the graph.
std::function<Expr(const Expr&)> Decoder(GraphBuilder& g, int type);

// The fate of numbers that a float of 8 or 4 bits cannot hold.
struct Encoding {
  bool saturate = true;     // to the largest one; else infinity, or NaN in a type without it
  std::string mode = "up";  // of FLOAT8E8M0: "up", "down" or "nearest"
};

// A tensor of numbers of any type of the language as elements of an ONNX type that StorageOf knows: rounded
// to nearest even, and integers wrapped.
Buffer Encoded(GraphBuilder& g, const Buffer& numbers, int type, const Encoding& encoding);

}  // namespace mycc::onnx

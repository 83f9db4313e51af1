// Short names for hand-written IR in tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/ir/function.h"

namespace mycc {

inline Stmt Loop(const Var& var, Stmt body, LoopKind kind = LoopKind::kSerial) {
  return std::make_shared<For>(var, IntConst(var->extent), kind, std::move(body));
}

inline Stmt Put(const Buffer& buffer, std::vector<Expr> indices, Expr value) {
  return std::make_shared<Store>(buffer, std::move(indices), std::move(value));
}

inline Stmt InScope(const Buffer& buffer, Stmt body) {
  return std::make_shared<Alloc>(buffer, std::move(body));
}

inline Expr F32(double value) { return FloatConst(value, DType::kF32); }

// out[indices] = value; the caller makes it a reduction.
inline std::shared_ptr<Block> MakeBlock(const std::string& name, const Buffer& out,
                                        std::vector<IterVar> iters, std::vector<Expr> indices, Expr value) {
  auto block = std::make_shared<Block>();
  block->name = name;
  block->out = out;
  block->iters = std::move(iters);
  block->indices = std::move(indices);
  block->value = std::move(value);
  return block;
}

inline Function MakeFunction(std::vector<Buffer> inputs, std::vector<Buffer> outputs, Stmt body) {
  Function function{"f", {}, std::move(body)};
  for (Buffer& input : inputs) function.params.push_back(Param{std::move(input), ParamKind::kInput});
  for (Buffer& output : outputs) function.params.push_back(Param{std::move(output), ParamKind::kOutput});
  return function;
}

}  // namespace mycc

#include "codegen/workload/order.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace mycc {
namespace {

// Operations come first, so that chains stay grouped to the left; then reads, axes, and constants, as people
// write operands.
int RankOf(Op op) {
  if (op == Op::kLoad) return 1000;
  if (op == Op::kVar) return 1001;
  if (op == Op::kAnd) return -2;
  if (op == Op::kOr) return -1;
  return op == Op::kConst ? 1002 : static_cast<int>(op);
}

template <typename T>
int Compared(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

uint64_t Bits(const ExprNode& constant) {
  uint64_t bits = 0;
  if (IsFloat(constant.dtype)) {
    std::memcpy(&bits, &constant.value.f, sizeof(bits));
  } else {
    std::memcpy(&bits, &constant.value.i, sizeof(bits));
  }
  return bits;
}

}  // namespace

StageOrder::StageOrder(const Workload& workload) {
  for (size_t i = 0; i < workload.inputs.size(); ++i)
    keys_[workload.inputs[i].tensor.get()].input = static_cast<int>(i);
}

Expr StageOrder::AddStage(const Stage& stage) {
  axes_.clear();
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const Var& axis : *axes) axes_.emplace(axis.get(), static_cast<int>(axes_.size()));
  }
  Expr ordered = Rewrite(stage.value, [this](const Expr& expr) -> Expr {
    if (!IsCommutative(expr->op) || Compare(expr->args[0], expr->args[1]) <= 0) return nullptr;
    return MakeBinary(expr->op, expr->args[1], expr->args[0]);
  });
  TensorKey& key = keys_[stage.output.get()];
  key.skeleton = DigestOf(Detail::kSkeleton, stage, ordered);
  key.full = DigestOf(Detail::kFull, stage, ordered);
  return ordered;
}

int StageOrder::Compare(const Expr& a, const Expr& b) const {
  const int order = CompareWith(Detail::kSkeleton, *a, *b);
  return order != 0 ? order : CompareWith(Detail::kFull, *a, *b);
}

int StageOrder::CompareWith(Detail detail, const ExprNode& a, const ExprNode& b) const {
  if (&a == &b) return 0;
  if (const int order = Compared(RankOf(a.op), RankOf(b.op))) return order;
  if (const int order = Compared(a.dtype, b.dtype)) return order;
  if (a.op == Op::kConst) return detail == Detail::kFull ? Compared(Bits(a), Bits(b)) : 0;
  if (a.op == Op::kVar) return Compared(axes_.at(a.var.get()), axes_.at(b.var.get()));
  if (a.op == Op::kLoad) {
    if (const int order = CompareTensors(detail, a.buffer.get(), b.buffer.get())) return order;
  }
  if (const int order = Compared(a.args.size(), b.args.size())) return order;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (const int order = CompareWith(detail, *a.args[i], *b.args[i])) return order;
  }
  return 0;
}

int StageOrder::CompareTensors(Detail detail, const BufferNode* a, const BufferNode* b) const {
  const TensorKey &x = keys_.at(a), &y = keys_.at(b);
  if (x.input >= 0 || y.input >= 0) {
    // Stages come before inputs: `a[i] + bias[i]`.
    if (x.input >= 0 && y.input >= 0) return Compared(x.input, y.input);
    return x.input >= 0 ? 1 : -1;
  }
  return detail == Detail::kFull ? Compared(x.full, y.full) : Compared(x.skeleton, y.skeleton);
}

void StageOrder::Serialize(Detail detail, const ExprNode& expr, std::string* out) const {
  absl::StrAppend(out, "(", static_cast<int>(expr.op), " ", static_cast<int>(expr.dtype));
  if (expr.op == Op::kVar) absl::StrAppend(out, " ", axes_.at(expr.var.get()));
  if (expr.op == Op::kConst && detail == Detail::kFull) absl::StrAppend(out, " ", Bits(expr));
  if (expr.op == Op::kLoad) {
    const TensorKey& key = keys_.at(expr.buffer.get());
    absl::StrAppend(out, " ", key.input, " ", detail == Detail::kFull ? key.full : key.skeleton);
  }
  for (const Expr& arg : expr.args) Serialize(detail, *arg, out);
  *out += ")";
}

std::string StageOrder::DigestOf(Detail detail, const Stage& stage, const Expr& value) const {
  std::string text = absl::StrCat(static_cast<int>(stage.output->dtype), " ", static_cast<int>(stage.reduce));
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    absl::StrAppend(&text, " ", axes->size(), ":");
    for (const Var& axis : *axes) {
      if (detail == Detail::kFull) absl::StrAppend(&text, axis->extent, ",");
    }
  }
  Serialize(detail, *value, &text);
  return Sha256Hex(text);
}

}  // namespace mycc

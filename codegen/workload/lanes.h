// Evaluates a stage's expression for many points at once: each operation runs over a block of lanes before
// the next one starts. Results equal those of Evaluate (codegen/expr/eval.h), which is many times slower.
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

// A tensor's elements, widened: floats to f64, integers and bool to i64. One of the two vectors is empty.
struct WideTensor {
  std::vector<double> f;
  std::vector<int64_t> i;
};
using WideTensors = std::unordered_map<const BufferNode*, WideTensor>;

inline constexpr int kLanes = 256;

// The elements of a tensor that the lanes read, and where they go.
struct LaneReads {
  const BufferNode& tensor;
  int count;
  const int64_t* positions;  // row-major
  const int64_t* mask;       // lanes that are 0 read nothing; null: all read
  double* floats;            // where elements of floats go, by lane
  int64_t* ints;             // where other elements go

  // Fills the lanes by element(position). False when a position is outside the tensor.
  template <typename ElementFn>
  bool Fill(const ElementFn& element) const {
    const bool is_float = IsFloat(tensor.dtype);
    const auto size = static_cast<uint64_t>(tensor.num_elements());
    for (int lane = 0; lane < count; ++lane) {
      if (mask != nullptr && mask[lane] == 0) continue;
      if (static_cast<uint64_t>(positions[lane]) >= size) return false;
      const Scalar value = element(positions[lane]);
      if (is_float) {
        floats[lane] = value.f;
      } else {
        ints[lane] = value.i;
      }
    }
    return true;
  }
};
// False when a position is outside the tensor.
using LaneReader = std::function<bool(const LaneReads& reads)>;

class LaneProgram {
 public:
  // Points are numbered with the stage's axes outermost and its reduction axes innermost, row-major.
  // REQUIRES: the stage is valid.
  explicit LaneProgram(const Stage& stage) : LaneProgram(stage, stage.value) {}
  // Evaluates `value`, a part of the stage's expression.
  LaneProgram(const Stage& stage, const Expr& value);

  // Evaluates points first .. first + count - 1 (count <= kLanes). False when a read fell outside its tensor,
  // which a validated stage never does. `read` may run other programs.
  bool Run(int64_t first, int count, const LaneReader& read);

  // The values of the last Run, by lane; floats or integers by the type of the stage's expression.
  const double* floats() const { return registers_[result_].f.data(); }
  const int64_t* ints() const { return registers_[result_].i.data(); }
  Scalar value(int lane) const { return is_float_ ? Scalar{floats()[lane], 0} : Scalar{0, ints()[lane]}; }

 private:
  struct Register {
    std::vector<double> f;
    std::vector<int64_t> i;
  };
  // An affine function of the axes modulo 2^64, whose lanes are filled before the instructions run.
  struct Form {
    uint64_t constant = 0;
    std::vector<uint64_t> factors;  // one for each axis
    int result = 0;
    uint64_t next = 0;  // its value at the next lane to fill
  };
  struct Instruction {
    Op op;
    DType dtype;
    DType operand_dtype;
    int result;
    std::vector<int> args;               // registers
    int mask = -1;                       // kLoad: read only where this register is true; -1: everywhere
    const BufferNode* tensor = nullptr;  // kLoad: args[0] is the flat position
  };

  int NewRegister(DType dtype);
  int Constant(DType dtype, Scalar value);
  int Compile(const Expr& expr, int mask);
  int CompileNode(const Expr& expr, int mask);
  int CompileLoad(const Expr& expr, int mask);
  int CompileSelect(const Expr& expr, int mask);
  int Emit(Op op, DType dtype, DType operand_dtype, std::vector<int> args);
  bool AccumulateForm(const Expr& expr, uint64_t factor, Form* form) const;
  bool AddForm(const Expr& expr, int* result);
  bool AddFlatPosition(const Expr& read, int* result);
  void StoreForm(Form form, int* result);
  void FillForms(int64_t first, int count);
  bool RunLoad(const Instruction& load, int count, const LaneReader& read);
  void RunOperation(const Instruction& instruction, int count);

  std::vector<Var> axes_;
  const bool is_float_;
  std::vector<Register> registers_;
  std::vector<Form> forms_;
  std::vector<Instruction> instructions_;
  std::map<std::pair<const ExprNode*, int>, int> compiled_;
  int result_ = 0;
};

}  // namespace mycc

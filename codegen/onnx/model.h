// An ONNX file as plain structures: what read_model.cc makes of the bytes, and the importer works on. No
// protobuf type appears here. Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"

namespace mycc::onnx {

// The element types of ONNX, by its numbers.
enum ElementType : int {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};
std::string ElementTypeName(int type);  // "FLOAT16", "type 99"
// The type of the language whose tensors hold elements of this type; nullopt without one. Types that the
// language lacks are held as small_types.h says.
std::optional<DType> StorageOf(int type);

// The elements of a tensor of strings, in row-major order; none has a NUL.
struct Texts {
  std::vector<int64_t> shape;
  std::vector<std::string> elements;
};

// A constant, and its element type in the file.
struct TypedConstant {
  Constant value;  // null for strings
  int type = kUndefined;
  std::shared_ptr<const Texts> texts = nullptr;  // of strings
};

// One dimension: a number, or a free one with its name ("" without).
struct Dimension {
  int64_t extent = -1;  // -1: free
  std::string name;
};

// An input or output of a graph as it is declared. The type and the shape of a sequence or an optional are
// those of the tensors in it.
struct DeclaredValue {
  std::string name;
  int type = kUndefined;
  bool has_shape = false;
  std::vector<Dimension> shape;
  // Or "sequence", "optional" or "optional sequence", of tensors; "map", "sparse tensor", "nothing", and
  // these behind "sequence of" and the like.
  std::string kind = "tensor";
};

struct OnnxGraph;
using GraphPtr = std::shared_ptr<const OnnxGraph>;

struct OnnxAttribute {
  int type = 0;  // ONNX's number: 1 float, 2 int, 3 string, 4 tensor, 5 graph, 6 floats, 7 ints, 8 strings
  double f = 0;
  int64_t i = 0;
  std::string s;
  TypedConstant tensor;
  GraphPtr graph;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::string reference;  // inside a function: the function's attribute that gives the value
};
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

struct OnnxNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" where an optional one is left out
  OnnxAttributes attributes;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::map<std::string, TypedConstant> initializers;
  std::vector<DeclaredValue> inputs, outputs;
};

struct OnnxFunction {
  std::vector<std::string> inputs, outputs;
  OnnxAttributes defaults;
  std::vector<OnnxNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct OnnxModel {
  std::map<std::string, int64_t> opsets;  // by domain; ONNX's own is ""
  OnnxGraph graph;
  std::map<std::string, OnnxFunction> functions;  // by "domain:name"
};

// Reads a model and its external data. InvalidArgument for a file that is no ONNX model or is cut off, and
// for data that does not fit its tensor; NotFound for missing external data. The errors name the file.
absl::StatusOr<OnnxModel> ReadModel(const std::string& file);
// The same for bytes that are in memory; `file` names them in errors, and its folder has the external data.
absl::StatusOr<OnnxModel> ReadModelBytes(const std::string& bytes, const std::string& file);

// One tensor of the file format, as test data is stored.
absl::StatusOr<TypedConstant> ParseTensor(const std::string& bytes);

}  // namespace mycc::onnx

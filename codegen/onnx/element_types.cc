// The element types of ONNX and where the language holds them.
#include "absl/strings/str_cat.h"
#include "codegen/onnx/model.h"

namespace mycc::onnx {

std::string ElementTypeName(int type) {
  static constexpr const char* kNames[] = {
      "UNDEFINED",      "FLOAT",    "UINT8",        "INT8",           "UINT16",
      "INT16",          "INT32",    "INT64",        "STRING",         "BOOL",
      "FLOAT16",        "DOUBLE",   "UINT32",       "UINT64",         "COMPLEX64",
      "COMPLEX128",     "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
      "FLOAT8E5M2FNUZ", "UINT4",    "INT4",         "FLOAT4E2M1",     "FLOAT8E8M0",
      "UINT2",          "INT2"};
  if (type < 0 || type > kInt2) return absl::StrCat("number ", type);
  return kNames[type];
}

std::optional<DType> StorageOf(int type) {
  switch (type) {
    case kFloat: return DType::kF32;
    case kDouble: return DType::kF64;
    case kFloat16: return DType::kF16;
    case kBfloat16: return DType::kBF16;
    case kFloat8E4M3FN: return DType::kF8E4M3;
    case kFloat8E5M2: return DType::kF8E5M2;
    case kInt64: return DType::kI64;
    case kInt32: return DType::kI32;
    case kInt16: return DType::kI16;
    case kUint64: return DType::kU64;
    case kUint32: return DType::kU32;
    case kUint16: return DType::kU16;
    case kInt8:
    case kInt4:
    case kInt2: return DType::kI8;
    case kUint8:
    case kUint4:
    case kUint2:
    case kFloat4E2M1:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0: return DType::kU8;
    case kBool: return DType::kBool;
    default: return std::nullopt;
  }
}

}  // namespace mycc::onnx

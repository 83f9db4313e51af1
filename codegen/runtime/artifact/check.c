// Checks that each argument is the tensor that the function was compiled for. An error names the argument,
// its property, and the expected one.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/runtime/artifact/artifact.h"

enum { kTextBytes = 160 };

static const char* DeviceName(int type) {
  switch (type) {
    case kDLCPU: return "cpu";
    case kDLCUDA: return "cuda";
    case kDLCUDAHost: return "cuda_host";
    case kDLCUDAManaged: return "cuda_managed";
    default: return "unknown";
  }
}

// "f32", "string", or the three numbers of a type without a name here.
static void PrintType(char* text, int64_t code, int64_t bits, int64_t lanes) {
  static const char* const kPrefix[] = {"i", "u", "f", NULL, "bf"};
  if (code == kMyccCodeBool && bits == 8 && lanes == 1) {
    snprintf(text, kTextBytes, "bool");
  } else if ((code == kMyccCodeF8E4M3 || code == kMyccCodeF8E5M2) && bits == 8 && lanes == 1) {
    snprintf(text, kTextBytes, code == kMyccCodeF8E4M3 ? "f8e4m3" : "f8e5m2");
  } else if (code == kDLOpaqueHandle && bits == 64 && lanes == 1) {
    snprintf(text, kTextBytes, "string");
  } else if (code >= 0 && code <= 4 && kPrefix[code] != NULL && lanes == 1) {
    snprintf(text, kTextBytes, "%s%" PRId64, kPrefix[code], bits);
  } else {
    snprintf(text, kTextBytes, "(code %" PRId64 ", bits %" PRId64 ", lanes %" PRId64 ")", code, bits, lanes);
  }
}

// "[1,64,56,56]", truncated after a few dimensions.
static void PrintInts(char* text, const int64_t* values, int64_t count) {
  int used = snprintf(text, kTextBytes, "[");
  for (int64_t i = 0; i < count && used < kTextBytes - 32; ++i) {
    used += snprintf(text + used, kTextBytes - used, "%s%" PRId64, i > 0 ? "," : "", values[i]);
    if (i == 7 && count > 8) {
      used += snprintf(text + used, kTextBytes - used, ",...");
      break;
    }
  }
  snprintf(text + used, kTextBytes - used, "]");
}

// A hint for callers that pass the const tensor itself; it ends an error.
static void PrintHint(char* text, const struct MyccSignature* signature, const struct MyccArg* arg) {
  text[0] = '\0';
  if (arg->header != NULL && !arg->is_output)
    snprintf(text, kTextBytes, ", the packed buffer that %s fills", signature->packer);
}

static int SameType(const struct MyccArg* arg, DLDataType type) {
  if (type.lanes != 1 || type.bits != arg->bits) return 0;
  return type.code == arg->code || (arg->code == kMyccCodeBool && type.code == kDLUInt);
}

static int SameShape(const struct MyccArg* arg, const DLTensor* tensor) {
  if (tensor->ndim != arg->ndim) return 0;
  for (int64_t i = 0; i < arg->ndim; ++i) {
    if (tensor->shape[i] != arg->shape[i]) return 0;
  }
  return 1;
}

// Whether the tensor is compact and row-major. The strides of dimensions of extent 1 and of empty tensors are
// not used.
static int IsCompact(const struct MyccArg* arg, const int64_t* strides) {
  if (arg->bytes == 0) return 1;
  int64_t expected = 1;
  for (int64_t i = arg->ndim - 1; i >= 0; --i) {
    if (arg->shape[i] != 1 && strides[i] != expected) return 0;
    expected *= arg->shape[i];
  }
  return 1;
}

// All tensors must be on the GPU of the first one.
static int32_t CheckDevice(const struct MyccSignature* signature, enum MyccDevice device, int32_t i,
                           DLTensor** args) {
  const DLDevice got = args[i]->device;
  if (device == kMyccOnCpu) {
    if (got.device_type == kDLCPU || got.device_type == kDLCUDAHost) return 0;
    return MYCC_REFUSE(signature, i, "is on device type %d (%s), expected 1 (cpu)", (int)got.device_type,
                       DeviceName(got.device_type));
  }
  if (got.device_type != kDLCUDA && got.device_type != kDLCUDAManaged) {
    return MYCC_REFUSE(signature, i, "is on device type %d (%s), expected 2 (cuda)", (int)got.device_type,
                       DeviceName(got.device_type));
  }
  if (got.device_id == args[0]->device.device_id) return 0;
  return MYCC_REFUSE(signature, i, "is on device %d, expected %d, where args[0] is", (int)got.device_id,
                     (int)args[0]->device.device_id);
}

static int32_t CheckTypeAndShape(const struct MyccSignature* signature, int32_t i, const DLTensor* tensor) {
  const struct MyccArg* arg = &signature->args[i];
  char got[kTextBytes], expected[kTextBytes], hint[kTextBytes];
  PrintHint(hint, signature, arg);
  if (!SameType(arg, tensor->dtype)) {
    PrintType(got, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
    PrintType(expected, arg->code, arg->bits, 1);
    return MYCC_REFUSE(signature, i, "is of type %s, expected %s%s", got, expected, hint);
  }
  if (tensor->ndim != 0 && tensor->shape == NULL) return MYCC_REFUSE(signature, i, "%s", "its shape is NULL");
  if (!SameShape(arg, tensor)) {
    PrintInts(got, tensor->shape, tensor->ndim);
    PrintInts(expected, arg->shape, arg->ndim);
    return MYCC_REFUSE(signature, i, "has shape %s, expected %s%s", got, expected, hint);
  }
  if (tensor->strides != NULL && !IsCompact(arg, tensor->strides)) {
    PrintInts(got, tensor->strides, tensor->ndim);
    PrintInts(expected, arg->shape, arg->ndim);
    return MYCC_REFUSE(signature, i,
                       "has strides %s, expected NULL or the compact row-major strides of shape %s", got,
                       expected);
  }
  return 0;
}

static int32_t CheckData(const struct MyccSignature* signature, int32_t i, const DLTensor* tensor,
                         void** data) {
  const struct MyccArg* arg = &signature->args[i];
  *data = tensor->data;
  if (arg->bytes == 0) return 0;
  if (tensor->data == NULL) return MYCC_REFUSE(signature, i, "%s", "its data is NULL");
  *data = (uint8_t*)tensor->data + tensor->byte_offset;
  if ((uintptr_t)*data % (uintptr_t)arg->alignment != 0) {
    return MYCC_REFUSE(signature, i, "its data (%p + byte_offset %" PRIu64 ") is not aligned to %d bytes",
                       tensor->data, tensor->byte_offset, (int)arg->alignment);
  }
  return 0;
}

static int Overlap(const struct MyccArg* a, const void* a_data, const struct MyccArg* b, const void* b_data) {
  const uintptr_t a_begin = (uintptr_t)a_data, b_begin = (uintptr_t)b_data;
  return a->bytes > 0 && b->bytes > 0 && a_begin < b_begin + (uintptr_t)b->bytes &&
         b_begin < a_begin + (uintptr_t)a->bytes;
}

// An output must not overlap another argument; inputs may overlap each other.
static int32_t CheckOverlap(const struct MyccSignature* signature, void* const* data) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    if (!signature->args[i].is_output) continue;
    for (int64_t j = 0; j < signature->num_args; ++j) {
      if (i == j || !Overlap(&signature->args[i], data[i], &signature->args[j], data[j])) continue;
      return MYCC_REFUSE(signature, i, "is an output and overlaps args[%d] `%s`", (int)j,
                         signature->args[j].name);
    }
  }
  return 0;
}

int32_t MyccRefuseHeader(const struct MyccSignature* signature, int64_t i) {
  return MYCC_REFUSE(signature, i,
                     "was not packed for this build of this argument; expected a buffer filled by %s",
                     signature->packer);
}

int32_t MyccCheckArgs(const struct MyccSignature* signature, enum MyccDevice device, DLTensor** args,
                      int32_t num_args, void** data) {
  if (num_args != signature->num_args) {
    return MyccFail("%s: %d arguments, expected %d", signature->symbol, (int)num_args,
                    (int)signature->num_args);
  }
  if (num_args > 0 && args == NULL)
    return MyccFail("%s: args is NULL, expected %d tensors", signature->symbol, (int)num_args);
  for (int32_t i = 0; i < num_args; ++i) {
    if (args[i] == NULL) return MYCC_REFUSE(signature, i, "%s", "is NULL");
    if (CheckDevice(signature, device, i, args) != 0 || CheckTypeAndShape(signature, i, args[i]) != 0 ||
        CheckData(signature, i, args[i], &data[i]) != 0)
      return 1;
  }
  return CheckOverlap(signature, data);
}

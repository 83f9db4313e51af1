#include "codegen/onnx/read_tensor.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

absl::Status Bad(const onnx_file::Tensor& tensor, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor `", tensor.name(), "`: ", what));
}

// The bits of elements that share a byte in the file, the first in the lowest bits; 0 for other types.
int BitsInFile(int type) {
  if (type == kUint4 || type == kInt4 || type == kFloat4E2M1) return 4;
  return type == kUint2 || type == kInt2 ? 2 : 0;
}

bool IsSignedPacked(int type) { return type == kInt4 || type == kInt2; }

int64_t FileBytes(int type, DType storage, int64_t elements) {
  const int bits = BitsInFile(type);
  return bits == 0 ? elements * DTypeBytes(storage) : (elements * bits + 7) / 8;
}

std::vector<uint8_t> Unpack(int type, const uint8_t* packed, int64_t elements) {
  const int bits = BitsInFile(type), each = 8 / bits;
  std::vector<uint8_t> bytes(elements);
  for (int64_t i = 0; i < elements; ++i) {
    const int value = packed[i / each] >> (i % each * bits) & ((1 << bits) - 1);
    const bool negative = IsSignedPacked(type) && (value >> (bits - 1)) != 0;
    bytes[i] = static_cast<uint8_t>(negative ? value - (1 << bits) : value);
  }
  return bytes;
}

struct ExternalPlace {
  std::string file;
  int64_t offset = 0, length = -1;
};

absl::StatusOr<ExternalPlace> ExternalPlaceOf(const onnx_file::Tensor& tensor) {
  ExternalPlace place;
  for (const onnx_file::StringEntry& entry : tensor.external_data()) {
    if (entry.key() == "location") place.file = entry.value();
    int64_t* number = entry.key() == "offset"   ? &place.offset
                      : entry.key() == "length" ? &place.length
                                                : nullptr;
    if (number != nullptr && (!absl::SimpleAtoi(entry.value(), number) || *number < 0))
      return Bad(tensor, absl::StrCat("external data with ", entry.key(), " `", entry.value(), "`"));
  }
  if (place.file.empty()) return Bad(tensor, "external data without a location");
  // A model must not read files outside of its own folder.
  const std::filesystem::path path(place.file);
  for (const auto& part : path) {
    if (path.is_absolute() || part == "..")
      return Bad(tensor, absl::StrCat("external data at `", place.file,
                                      "`; expected a path inside the model's folder"));
  }
  return place;
}

absl::StatusOr<std::vector<uint8_t>> ReadExternal(const onnx_file::Tensor& tensor, const std::string& folder,
                                                  int64_t expected) {
  MYCC_ASSIGN_OR_RETURN(const ExternalPlace place, ExternalPlaceOf(tensor));
  if (place.length >= 0 && place.length != expected) {
    return Bad(tensor, absl::StrCat("external data of ", place.length, " bytes; expected ", expected,
                                    " for its type and shape"));
  }
  const std::string path = (std::filesystem::path(folder) / place.file).string();
  std::error_code error;
  std::ifstream in;
  if (std::filesystem::is_regular_file(path, error)) in.open(path, std::ios::binary);
  if (!in.is_open()) {
    return absl::NotFoundError(
        absl::StrCat("tensor `", tensor.name(), "`: cannot read its external data `", path, "`"));
  }
  // The size is looked at first, so that a wrong shape asks for no memory.
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  const auto too_short = [&] {
    return Bad(tensor, absl::StrCat("its external data `", path, "` has ", size, " bytes; expected ",
                                    expected, " from byte ", place.offset));
  };
  if (error || size < expected || size - expected < place.offset) return too_short();
  std::vector<uint8_t> bytes(expected);
  in.seekg(place.offset);
  in.read(reinterpret_cast<char*>(bytes.data()), expected);
  if (in.gcount() != expected) return too_short();
  return bytes;
}

// The elements of one of the typed fields, of `width` bytes each: the low bytes of what is there.
template <typename Field>
bool FromField(const Field& field, int64_t count, int width, std::vector<uint8_t>* bytes) {
  if (static_cast<int64_t>(field.size()) != count) return false;
  bytes->resize(count * width);
  for (int64_t i = 0; i < count; ++i) {
    const auto value = field.Get(static_cast<int>(i));
    std::memcpy(bytes->data() + i * width, &value, width);
  }
  return true;
}

absl::StatusOr<std::vector<uint8_t>> FromTypedFields(const onnx_file::Tensor& tensor, DType storage,
                                                     int64_t elements) {
  const int type = tensor.data_type(), width = DTypeBytes(storage);
  std::vector<uint8_t> bytes;
  bool fits = false;
  if (type == kFloat) {
    fits = FromField(tensor.float_data(), elements, width, &bytes);
  } else if (type == kDouble) {
    fits = FromField(tensor.double_data(), elements, width, &bytes);
  } else if (type == kInt64) {
    fits = FromField(tensor.int64_data(), elements, width, &bytes);
  } else if (type == kUint32 || type == kUint64) {
    fits = FromField(tensor.uint64_data(), elements, width, &bytes);
  } else if (BitsInFile(type) != 0) {
    std::vector<uint8_t> packed;
    fits = FromField(tensor.int32_data(), FileBytes(type, storage, elements), 1, &packed);
    if (fits) bytes = Unpack(type, packed.data(), elements);
  } else {
    fits = FromField(tensor.int32_data(), elements, width, &bytes);
  }
  if (!fits) return Bad(tensor, absl::StrCat("its data are not the ", elements, " elements of its shape"));
  return bytes;
}

// Strings have a field of their own, and no other form.
absl::StatusOr<TypedConstant> ReadTexts(const onnx_file::Tensor& tensor) {
  Texts texts;
  texts.shape.assign(tensor.dims().begin(), tensor.dims().end());
  if (const std::string problem = ShapeProblem(texts.shape); !problem.empty()) return Bad(tensor, problem);
  texts.elements.assign(tensor.string_data().begin(), tensor.string_data().end());
  const int64_t elements = NDArray{DType::kU8, texts.shape, {}}.num_elements();
  if (elements != static_cast<int64_t>(texts.elements.size()))
    return Bad(tensor, absl::StrCat("has ", texts.elements.size(), " strings; expected ", elements,
                                    " for its shape"));
  for (const std::string& text : texts.elements) {
    if (text.find('\0') != std::string::npos)
      return absl::UnimplementedError(
          absl::StrCat("tensor `", tensor.name(), "`: a string with a NUL is not supported"));
  }
  return TypedConstant{nullptr, kString, std::make_shared<const Texts>(std::move(texts))};
}

}  // namespace

absl::StatusOr<TypedConstant> ReadTensor(onnx_file::Tensor* tensor, const std::string& folder) {
  if (tensor->data_type() == kString) return ReadTexts(*tensor);
  const std::optional<DType> storage = StorageOf(tensor->data_type());
  const std::vector<int64_t> shape(tensor->dims().begin(), tensor->dims().end());
  if (!storage) {
    return absl::UnimplementedError(absl::StrCat("tensor `", tensor->name(), "`: elements of type ",
                                                 ElementTypeName(tensor->data_type()), " are not supported"));
  }
  if (const std::string problem = ShapeProblem(shape); !problem.empty()) return Bad(*tensor, problem);
  auto array = std::make_shared<NDArray>(NDArray{*storage, shape, {}});
  const int64_t elements = array->num_elements();
  const int type = tensor->data_type();
  const int64_t file_bytes = FileBytes(type, *storage, elements);
  if (tensor->data_location() == 1) {
    MYCC_ASSIGN_OR_RETURN(array->bytes, ReadExternal(*tensor, folder, file_bytes));
    if (BitsInFile(type) != 0) array->bytes = Unpack(type, array->bytes.data(), elements);
  } else if (tensor->has_raw_data()) {
    const std::string& raw = tensor->raw_data();
    if (static_cast<int64_t>(raw.size()) != file_bytes) {
      return Bad(*tensor, absl::StrCat("has ", raw.size(), " bytes of data; expected ", file_bytes, " for ",
                                       ElementTypeName(type), "[", absl::StrJoin(shape, ","), "]"));
    }
    const auto* begin = reinterpret_cast<const uint8_t*>(raw.data());
    if (BitsInFile(type) != 0) {
      array->bytes = Unpack(type, begin, elements);
    } else {
      array->bytes.assign(begin, begin + raw.size());
    }
    tensor->clear_raw_data();
  } else {
    MYCC_ASSIGN_OR_RETURN(array->bytes, FromTypedFields(*tensor, *storage, elements));
  }
  if (*storage == DType::kBool) {
    for (uint8_t& byte : array->bytes) byte = byte != 0;
  }
  return TypedConstant{std::move(array), type};
}

absl::StatusOr<TypedConstant> ParseTensor(const std::string& bytes) {
  onnx_file::Tensor tensor;
  if (!tensor.ParseFromString(bytes)) return absl::InvalidArgumentError("not a tensor of the ONNX format");
  return ReadTensor(&tensor, "");
}

}  // namespace mycc::onnx

// ReadModel: from the bytes of an ONNX file to plain structures.
#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/read_tensor.h"

namespace mycc::onnx {
namespace {

constexpr int kMostGraphDepth = 32;  // of graphs inside one another

// One reading of a file.
class Reader {
 public:
  explicit Reader(const std::string& file) : folder_(std::filesystem::path(file).parent_path().string()) {}

  absl::Status Graph(onnx_file::Graph* from, OnnxGraph* to, int depth = 0) {
    if (depth > kMostGraphDepth) return absl::InvalidArgumentError("graphs are nested too deeply");
    if (from->sparse_initializer_size() > 0)
      return absl::UnimplementedError("sparse initializers are not supported");
    to->name = from->name();
    for (onnx_file::Tensor& tensor : *from->mutable_initializer()) {
      MYCC_ASSIGN_OR_RETURN(TypedConstant value, ReadConstant(&tensor));
      if (!to->initializers.emplace(tensor.name(), std::move(value)).second)
        return absl::InvalidArgumentError(absl::StrCat("initializer `", tensor.name(), "` is there twice"));
      tensor.Clear();
    }
    for (const onnx_file::Value& value : from->input()) to->inputs.push_back(Declared(value));
    for (const onnx_file::Value& value : from->output()) to->outputs.push_back(Declared(value));
    for (onnx_file::Node& node : *from->mutable_node()) {
      to->nodes.emplace_back();
      MYCC_RETURN_IF_ERROR(NodeOf(&node, &to->nodes.back(), depth));
    }
    return absl::OkStatus();
  }

  absl::Status FunctionOf(onnx_file::Function* from, OnnxFunction* to) {
    to->inputs.assign(from->input().begin(), from->input().end());
    to->outputs.assign(from->output().begin(), from->output().end());
    for (onnx_file::Attribute& attribute : *from->mutable_attribute_proto())
      MYCC_RETURN_IF_ERROR(AttributeOf(&attribute, &to->defaults[attribute.name()], 0));
    for (const onnx_file::OperatorSet& set : from->opset_import())
      to->opsets[Domain(set.domain())] = set.version();
    for (onnx_file::Node& node : *from->mutable_node()) {
      to->nodes.emplace_back();
      MYCC_RETURN_IF_ERROR(NodeOf(&node, &to->nodes.back(), 0));
    }
    return absl::OkStatus();
  }

  static std::string Domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

 private:
  // The type of the tensors in a sequence or an optional, and what it is in words.
  static const onnx_file::Type& TensorIn(const onnx_file::Type& type, std::string* kind) {
    switch (type.value_case()) {
      case onnx_file::Type::kTensorType: *kind = "tensor"; return type;
      case onnx_file::Type::kMapType: *kind = "map"; return type;
      case onnx_file::Type::kSparseTensorType: *kind = "sparse tensor"; return type;
      case onnx_file::Type::VALUE_NOT_SET: *kind = "nothing"; return type;
      case onnx_file::Type::kSequenceType: {
        const onnx_file::Type& element = TensorIn(type.sequence_type().elem_type(), kind);
        *kind = *kind == "tensor" ? "sequence" : absl::StrCat("sequence of ", *kind);
        return element;
      }
      case onnx_file::Type::kOptionalType: break;
    }
    const onnx_file::Type& element = TensorIn(type.optional_type().elem_type(), kind);
    *kind = *kind == "tensor"     ? "optional"
            : *kind == "sequence" ? "optional sequence"
                                  : absl::StrCat("optional of ", *kind);
    return element;
  }

  static DeclaredValue Declared(const onnx_file::Value& value) {
    DeclaredValue declared;
    declared.name = value.name();
    const onnx_file::Type& type = TensorIn(value.type(), &declared.kind);
    if (!type.has_tensor_type()) return declared;
    declared.type = type.tensor_type().elem_type();
    declared.has_shape = type.tensor_type().has_shape();
    for (const onnx_file::Shape::Dimension& dim : type.tensor_type().shape().dim()) {
      const bool fixed = dim.value_case() == onnx_file::Shape::Dimension::kDimValue && dim.dim_value() >= 0;
      declared.shape.push_back({fixed ? dim.dim_value() : -1, fixed ? "" : dim.dim_param()});
    }
    return declared;
  }

  absl::Status AttributeOf(onnx_file::Attribute* from, OnnxAttribute* to, int depth) {
    to->type = from->type();
    to->f = from->f();
    to->i = from->i();
    to->s = from->s();
    to->reference = from->ref_attr_name();
    to->floats.assign(from->floats().begin(), from->floats().end());
    to->ints.assign(from->ints().begin(), from->ints().end());
    to->strings.assign(from->strings().begin(), from->strings().end());
    constexpr int kTensor = 4, kGraph = 5;  // of attributes
    const bool is_missing = (to->type == kTensor && !from->has_t()) || (to->type == kGraph && !from->has_g());
    if (is_missing && to->reference.empty()) return absl::InvalidArgumentError("has no value");
    if (from->has_t()) {
      MYCC_ASSIGN_OR_RETURN(to->tensor, ReadConstant(from->mutable_t()));
    }
    if (from->has_g()) {
      auto graph = std::make_shared<OnnxGraph>();
      MYCC_RETURN_IF_ERROR(Graph(from->mutable_g(), graph.get(), depth + 1));
      to->graph = std::move(graph);
    }
    return absl::OkStatus();
  }

  absl::Status NodeOf(onnx_file::Node* from, OnnxNode* to, int depth) {
    to->name = from->name();
    to->op = from->op_type();
    to->domain = Domain(from->domain());
    to->inputs.assign(from->input().begin(), from->input().end());
    to->outputs.assign(from->output().begin(), from->output().end());
    for (onnx_file::Attribute& attribute : *from->mutable_attribute()) {
      if (absl::Status status = AttributeOf(&attribute, &to->attributes[attribute.name()], depth);
          !status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("node `", to->name, "` (", to->op, "), attribute ", attribute.name(),
                                         ": ", std::string(status.message())));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TypedConstant> ReadConstant(onnx_file::Tensor* tensor) {
    return ReadTensor(tensor, folder_);
  }

  const std::string folder_;
};

absl::Status CheckParsed(bool parsed, const onnx_file::Model& model, const std::string& file) {
  if (parsed && model.has_graph()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`", file, "` is no ONNX model", parsed ? ": it has no graph" : ", or is cut off"));
}

absl::Status ParseFile(const std::string& file, onnx_file::Model* model) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string message = absl::StrCat("cannot read `", file, "`: ", strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
  }
  google::protobuf::io::FileInputStream stream(fd);
  stream.SetCloseOnDelete(true);
  const bool parsed = model->ParseFromZeroCopyStream(&stream);
  if (stream.GetErrno() != 0)
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read `", file, "`: ", strerror(stream.GetErrno())));
  return CheckParsed(parsed, *model, file);
}

absl::StatusOr<OnnxModel> ModelOf(onnx_file::Model parsed, const std::string& file) {
  OnnxModel model;
  for (const onnx_file::OperatorSet& set : parsed.opset_import())
    model.opsets[Reader::Domain(set.domain())] = set.version();
  Reader reader(file);
  absl::Status status = reader.Graph(parsed.mutable_graph(), &model.graph);
  for (onnx_file::Function& function : *parsed.mutable_functions()) {
    if (!status.ok()) break;
    status = reader.FunctionOf(
        &function, &model.functions[absl::StrCat(Reader::Domain(function.domain()), ":", function.name())]);
  }
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat("`", file, "`: ", std::string(status.message())));
  return model;
}

}  // namespace

absl::StatusOr<OnnxModel> ReadModel(const std::string& file) {
  onnx_file::Model parsed;
  MYCC_RETURN_IF_ERROR(ParseFile(file, &parsed));
  return ModelOf(std::move(parsed), file);
}

absl::StatusOr<OnnxModel> ReadModelBytes(const std::string& bytes, const std::string& file) {
  onnx_file::Model parsed;
  MYCC_RETURN_IF_ERROR(CheckParsed(parsed.ParseFromString(bytes), parsed, file));
  return ModelOf(std::move(parsed), file);
}

}  // namespace mycc::onnx

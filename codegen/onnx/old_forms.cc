#include "codegen/onnx/old_forms.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc::onnx {
namespace {

// A node that is rewritten.
struct OldNode {
  const int64_t opset;
  GraphBuilder& g;
  OnnxNode& node;
  std::vector<TypedTensor>& inputs;

  bool Has(size_t i) const { return i < inputs.size() && inputs[i].tensor != nullptr; }
  const std::vector<int64_t>& Shape(size_t i) const { return inputs[i].tensor->shape; }
  const OnnxAttribute* Attribute(const std::string& name) const {
    const auto at = node.attributes.find(name);
    return at == node.attributes.end() ? nullptr : &at->second;
  }
  int64_t Int(const std::string& name, int64_t otherwise) const {
    const OnnxAttribute* attribute = Attribute(name);
    return attribute == nullptr ? otherwise : attribute->i;
  }
  // Types are ONNX's numbers of attributes.
  OnnxAttribute& Put(const std::string& name, int type) {
    OnnxAttribute& attribute = node.attributes[name];
    attribute = OnnxAttribute();
    attribute.type = type;
    return attribute;
  }
  void PutInput(size_t i, const Buffer& tensor, int type) {
    inputs.resize(std::max(inputs.size(), i + 1));
    inputs[i] = {tensor, type};
  }
};

constexpr int kFloatAttribute = 1, kIntAttribute = 2, kStringAttribute = 3, kFloatsAttribute = 6,
              kIntsAttribute = 7;

absl::Status Problem(const std::string& what) { return absl::InvalidArgumentError(what); }

// An attribute under its newer name.
void Rename(OldNode& old, const std::string& from, const std::string& to) {
  const auto at = old.node.attributes.find(from);
  if (at == old.node.attributes.end()) return;
  OnnxAttribute attribute = at->second;
  old.node.attributes.erase(at);
  old.node.attributes[to] = std::move(attribute);
}

// The numbers of an input that must be known, whatever its type is.
absl::StatusOr<std::vector<int64_t>> KnownInts(const OldNode& old, size_t i) {
  const NDArray* value = old.g.ValueOf(old.inputs[i].tensor);
  if (value == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("input ", i, " that is not known when the model is compiled is not supported"));
  }
  std::vector<int64_t> ints(value->num_elements());
  for (size_t k = 0; k < ints.size(); ++k)
    ints[k] = ConvertScalar(DType::kI64, value->dtype, value->Get(static_cast<int64_t>(k))).i;
  return ints;
}

// With `broadcast`, the axes of input 1 stand at those of input 0 from `axis` on, or at the last ones, and
// one element fits everywhere. Input 1 gets axes of extent 1 behind its own, so that the broadcasting of
// opset 7 does the same.
absl::Status AlignOperand(OldNode& old) {
  if (!old.Has(0) || !old.Has(1)) return absl::OkStatus();
  const std::vector<int64_t> a = old.Shape(0);
  std::vector<int64_t> b = old.Shape(1);
  if (old.Int("broadcast", 0) == 0) {
    if (a == b) return absl::OkStatus();
    return Problem(absl::StrCat("shapes ", ShapeText(a), " and ", ShapeText(b), " in opset ", old.opset,
                                " without broadcast = 1; expected one shape"));
  }
  const auto rank = static_cast<int64_t>(a.size()), count = static_cast<int64_t>(b.size());
  int64_t axis = old.Int("axis", rank - count);
  if (axis < 0 && old.Attribute("axis") != nullptr) axis += rank;
  bool fits = count <= rank;
  if (fits && old.inputs[1].tensor->num_elements() == 1) {
    b.clear();
  } else {
    fits = fits && axis >= 0 && axis <= rank - count;
    for (int64_t i = 0; fits && i < count; ++i) fits = b[i] == 1 || b[i] == a[axis + i];
    if (fits) b.resize(static_cast<size_t>(rank - axis), 1);
  }
  if (!fits) {
    return Problem(absl::StrCat("broadcasts ", ShapeText(old.Shape(1)), " to ", ShapeText(a), " at axis ",
                                axis, "; expected axes of the latter, in a row"));
  }
  old.PutInput(1, old.g.AddReshape(old.inputs[1].tensor, b), old.inputs[1].type);
  return absl::OkStatus();
}

// A slope for each channel; one alone is for all.
absl::Status AlignSlope(OldNode& old) {
  if (!old.Has(0) || !old.Has(1) || old.Shape(1).size() != 1 || old.Shape(0).size() < 3)
    return absl::OkStatus();
  std::vector<int64_t> shape(old.Shape(0).size() - 1, 1);
  shape[0] = old.Shape(1)[0];
  old.PutInput(1, old.g.AddReshape(old.inputs[1].tensor, shape), old.inputs[1].type);
  return absl::OkStatus();
}

absl::Status CheckGemm(OldNode& old) {
  if (old.Int("broadcast", 0) != 0 || !old.Has(2)) return absl::OkStatus();
  for (const size_t i : {0, 1}) {
    if (!old.Has(i) || old.Shape(i).size() != 2) return absl::OkStatus();
  }
  const std::vector<int64_t> shape = {old.Shape(0)[old.Int("transA", 0) != 0 ? 1 : 0],
                                      old.Shape(1)[old.Int("transB", 0) != 0 ? 0 : 1]};
  if (old.Shape(2) == shape) return absl::OkStatus();
  return Problem(absl::StrCat("adds ", TypeText(old.inputs[2]), " to ", ShapeText(shape), " in opset ",
                              old.opset, " without broadcast = 1; expected one shape"));
}

// The outputs tell whether a batch's own statistics are used.
absl::Status CheckBatchNorm(OldNode& old) {
  if (old.Int("is_test", 0) != 0 && old.node.outputs.size() > 1)
    return Problem("has outputs of statistics with is_test = 1; expected one output");
  return absl::OkStatus();
}

absl::Status CheckDropout(OldNode& old) {
  const OnnxAttribute* ratio = old.Attribute("ratio");
  if (old.Int("is_test", 0) != 0 || (ratio != nullptr && ratio->f == 0)) return absl::OkStatus();
  return absl::UnimplementedError("dropping elements at random, without is_test = 1, is not supported");
}

// The type's name becomes its number.
absl::Status NumberOfType(OldNode& old) {
  const OnnxAttribute* to = old.Attribute("to");
  if (to == nullptr || to->type == kIntAttribute || to->s.empty()) return absl::OkStatus();
  for (int type = kFloat; type <= kInt2; ++type) {
    if (ElementTypeName(type) != to->s) continue;
    old.Put("to", kIntAttribute).i = type;
    return absl::OkStatus();
  }
  return Problem(absl::StrCat("casts to `", to->s, "`; expected the name of a type"));
}

absl::Status ShapeFromAttribute(OldNode& old) {
  const OnnxAttribute* shape = old.Attribute("shape");
  if (shape == nullptr) return Problem("has no attribute shape; expected one");
  old.PutInput(1, old.g.Ints(shape->ints), kInt64);
  return absl::OkStatus();
}

absl::Status PadsFromPaddings(OldNode& old) {
  Rename(old, "paddings", "pads");
  return absl::OkStatus();
}

// Inputs: the tensor, how often it is repeated, and along which axis.
absl::Status RepeatsFromTiles(OldNode& old) {
  for (const size_t i : {0, 1, 2}) {
    if (!old.Has(i)) return Problem(absl::StrCat("has no input ", i, "; expected 3"));
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> tiles, KnownInts(old, 1));
  MYCC_ASSIGN_OR_RETURN(const std::vector<int64_t> axis, KnownInts(old, 2));
  std::vector<int64_t> repeats(old.Shape(0).size(), 1);
  const auto rank = static_cast<int64_t>(repeats.size());
  if (tiles.size() != 1 || axis.size() != 1 || axis[0] < -rank || axis[0] >= rank)
    return Problem(absl::StrCat("its tiles and axis are not one number each, for an axis of ",
                                TypeText(old.inputs[0]), "; expected them"));
  repeats[axis[0] < 0 ? axis[0] + rank : axis[0]] = tiles[0];
  old.inputs.resize(2);
  old.PutInput(1, old.g.Ints(repeats), kInt64);
  return absl::OkStatus();
}

absl::Status SplitFromInput(OldNode& old) {
  if (!old.Has(1)) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(std::vector<int64_t> parts, KnownInts(old, 1));
  old.Put("split", kIntsAttribute).ints = std::move(parts);
  old.inputs.resize(1);
  return absl::OkStatus();
}

// Scales of an image's height and width.
absl::Status ScalesFromSides(OldNode& old) {
  const OnnxAttribute *height = old.Attribute("height_scale"), *width = old.Attribute("width_scale");
  if (height == nullptr && width == nullptr) return absl::OkStatus();
  if (height == nullptr || width == nullptr)
    return Problem("has one of height_scale and width_scale; expected both");
  std::vector<double> scales = {1, 1, height->f, width->f};
  old.Put("scales", kFloatsAttribute).floats = std::move(scales);
  const OnnxAttribute* mode = old.Attribute("mode");
  if (mode != nullptr && mode->s == "bilinear") old.Put("mode", kStringAttribute).s = "linear";
  return absl::OkStatus();
}

absl::Status IntegerPower(OldNode& old) {
  const OnnxAttribute* p = old.Attribute("p");
  if (p == nullptr || p->type == kIntAttribute || p->f == 0) return absl::OkStatus();
  const double value = p->f;
  if (value != std::trunc(value) || std::abs(value) > 1024)
    return absl::UnimplementedError(absl::StrCat("p = ", value, " is not supported; expected an integer"));
  old.Put("p", kIntAttribute).i = static_cast<int64_t>(value);
  return absl::OkStatus();
}

// The defaults had fewer digits.
absl::Status OldSelu(OldNode& old) {
  if (old.Attribute("alpha") == nullptr) old.Put("alpha", kFloatAttribute).f = 1.6732f;
  if (old.Attribute("gamma") == nullptr) old.Put("gamma", kFloatAttribute).f = 1.0507f;
  return absl::OkStatus();
}

// The last opset of each form.
struct OldForm {
  const char* op;
  int64_t last_opset;
  absl::Status (*rewrite)(OldNode& old);
};

constexpr OldForm kOldForms[] = {
    {"Add", 6, AlignOperand},
    {"And", 6, AlignOperand},
    {"BatchNormalization", 6, CheckBatchNorm},
    {"Cast", 5, NumberOfType},
    {"Div", 6, AlignOperand},
    {"Dropout", 6, CheckDropout},
    {"Equal", 6, AlignOperand},
    {"Gemm", 6, CheckGemm},
    {"GlobalLpPool", 1, IntegerPower},
    {"Greater", 6, AlignOperand},
    {"Less", 6, AlignOperand},
    {"LpPool", 1, IntegerPower},
    {"Mul", 6, AlignOperand},
    {"Or", 6, AlignOperand},
    {"PRelu", 6, AlignSlope},
    {"Pad", 1, PadsFromPaddings},
    {"Pow", 6, AlignOperand},
    {"Reshape", 4, ShapeFromAttribute},
    {"Selu", 5, OldSelu},
    {"Split", 1, SplitFromInput},
    {"Sub", 6, AlignOperand},
    {"Tile", 5, RepeatsFromTiles},
    {"Upsample", 6, ScalesFromSides},
    {"Xor", 6, AlignOperand},
};

}  // namespace

absl::StatusOr<std::optional<OnnxNode>> InNewForm(const OnnxNode& node, int64_t opset, GraphBuilder* builder,
                                                  std::vector<TypedTensor>* inputs) {
  if (!node.domain.empty() || opset > 6) return std::optional<OnnxNode>();
  for (const OldForm& form : kOldForms) {
    if (node.op != form.op || opset > form.last_opset) continue;
    OnnxNode rewritten = node;
    OldNode old{opset, *builder, rewritten, *inputs};
    MYCC_RETURN_IF_ERROR(form.rewrite(old));
    return std::optional<OnnxNode>(std::move(rewritten));
  }
  return std::optional<OnnxNode>();
}

}  // namespace mycc::onnx

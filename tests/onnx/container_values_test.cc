// Sequences and optionals as inputs and outputs of a model.
#include "codegen/onnx/container_values.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeclaredValue DeclaredAs(const std::string& kind, const std::string& name = "x") {
  DeclaredValue value;
  value.name = name;
  value.kind = kind;
  value.type = kFloat;
  return value;
}

std::vector<std::string> NamesOf(const std::vector<const DeclaredValue*>& tensors) {
  std::vector<std::string> names;
  for (const DeclaredValue* tensor : tensors) {
    EXPECT_EQ(tensor->kind, "tensor");
    names.push_back(tensor->name);
  }
  return names;
}

// The names of the tensors of one input, or the error.
std::string TensorsOf(const std::string& kind, const OnnxOptions& options) {
  const DeclaredValue input = DeclaredAs(kind);
  const auto tensors = InputTensors::Of({&input}, options);
  if (!tensors.ok()) return std::string(tensors.status().message());
  std::string names = "tensors:";
  for (const std::string& name : NamesOf(tensors->tensors())) names += " " + name;
  return names;
}

OnnxOptions Shapes(const std::vector<std::string>& names) {
  OnnxOptions options;
  for (const std::string& name : names) options.shapes[name] = {2};
  return options;
}

OnnxOptions Form(OnnxForm form, OnnxOptions options = {}) {
  options.forms["x"] = form;
  return options;
}

TEST(InputTensorsTest, OptionsTellTheNumberOfElements) {
  EXPECT_EQ(TensorsOf("sequence", Shapes({"x[1]", "x[0]"})), "tensors: x[0] x[1]");
  OnnxOptions options = Shapes({"x[0]"});
  options.values["x[1]"] = [](const OnnxInput& input) { return NDArray::Zeros(input.dtype, {}); };
  EXPECT_EQ(TensorsOf("optional sequence", options), "tensors: x[0] x[1]");
  EXPECT_EQ(TensorsOf("sequence", Form(OnnxForm::kEmpty)), "tensors:");
  EXPECT_EQ(TensorsOf("optional sequence", Form(OnnxForm::kEmpty)), "tensors:");
  EXPECT_EQ(TensorsOf("optional sequence", Form(OnnxForm::kAbsent)), "tensors:");
}

TEST(InputTensorsTest, AnOptionalIsThereUnlessAnOptionSaysOtherwise) {
  EXPECT_EQ(TensorsOf("optional", {}), "tensors: x");
  EXPECT_EQ(TensorsOf("optional", Shapes({"x"})), "tensors: x");
  EXPECT_EQ(TensorsOf("optional", Form(OnnxForm::kAbsent)), "tensors:");
}

TEST(InputTensorsTest, JoinedAgain) {
  const DeclaredValue sequence = DeclaredAs("sequence", "s"), tensor = DeclaredAs("tensor", "t"),
                      absent = DeclaredAs("optional", "x"), last = DeclaredAs("optional", "u");
  const auto inputs = InputTensors::Of({&sequence, &tensor, &absent, &last},
                                       Form(OnnxForm::kAbsent, Shapes({"s[0]", "s[1]"})));
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(NamesOf(inputs->tensors()), ElementsAre("s[0]", "s[1]", "t", "u"));
  GraphBuilder builder("g");
  std::vector<TypedTensor> values;
  std::vector<DeclaredValue> declared;
  for (const DeclaredValue* one : inputs->tensors()) {
    declared.push_back(*one);
    values.push_back({builder.AddInput(one->name, DType::kF32, {2}), kFloat});
  }
  const std::vector<TypedTensor> flat = values;
  inputs->Join(&declared, &values);
  ASSERT_EQ(values.size(), 4);
  ASSERT_EQ(declared.size(), 4);
  EXPECT_EQ(declared[0].name, "s");
  EXPECT_EQ(TypeText(values[0]), "a sequence of 2");
  EXPECT_EQ(values[0].elements->at(1).tensor, flat[1].tensor);
  EXPECT_EQ(values[1].tensor, flat[2].tensor);
  EXPECT_TRUE(IsEmptyOptional(values[2]));
  EXPECT_EQ(values[3].tensor, flat[3].tensor);
}

TEST(InputTensorsTest, WhatIsRefused) {
  const DeclaredValue a = DeclaredAs("sequence", "a"), b = DeclaredAs("optional sequence", "b");
  EXPECT_EQ(InputTensors::Of({&a, &b}, {}).status().message(),
            "2 inputs are sequences of an unknown number of tensors; expected --shape NAME[0]=2x3 --shape "
            "NAME[1]=4 and so on, or --shape NAME=empty, for each\n"
            "  `a`: a sequence\n"
            "  `b`: an optional sequence, which --shape b=absent leaves out");
  EXPECT_EQ(TensorsOf("sequence", Shapes({"x[0]", "x[2]"})),
            "--shape x[2]: nothing is said of x[1]; expected a --shape or a --value of each element");
  EXPECT_THAT(TensorsOf("sequence", Shapes({"x[9999999]"})), HasSubstr("more than 4096 elements"));
  EXPECT_THAT(TensorsOf("sequence", Shapes({"x[9223372036854775807]"})),
              HasSubstr("more than 4096 elements"));
  EXPECT_EQ(TensorsOf("sequence", Shapes({"x"})),
            "--shape x: the input is of type sequence; expected --shape x[0]=..., one for each element");
  // Names of another form say nothing of the elements.
  for (const char* name : {"x[00]", "x[]", "x[0", "x[-1]", "x[0]]", "y[0]"})
    EXPECT_THAT(TensorsOf("sequence", Shapes({name})), HasSubstr("1 input is a sequence of an unknown"));
  EXPECT_EQ(TensorsOf("optional", Form(OnnxForm::kEmpty)),
            "--shape x=empty: the input is of type optional; expected a sequence");
  EXPECT_EQ(TensorsOf("tensor", Form(OnnxForm::kAbsent)),
            "--shape x=absent: the input is of type tensor; expected an optional");
  EXPECT_EQ(TensorsOf("sequence", Form(OnnxForm::kAbsent)),
            "--shape x=absent: the input is of type sequence; expected an optional");
  EXPECT_EQ(TensorsOf("sequence", Form(OnnxForm::kEmpty, Shapes({"x[0]"}))),
            "--shape x=empty: other options give the input's tensors; expected one of the two");
  EXPECT_EQ(InputTensors::Of({&a}, Form(OnnxForm::kEmpty)).status().message(),
            "--shape x: the model has no such input; expected a");
}

TEST(TakeApartOutputsTest, SequencesAreTheirElements) {
  GraphBuilder builder("g");
  const auto input = [&](const std::string& name) {
    return TypedTensor{builder.AddInput(name, DType::kF32, {2}), kFloat};
  };
  const auto sequence = [](std::vector<TypedTensor> elements) {
    return TypedTensor{nullptr, kFloat,
                       std::make_shared<const std::vector<TypedTensor>>(std::move(elements))};
  };
  std::vector<DeclaredValue> declared = {DeclaredAs("optional sequence", "s"), DeclaredAs("optional", "n"),
                                         DeclaredAs("sequence", "e"), DeclaredAs("optional", "t")};
  std::vector<TypedTensor> values = {sequence({input("a"), input("b")}), EmptyOptional(), sequence({}),
                                     input("c")};
  ASSERT_TRUE(TakeApartOutputs(builder, &declared, &values).ok());
  ASSERT_EQ(values.size(), 3);
  std::vector<std::string> names;
  for (const DeclaredValue& one : declared) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("s[0]", "s[1]", "t"));

  declared = {DeclaredAs("optional", "n")};
  values = {EmptyOptional()};
  EXPECT_EQ(TakeApartOutputs(builder, &declared, &values).message(),
            "output `n` is an empty optional, and a model without any tensor as an output is not supported");
  declared = {DeclaredAs("sequence", "s")};
  values = {sequence({{nullptr, kFloat, nullptr, input("parts").tensor}})};
  EXPECT_EQ(
      TakeApartOutputs(builder, &declared, &values).message(),
      "output `s[0]`: its shape is not known when the model is compiled; --value parts=... would fix it");
}

}  // namespace
}  // namespace mycc::onnx

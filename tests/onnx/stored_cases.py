"""The cases that the Python package onnx stores: a model each, with inputs and the outputs they must give."""

import pathlib
import re
import typing

import onnx
import onnx.backend.test
from onnx import numpy_helper

KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
FOLDER = pathlib.Path(onnx.backend.test.__file__).parent / "data"


class Case(typing.NamedTuple):
    kind: str
    name: str

    @property
    def folder(self):
        return FOLDER / self.kind / self.name

    @property
    def model_file(self):
        return self.folder / "model.onnx"

    def model(self):
        return onnx.load(self.model_file)

    def data_sets(self):
        return sorted(self.folder.glob("test_data_set_*"))


class Unusable(Exception):
    """A case whose inputs or outputs are no tensors; the text says which."""


def all_cases():
    return [Case(kind, path.name) for kind in KINDS for path in sorted((FOLDER / kind).iterdir()) if (path / "model.onnx").exists()]


def operator_of(case, model):
    """The operator that a case is about, which an expanded case has in its name alone; the kind of case where that is no operator's."""
    if case.kind != "node":
        return f"({case.kind})"
    base = re.sub(r"_expanded(_ver\d+)?$", "", case.name)
    if base != case.name and (FOLDER / case.kind / base / "model.onnx").exists():
        model = Case(case.kind, base).model()
    names = {f"{node.domain}.{node.op_type}".removeprefix("ai.onnx.").lstrip(".") for node in model.graph.node if node.op_type != "Constant"}
    return names.pop() if len(names) == 1 else "(several)"


def check_types(model):
    """Refuses what no DLTensor is."""
    for what, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            kind = value.type.WhichOneof("value").removesuffix("_type")
            if kind != "tensor":
                raise Unusable(f"an {what} of type {kind} is not supported")


def given_inputs(model):
    """The graph's inputs that a caller gives: those without an initializer."""
    initialized = {one.name for one in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


def read_tensors(folder, prefix):
    arrays = []
    while (path := folder / f"{prefix}_{len(arrays)}.pb").exists():
        arrays.append(numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())))
    return arrays


def given_arrays(model, data):
    """name -> the array that a data set has for each input."""
    return {value.name: array for value, array in zip(given_inputs(model), read_tensors(data, "input"), strict=True)}


def free_shapes(model, inputs):
    """name -> the shape in the data, of each input that has an extent without a number."""
    shapes = {}
    for value, array in zip(given_inputs(model), inputs):
        shape = value.type.tensor_type.shape
        declared = value.type.tensor_type.HasField("shape") and all(extent.HasField("dim_value") for extent in shape.dim)
        if not declared:
            shapes[value.name] = array.shape
    return shapes

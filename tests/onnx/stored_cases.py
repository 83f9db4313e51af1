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


def tensor_in(value_type):
    """The type of the tensors in a sequence or an optional; a tensor's own."""
    while (kind := value_type.WhichOneof("value")) in ("sequence_type", "optional_type"):
        value_type = getattr(value_type, kind).elem_type
    return value_type


def check_types(model):
    """Refuses what no DLTensor is."""
    for what, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            kind = tensor_in(value.type).WhichOneof("value").removesuffix("_type")
            if kind != "tensor":
                raise Unusable(f"an {what} of type {kind} is not supported")


def given_inputs(model):
    """The graph's inputs that a caller gives: those without an initializer."""
    initialized = {one.name for one in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


READERS = {"tensor_type": (onnx.TensorProto, numpy_helper.to_array), "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
           "optional_type": (onnx.OptionalProto, numpy_helper.to_optional)}


def read_values(folder, prefix, declared):
    """The array, the list or the None that a data set has for each input or output of a graph."""
    paths = [folder / f"{prefix}_{i}.pb" for i in range(len(declared))]
    if not all(path.exists() for path in paths) or (folder / f"{prefix}_{len(declared)}.pb").exists():
        raise ValueError(f"{folder} has not {len(declared)} files {prefix}_*.pb")
    values = []
    for path, value in zip(paths, declared):
        message, read = READERS[value.type.WhichOneof("value")]
        values.append(read(message.FromString(path.read_bytes())))
    return values


def tensors_of(declared, values):
    """name -> array, under the names that the tensors of sequences have as arguments of a library."""
    tensors = {}
    for one, value in zip(declared, values, strict=True):
        if isinstance(value, list):
            tensors |= {f"{one.name}[{i}]": element for i, element in enumerate(value)}
        elif value is not None:
            tensors[one.name] = value
    return tensors


def given_arrays(model, data):
    """name -> the array that a data set has for each tensor of the inputs."""
    declared = given_inputs(model)
    return tensors_of(declared, read_values(data, "input", declared))


def expected_arrays(model, data):
    """The same for the outputs."""
    return tensors_of(model.graph.output, read_values(data, "output", model.graph.output))


def is_fixed(value):
    tensor = tensor_in(value.type).tensor_type
    return tensor.HasField("shape") and all(extent.HasField("dim_value") for extent in tensor.shape.dim)


def free_shapes(model, data):
    """name -> the word of --shape, of each input that is not a tensor of a shape that the model declares."""
    declared, words = given_inputs(model), {}
    for value, given in zip(declared, read_values(data, "input", declared), strict=True):
        if given is None:
            words[value.name] = "absent"
        elif isinstance(given, list):
            words |= {name: word_of(array) for name, array in tensors_of([value], [given]).items()} or {value.name: "empty"}
        elif not is_fixed(value):
            words[value.name] = word_of(given)
    return words


def word_of(array):
    return "x".join(map(str, array.shape)) or "scalar"

"""Writes the seeds of import_onnx_fuzz: small models of every family of operators. python3 write_model_seeds.py [FOLDER]

The folder is models beside this file unless one is given. A seed that is there already is overwritten; its bytes depend on the version of
the package onnx alone.
"""

import pathlib
import sys

import numpy
from onnx import TensorProto, helper, numpy_helper

OPSETS = [helper.make_opsetid("", 20)]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def ints(name, *values):
    return numpy_helper.from_array(numpy.array(values, numpy.int64), name)


def floats(name, *shape):
    return numpy_helper.from_array(numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape) / 8, name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, weights=(), functions=(), opsets=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[*OPSETS, *opsets], functions=functions, producer_name="").SerializeToString()


def elementwise():
    nodes = [node("Add", "x w", "a"), node("Mul", "a a", "b"), node("Sigmoid", "b", "c"), node("Clip", "c lo", "d"),
             node("LeakyRelu", "d", "e", alpha=0.5), node("Pow", "e two", "f"), node("Less", "f x", "g"),
             node("Where", "g x f", "h"), node("Cast", "h", "y", to=TensorProto.FLOAT16)]
    weights = [floats("w", 3), floats("lo"), floats("two", 1)]
    return model(nodes, [value("x", [2, 3])], [value("y", [2, 3], TensorProto.FLOAT16)], weights)


def network():
    nodes = [node("Conv", "x k b", "a", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "a", "c"),
             node("MaxPool", "c", "d", kernel_shape=[2, 2]), node("GlobalAveragePool", "d", "e"), node("Flatten", "e", "f"),
             node("Gemm", "f m", "g", transB=1, alpha=0.5), node("Softmax", "g", "y")]
    return model(nodes, [value("x", [1, 2, 6, 6])], [value("y", [1, 4])], [floats("k", 3, 2, 3, 3), floats("b", 3), floats("m", 4, 3)])


def attention():
    nodes = [node("MatMul", "x q", "a"), node("Transpose", "a", "t", perm=[0, 2, 1]), node("MatMul", "a t", "s"), node("Softmax", "s", "p", axis=-1),
             node("MatMul", "p a", "o"), node("LayerNormalization", "o g", "y")]
    return model(nodes, [value("x", [1, 3, 4])], [value("y", [1, 3, 4])], [floats("q", 4, 4), floats("g", 4)])


def shapes():
    nodes = [node("Shape", "x", "s"), node("Gather", "s first", "n"), node("Concat", "n minus", "t", axis=0),
             node("Reshape", "x t", "r"), node("Slice", "r from to", "c"), node("Split", "c", "d e", axis=0, num_outputs=2),
             node("Concat", "e d", "f", axis=0), node("Expand", "f size", "y")]
    weights = [ints("first", 0), ints("minus", -1), ints("from", 0), ints("to", 2), ints("size", 2, 12)]
    return model(nodes, [value("x", [2, 3, 4])], [value("y", [2, 12])], weights)


def reductions():
    nodes = [node("ReduceMean", "x axes", "a"), node("ReduceMax", "x axes", "b", keepdims=0), node("ArgMax", "x", "i", axis=1), node("CumSum", "x one", "c"),
             node("TopK", "x k", "v at"), node("Sub", "x a", "y")]
    return model(nodes, [value("x", [2, 3])], [value("y", [2, 3]), value("i", [2, 1], INT64), value("v", [2, 1])],
                 [ints("axes", 1), ints("k", 1), numpy_helper.from_array(numpy.array(1), "one")])


def moves():
    nodes = [node("Pad", "x pads", "a"), helper.make_node("Resize", ["a", "", "scales"], ["b"], mode="linear"),
             node("GatherElements", "b at", "c", axis=3), node("ScatterND", "c where what", "d"), node("Tile", "d times", "y")]
    at = numpy_helper.from_array(numpy.zeros((1, 1, 8, 2), numpy.int64), "at")
    where = numpy_helper.from_array(numpy.zeros((1, 4), numpy.int64), "where")
    scales = numpy_helper.from_array(numpy.array([1, 1, 2, 2], numpy.float32), "scales")
    return model(nodes, [value("x", [1, 1, 2, 2])], [value("y", [1, 1, 8, 4])],
                 [ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), scales, at, where, floats("what", 1), ints("times", 1, 1, 1, 2)])


def quantized():
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), node("DynamicQuantizeLinear", "d", "u v w"),
             node("MatMulInteger", "u m w", "i"), node("Cast", "i", "y", to=FLOAT)]
    zero = numpy_helper.from_array(numpy.array(3, numpy.uint8), "z")
    matrix = numpy_helper.from_array(numpy.ones((3, 2), numpy.int8), "m")
    scale = numpy_helper.from_array(numpy.array(0.5, numpy.float32), "s")
    return model(nodes, [value("x", [2, 3])], [value("y", [2, 2])], [scale, zero, matrix])


def branches():
    then = helper.make_graph([node("Relu", "x", "t")], "then", [], [value("t", [2])])
    otherwise = helper.make_graph([node("Neg", "x", "e")], "else", [], [value("e", [2])])
    body = helper.make_graph([node("Add", "v x", "next"), node("Identity", "c", "again")], "body",
                             [value("i", [], INT64), value("c", [], BOOL), value("v", [2])], [value("again", [], BOOL), value("next", [2])])
    true = numpy_helper.from_array(numpy.array(True), "true")
    nodes = [node("If", "true", "a", then_branch=then, else_branch=otherwise), helper.make_node("Loop", ["three", "", "a"], ["y"], body=body)]
    return model(nodes, [value("x", [2])], [value("y", [2])], [true, numpy_helper.from_array(numpy.array(3), "three")])


def functions():
    inner = [helper.make_node("LeakyRelu", ["p"], ["q"])]
    inner[0].attribute.add(name="alpha", ref_attr_name="slope", type=1)
    function = helper.make_function("f", "Twice", ["p"], ["r"], [*inner, node("Add", "q q", "r")], OPSETS, ["slope"])
    nodes = [helper.make_node("Twice", ["x"], ["a"], domain="f", slope=0.25), helper.make_node("Twice", ["a"], ["y"], domain="f")]
    return model(nodes, [value("x", [2])], [value("y", [2])], functions=[function], opsets=[helper.make_opsetid("f", 1)])


def constants():
    """A tensor of every type that is read, in fields or in raw bytes."""
    skipped = {TensorProto.UINT16, TensorProto.INT16, TensorProto.STRING, TensorProto.UINT32, TensorProto.UINT64, TensorProto.COMPLEX64, TensorProto.COMPLEX128}
    fields = {TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data", TensorProto.INT64: "int64_data"}
    packed = {TensorProto.UINT4, TensorProto.INT4, TensorProto.FLOAT4E2M1, TensorProto.UINT2, TensorProto.INT2}
    nodes, outputs, weights = [], [], []
    for kind in sorted(set(range(1, TensorProto.INT2 + 1)) - skipped):
        tensor = TensorProto(name=f"t{kind}", data_type=kind, dims=[2])
        if kind in packed and kind % 2:
            tensor.raw_data = b"\x21"
        else:
            getattr(tensor, fields.get(kind, "int32_data")).extend([1] if kind in packed else [1, 0])
        weights.append(tensor)
        nodes.append(node("Cast", f"t{kind}", f"c{kind}", to=FLOAT))
        outputs.append(value(f"c{kind}", [2]))
    return model(nodes, [], outputs, weights)


def external():
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "w.bin"), ("offset", "8"), ("length", "8")):
        tensor.external_data.add(key=key, value=text)
    return model([node("Add", "x w", "y")], [value("x", [2])], [value("y", [2])], [tensor])


def recurrent():
    nodes = [node("LSTM", "x w r", "y h", hidden_size=2)]
    return model(nodes, [value("x", [2, 1, 3])], [value("y", [2, 1, 1, 2])], [floats("w", 1, 8, 3), floats("r", 1, 8, 2)])


SEEDS = (elementwise, network, attention, shapes, reductions, moves, quantized, branches, functions, constants, external, recurrent)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models"
    folder.mkdir(exist_ok=True)
    for seed in SEEDS:
        (folder / f"{seed.__name__}.onnx").write_bytes(seed())


if __name__ == "__main__":
    main()

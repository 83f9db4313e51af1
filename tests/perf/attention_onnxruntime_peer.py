"""ONNX Runtime's attention on a CPU: a process like cpu_newest_peer.py, for specifications of the family `attention` in f32.

python3 attention_onnxruntime_peer.py SPEC FOLDER [SECONDS]

The operators are ONNX's Attention, over [batch, head, position, number] as our workloads, and ONNX Runtime's MultiHeadAttention, over [batch,
position, head and number]; its inputs are brought into this order once, outside of the timing.
"""

import math
import os
import pathlib
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper
from peer_process import median_milliseconds, parse, row_difference

MICROSOFT = "com.microsoft"


def positions_first(tensor):
    """[batch, position, head and number]."""
    batch, heads, length, d = tensor.shape
    return numpy.ascontiguousarray(tensor.transpose(0, 2, 1, 3).reshape(batch, length, heads * d))


def heads_first(tensor, heads):
    batch, length, width = tensor.shape
    return tensor.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def model_of(node, shapes, output_shape):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in [*zip(node.input, shapes), (node.output[0], output_shape)]]
    graph = helper.make_graph([node], "attention", values[:-1], values[-1:])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10
    return model


def ways(heads, causal, tensors):
    """Each way's name, node, inputs, and the function that gives its result our order."""
    yield ("attention", helper.make_node("Attention", ["q", "k", "v"], ["o"], is_causal=causal), tensors, lambda result: result)
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain=MICROSOFT, num_heads=heads, unidirectional=causal)
    yield "multi_head_attention", node, [positions_first(tensor) for tensor in tensors], lambda result: heads_first(result, heads)


def call_of(model, inputs, output):
    """A call of a model whose arguments are in place."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "2")), 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "attention.onnx"
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in zip("qkv", inputs):
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output("o", onnxruntime.OrtValue.ortvalue_from_numpy(output))
    return lambda: session.run_with_iobinding(binding)


def main(spec, folder, seconds="1.2"):
    _, shape = parse(spec)
    if shape["x"] != "f32":
        print(f"onnxruntime: has no attention in {shape['x']} on a CPU", file=sys.stderr)
        return
    queries = shape["batch"], shape["heads"], shape["queries"], shape["d"]
    keys = shape["batch"], shape["heads"], shape["keys"], shape["d"]
    read = lambda index, extents: numpy.fromfile(pathlib.Path(folder) / str(index), numpy.float32, math.prod(extents)).reshape(extents)
    tensors, ours = [read(index, queries if index == 0 else keys) for index in range(3)], read(3, queries).astype(numpy.float64)
    for way, node, inputs, restore in ways(shape["heads"], shape["causal"], tensors):
        output = numpy.empty(inputs[0].shape, numpy.float32)
        call = call_of(model_of(node, [one.shape for one in inputs], output.shape), inputs, output)
        call()
        difference = row_difference(ours, restore(output).astype(numpy.float64))
        print(f"{spec} onnxruntime.{way} {median_milliseconds(call, float(seconds)):.6f}")
        print(f"{spec} onnxruntime.{way}.difference {difference:.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])

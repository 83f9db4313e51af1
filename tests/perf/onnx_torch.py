"""An ONNX model as a PyTorch module: each node as the function of PyTorch that does the same, so that torch.compile sees the model as it is.

It knows the operators of common networks, and says which one it lacks. Weights and numbers that are known move to the device once.
"""

import numpy
import onnx
import torch
import torch.nn.functional as functional
from onnx import numpy_helper


class UnknownOperator(Exception):
    """The text names the node's operator, or the form of it that is missing."""


def attributes_of(node):
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


def ints(tensor):
    return [int(number) for number in numpy.asarray(tensor).reshape(-1)]


def padded(x, pads, value=0.0):
    """ONNX's pads, all beginnings and then all ends, in the order of torch.nn.functional.pad."""
    half = len(pads) // 2
    pairs = [number for i in reversed(range(half)) for number in (pads[i], pads[half + i])]
    return functional.pad(x, pairs, value=value) if any(pairs) else x


def same_pads(x, kernel, strides, dilations, upper):
    totals = [max(0, ((size + stride - 1) // stride - 1) * stride + (k - 1) * dilation + 1 - size)
              for size, k, stride, dilation in zip(x.shape[2:], kernel, strides, dilations)]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return small + large if upper else large + small


def window(x, attributes, kernel):
    rank = len(kernel)
    strides, dilations = list(attributes.get("strides", [1] * rank)), list(attributes.get("dilations", [1] * rank))
    pads = list(attributes.get("pads", [0] * 2 * rank))
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    if mode.startswith("SAME"):
        pads = same_pads(x, kernel, strides, dilations, mode == "SAME_UPPER")
    return strides, dilations, pads


def convolution(x, w, b=None, **attributes):
    strides, dilations, pads = window(x, attributes, w.shape[2:])
    function = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[w.dim() - 2]
    half = len(pads) // 2
    if pads[:half] == pads[half:]:
        return function(x, w, b, strides, pads[:half], dilations, attributes.get("group", 1))
    return function(padded(x, pads), w, b, strides, 0, dilations, attributes.get("group", 1))


def transposed_convolution(x, w, b=None, **attributes):
    if "output_shape" in attributes or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise UnknownOperator("ConvTranspose with output_shape or auto_pad has no function of PyTorch here")
    strides, dilations, pads = window(x, attributes, w.shape[2:])
    half = len(pads) // 2
    common = [min(begin, end) for begin, end in zip(pads[:half], pads[half:])]
    result = functional.conv_transpose2d(x, w, b, strides, common, list(attributes.get("output_padding", [0] * half)), attributes.get("group", 1), dilations)
    for axis, (begin, end, both) in enumerate(zip(pads[:half], pads[half:], common), start=2):  # what one side has more
        result = result.narrow(axis, begin - both, result.shape[axis] - (begin - both) - (end - both))
    return result


def max_pool(x, **attributes):
    kernel = list(attributes["kernel_shape"])
    strides, dilations, pads = window(x, attributes, kernel)
    return functional.max_pool2d(padded(x, pads, -float("inf")), kernel, strides, 0, dilations, bool(attributes.get("ceil_mode", 0)))


def average_pool(x, **attributes):
    kernel = list(attributes["kernel_shape"])
    strides, _, pads = window(x, attributes, kernel)
    ceil, with_pads = bool(attributes.get("ceil_mode", 0)), bool(attributes.get("count_include_pad", 0))
    if pads[:2] == pads[2:]:
        return functional.avg_pool2d(x, kernel, strides, pads[:2], ceil, with_pads)
    result = functional.avg_pool2d(padded(x, pads), kernel, strides, 0, ceil)
    if with_pads:
        return result
    shares = functional.avg_pool2d(padded(torch.ones_like(x[:1, :1]), pads), kernel, strides, 0, ceil)  # of elements that are no pads
    return result / shares


def gemm(a, b, c=None, **attributes):
    a, b = a.T if attributes.get("transA") else a, b.T if attributes.get("transB") else b
    product = a @ b * attributes.get("alpha", 1.0) if attributes.get("alpha", 1.0) != 1 else a @ b
    return product if c is None else product + c * attributes.get("beta", 1.0) if attributes.get("beta", 1.0) != 1 else product + c


def reshape(x, shape, **_):
    return x.reshape([x.shape[i] if extent == 0 else extent for i, extent in enumerate(ints(shape))])


def mean(x, axes=None, **attributes):
    axes = list(attributes.get("axes", ints(axes) if axes is not None else range(x.dim())))
    return x.mean(axes, keepdim=bool(attributes.get("keepdims", 1)))


def slices(x, starts, ends, axes=None, steps=None):
    starts, ends = ints(starts), ints(ends)
    axes = ints(axes) if axes is not None else range(len(starts))
    index = [slice(None)] * x.dim()
    for axis, start, end, step in zip(axes, starts, ends, ints(steps) if steps is not None else [1] * len(starts)):
        index[axis] = slice(start, min(end, 1 << 40), step)
    return x[tuple(index)]


def normalize_layer(x, scale, bias=None, **attributes):
    axis = attributes.get("axis", -1) % x.dim()
    return functional.layer_norm(x, x.shape[axis:], scale, bias, attributes.get("epsilon", 1e-5))


def resize(x, *inputs, **attributes):
    mode, places, rounding = (attributes.get(name, default).decode() for name, default in (
        ("mode", b"nearest"), ("coordinate_transformation_mode", b"half_pixel"), ("nearest_mode", b"round_prefer_floor")))
    forms = {("nearest", "asymmetric", "floor"): {"mode": "nearest"}, ("linear", "half_pixel"): {"mode": "bilinear"},
             ("linear", "pytorch_half_pixel"): {"mode": "bilinear"}, ("linear", "align_corners"): {"mode": "bilinear", "align_corners": True}}
    form = (mode, places, rounding) if mode == "nearest" else (mode, places)
    if form not in forms:
        raise UnknownOperator(f"Resize of the form {', '.join(form)} has no function of PyTorch here")
    if len(inputs) > 2 and inputs[2] is not None:
        return functional.interpolate(x, size=ints(inputs[2])[2:], **forms[form])
    return functional.interpolate(x, scale_factor=[float(one) for one in numpy.asarray(inputs[1])][2:], **forms[form])


def cast(x, to, **_):
    return x.to(torch.from_numpy(numpy.zeros(0, onnx.helper.tensor_dtype_to_np_dtype(to))).dtype)


def gelu(x, **attributes):
    return functional.gelu(x, approximate=attributes.get("approximate", b"none").decode())


def clip(x, low=None, high=None, **attributes):
    return torch.clamp(x, low if low is not None else attributes.get("min"), high if high is not None else attributes.get("max"))


def gather(x, index, axis=0):
    return x[(slice(None),) * (axis % x.dim()) + (index,)]


FUNCTIONS = {
    "Abs": torch.abs, "Add": torch.add, "AveragePool": average_pool, "Cast": cast, "Clip": clip, "Conv": convolution, "Cos": torch.cos,
    "BatchNormalization": lambda x, s, b, m, v, epsilon=1e-5, **_: functional.batch_norm(x, m, v, s, b, False, 0.0, epsilon),
    "Concat": lambda *x, axis: torch.cat(x, axis), "ConvTranspose": transposed_convolution, "Div": torch.div, "Erf": torch.erf, "Equal": torch.eq,
    "Exp": torch.exp, "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, ints(shape))), "Flatten": lambda x, axis=1: x.reshape(
        [int(numpy.prod(x.shape[:axis], dtype=numpy.int64)), -1]), "Gather": gather, "Gelu": gelu, "Gemm": gemm,
    "GlobalAveragePool": lambda x: x.mean(list(range(2, x.dim())), keepdim=True),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: torch.clamp(x * alpha + beta, 0, 1), "HardSwish": functional.hardswish, "Identity": lambda x: x,
    "LayerNormalization": normalize_layer, "LeakyRelu": lambda x, alpha=0.01: functional.leaky_relu(x, alpha), "Log": torch.log,
    "MatMul": torch.matmul, "MaxPool": max_pool, "Mul": torch.mul, "Neg": torch.neg, "Pow": torch.pow, "ReduceMean": mean, "Relu": torch.relu,
    "Reshape": reshape, "Resize": resize, "Sigmoid": torch.sigmoid, "Sin": torch.sin, "Slice": slices, "Softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "Split": lambda x, sizes=None, axis=0, **attributes: torch.split(x, list(attributes.get("split", ints(sizes) if sizes is not None else [])), axis),
    "Sqrt": torch.sqrt, "Squeeze": lambda x, axes=None, **attributes: x.squeeze(tuple(attributes.get("axes", ints(axes) if axes is not None else ()))),
    "Sub": torch.sub, "Tanh": torch.tanh, "Transpose": lambda x, perm=None: x.permute(perm or list(reversed(range(x.dim())))),
    "Unsqueeze": lambda x, axes=None, **attributes: x.reshape(
        numpy.expand_dims(numpy.empty(tuple(x.shape)), tuple(attributes.get("axes", ints(axes) if axes is not None else ()))).shape),
    "Where": torch.where,
}
# Inputs that say how, not what: their values are read when the model is compiled.
NUMBERS = {"Reshape": (1,), "ReduceMean": (1,), "Slice": (1, 2, 3, 4), "Resize": (1, 2, 3), "Expand": (1,), "Split": (1,), "Squeeze": (1,), "Unsqueeze": (1,)}


class OnnxModule(torch.nn.Module):
    """One input after the other, as the graph declares them; the outputs as a tuple. `inputs` are examples: what follows from their shapes is
    computed once, so that no arithmetic on shapes is left."""

    def __init__(self, path, inputs, device="cuda"):
        super().__init__()
        graph = onnx.load(path).graph
        self.known = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        self.inputs = [one.name for one in graph.input if one.name not in self.known]
        self.output_names = [one.name for one in graph.output]
        self.nodes, self.weights = [], {}
        values = dict(zip(self.inputs, inputs, strict=True))
        for node in graph.node:
            self.add(node, values, device)
        self.weights |= {name: torch.from_numpy(numpy.array(self.known[name])).to(device) for name in self.output_names if name in self.known}

    def add(self, node, values, device):
        """Computes what is known; other nodes are kept, and run on the example."""
        attributes = attributes_of(node)
        if node.op_type == "Constant":
            self.known[node.output[0]] = numpy_helper.to_array(attributes["value"])
        elif node.op_type == "Shape":
            shape = tuple(self.array_or(values, node.input[0]).shape)
            self.known[node.output[0]] = numpy.array(shape[attributes.get("start", 0):attributes.get("end")], numpy.int64)
        elif node.op_type not in FUNCTIONS:
            raise UnknownOperator(f"node `{node.name}`: operator {node.op_type} has no function of PyTorch here")
        elif all(not name or name in self.known for name in node.input):
            arguments = [None if not name else self.known[name] if i in NUMBERS.get(node.op_type, ()) else torch.from_numpy(numpy.array(self.known[name]))
                         for i, name in enumerate(node.input)]
            results = FUNCTIONS[node.op_type](*arguments, **attributes)
            for name, result in zip(node.output, results if isinstance(results, tuple) else (results,)):
                self.known[name] = result.numpy()
        else:
            for i, name in enumerate(node.input):
                if name in self.known and i not in NUMBERS.get(node.op_type, ()) and name not in self.weights:
                    self.weights[name] = torch.from_numpy(numpy.array(self.known[name])).to(device)
            self.nodes.append((node.op_type, list(node.input), list(node.output), attributes))
            with torch.no_grad():
                self.run(self.nodes[-1], values)

    def array_or(self, values, name):
        return self.known[name] if name in self.known else values[name]

    def run(self, node, values):
        op, inputs, outputs, attributes = node
        numbers = NUMBERS.get(op, ())
        arguments = [None if not name else self.known[name] if i in numbers else self.weights[name] if name in self.weights else values[name]
                     for i, name in enumerate(inputs)]
        results = FUNCTIONS[op](*arguments, **attributes)
        for name, result in zip(outputs, results if isinstance(results, tuple) else (results,)):
            values[name] = result

    def forward(self, *given):
        values = dict(zip(self.inputs, given, strict=True))
        for node in self.nodes:
            self.run(node, values)
        return tuple(self.weights[name] if name in self.weights else values[name] for name in self.output_names)

"""PyTorch's ways of computing one workload, the newest oneDNN and MKL among them: a process like peers_cpu, with the same arguments but the
library's name, and the same lines.

python3 cpu_newest_peer.py SPEC FOLDER [SECONDS]

Weights are packed ahead where PyTorch can (oneDNN's layouts, and MKL's), images are channels_last in memory where the workload's are. The
fastest way counts. bf16 results are rounded to bf16 where PyTorch gives no others: a little less work than ours.
"""

import math
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")  # of a PyTorch without NumPy, which is not used here

import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from peer_process import median_milliseconds, parse  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8, "u8": torch.uint8}


class Data:
    """The tensors of a folder, in order, and then our result."""

    def __init__(self, folder):
        self.folder, self.next = pathlib.Path(folder), 0

    def tensor(self, dtype, *shape):
        count = math.prod(shape)
        result = torch.from_file(str(self.folder / str(self.next)), shared=False, size=count, dtype=dtype).clone().reshape(shape)
        self.next += 1
        return result

    def difference(self, result, dtype):
        """As peer_data.h has it."""
        ours = self.tensor(dtype, *result.shape).double()
        self.next -= 1
        result = result.double()
        size = torch.clamp(result.abs(), min=max(float(result.square().mean().sqrt()), sys.float_info.min))
        apart = float(((result - ours).abs() / size).max())
        return math.inf if math.isnan(apart) else apart


def where_it_can(ways):
    """The ways of a generator, none when PyTorch or this CPU cannot prepare them."""
    try:
        yield from ways
    except (AttributeError, RuntimeError) as error:
        print(f"{ways.__name__}: {str(error).splitlines()[0]}", file=sys.stderr)


def gemm(data, m, n, k, a, b, transposed, bias):
    x = data.tensor(TYPES[a], m, k)
    w = data.tensor(TYPES[b], n, k) if transposed else data.tensor(TYPES[b], k, n).t().contiguous()  # [n,k], as PyTorch has weights
    shift = data.tensor(torch.float32, n) if bias else None
    if a == "u8":
        yield from where_it_can(quantized_linear(x, w))
    elif a == "i8":
        yield from integer_products(x, w)
    else:
        yield from plain_products(x, w, shift)
        yield from where_it_can(onednn_linear(x, w, shift))
        yield from where_it_can(mkl_linear(x, w, shift))


def plain_products(x, w, shift):
    if shift is not None:
        yield "linear", lambda: functional.linear(x, w, shift)
        return
    rows, result = w.t().contiguous(), torch.empty(x.shape[0], w.shape[0], dtype=x.dtype)
    yield "mm", lambda: torch.mm(x, rows, out=result)


def onednn_linear(x, w, shift):
    packed = torch.ops.mkldnn._reorder_linear_weight(w, x.shape[0])
    yield "onednn", lambda: torch.ops.mkldnn._linear_pointwise(x, packed, shift, "none", [], "")


def mkl_linear(x, w, shift):
    if x.dtype == torch.float32 and torch.backends.mkl.is_available():
        packed = torch.ops.mkl._mkl_reorder_linear_weight(w, x.shape[0])
        yield "mkl", lambda: torch.ops.mkl._mkl_linear(x, packed, w, shift, x.shape[0])


def integer_products(x, w):
    rows, columns = w.t().contiguous(), w.t()
    yield "int_mm.rows", lambda: torch._int_mm(x, rows)
    yield "int_mm.columns", lambda: torch._int_mm(x, columns)


def quantized_linear(x, w):
    """With scales of one: f32 results, exact up to 2^24."""
    packed, one, zero = torch.ops.onednn.qlinear_prepack(w, list(x.shape)), torch.ones(1), torch.zeros(1, dtype=torch.int32)
    yield "qlinear", lambda: torch.ops.onednn.qlinear_pointwise(x, 1.0, 0, packed, one, zero, None, 1.0, 0, torch.float32, "none", [], "")


def bmm(data, batch, m, n, k):
    a, b = data.tensor(torch.float32, batch, m, k), data.tensor(torch.float32, batch, k, n)
    result = torch.empty(batch, m, n)
    yield "bmm", lambda: torch.bmm(a, b, out=result)


def images(data, dtype, n, c, h, w, layout):
    """Images as PyTorch names their dimensions, [n,c,h,w], in the memory that they have."""
    if layout == "nhwc":
        return data.tensor(dtype, n, h, w, c).permute(0, 3, 1, 2)
    return data.tensor(dtype, n, c, h, w)


def conv(data, n, h, w, c, k, kernel, stride, dilation, pad, groups, x, weights, layout, epilogue):
    if layout == "blocked" or x == "i8":
        return  # PyTorch has no such tensors, and no such convolution
    source = images(data, TYPES[x], n, c, h, w, layout)
    kernels = data.tensor(TYPES[weights], k, c // groups, kernel, kernel)
    geometry = [pad, pad], [stride, stride], [dilation, dilation], groups
    if x == "u8":
        yield from where_it_can(quantized_conv(source, kernels, *geometry))
        return
    shift = data.tensor(torch.float32, k).to(source.dtype)
    last = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    kernels = kernels.to(memory_format=last)

    def plain():
        return functional.conv2d(source, kernels, shift, stride, pad, dilation, groups)

    if epilogue == "bias_add_relu":
        added = images(data, torch.float32, *plain().shape, layout)
        yield "conv2d", lambda: plain().add_(added).relu_()
        return
    yield "conv2d", (lambda: plain().relu_()) if epilogue == "bias_relu" else plain
    yield from where_it_can(onednn_conv(source, kernels, shift, *geometry, "relu" if epilogue == "bias_relu" else "none"))


def onednn_conv(source, kernels, shift, pads, strides, dilations, groups, epilogue):
    packed = torch.ops.mkldnn._reorder_convolution_weight(kernels, pads, strides, dilations, groups, list(source.shape))
    yield "onednn", lambda: torch.ops.mkldnn._convolution_pointwise(source, packed, shift, pads, strides, dilations, groups, epilogue, [], "")


def quantized_conv(source, kernels, pads, strides, dilations, groups):
    ones, zeros = torch.ones(kernels.shape[0]), torch.zeros(kernels.shape[0], dtype=torch.int32)
    packed = torch.ops.onednn.qconv_prepack(kernels, ones, 1.0, 0, strides, pads, dilations, groups, list(source.shape))
    yield "qconv", lambda: torch.ops.onednn.qconv_pointwise(source, 1.0, 0, packed, ones, zeros, None, strides, pads, dilations, groups, 1.0, 0,
                                                           torch.float32, "none", [], "")


def max_pool(data, n, h, w, c, kernel, stride, pad):
    source = images(data, torch.float32, n, c, h, w, "nhwc")
    yield "max_pool2d", lambda: functional.max_pool2d(source, kernel, stride, pad)


def average_all(data, n, h, w, c):
    source = images(data, torch.float32, n, c, h, w, "nhwc")
    yield "mean", lambda: source.mean((2, 3))


def softmax(data, m, n):
    x, result = data.tensor(torch.float32, m, n), torch.empty(m, n)
    yield "softmax", lambda: torch.softmax(x, -1, out=result)


def layernorm(data, m, n):
    x, scale, shift = data.tensor(torch.float32, m, n), data.tensor(torch.float32, n), data.tensor(torch.float32, n)
    yield "layer_norm", lambda: functional.layer_norm(x, (n,), scale, shift, 1e-5)


def transpose(data, m, n):
    x, result = data.tensor(torch.float32, m, n), torch.empty(n, m)
    yield "copy", lambda: result.copy_(x.t())


def gelu(data, m, n):
    x, result = data.tensor(torch.float32, m, n), torch.empty(m, n)
    yield "gelu", lambda: torch._C._nn.gelu(x, approximate="tanh", out=result)


def chain(data, m, n):
    x, result = data.tensor(torch.float32, m, n), torch.empty(m, n)
    yield "operators", lambda: torch.clamp(x, min=0, out=result).mul_(2).add_(1).sigmoid_()


FAMILIES = {function.__name__: function for function in
            (gemm, bmm, conv, max_pool, average_all, softmax, layernorm, transpose, gelu, chain)}


def as_declared(y, family, arguments):
    """Results of images with their channels last, where the workload's are."""
    return y.permute(0, 2, 3, 1) if y.dim() == 4 and arguments.get("layout", "nhwc") == "nhwc" else y


def main(spec, folder, seconds="1.2"):
    family, arguments = parse(spec)
    ours = torch.int32 if "i8" in arguments.values() else torch.float32
    data = Data(folder)
    with torch.no_grad():
        for way, call in FAMILIES[family](data, **arguments):
            try:
                result = as_declared(call(), family, arguments)
            except RuntimeError as error:  # this way has no such case: a shape or a type that it does not take, or a CPU
                print(f"{way}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            print(f"{spec} torch.{way} {median_milliseconds(call, float(seconds)):.6f}")
            print(f"{spec} torch.{way}.difference {data.difference(result, ours):.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])

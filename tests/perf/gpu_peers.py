"""The computations of gpu_workloads.py in PyTorch: what its users call, so what the vendor's libraries and PyTorch's own kernels do.

A peer takes the tensors that our function takes. Views (images in PyTorch's order of dimensions, in the same memory) are
made once, outside of the timing.
"""

import contextlib
import typing

import torch
import torch.nn.functional as functional

import gpu_products
import harness


def same(*tensors):
    return tensors


def channels_last(tensor):
    """[n,h,w,c] as PyTorch names it, [n,c,h,w], in the same memory."""
    return tensor.permute(0, 3, 1, 2)


def images(x, w, b):
    if w.dim() == 2:
        w = w[:, None, None]  # a kernel of 1x1
    elif w.dim() == 3:
        w = w[..., None]  # one channel each
    return channels_last(x), channels_last(w), b


def rows_columns(y):
    return y.permute(0, 2, 3, 1)


def convolve(x, w, height_width):
    """A convolution with bias and ReLU over images and weights as PyTorch names them, to outputs of this height and width."""
    stride = round(max(x.shape[2:]) / max(height_width))
    padding, groups = w.shape[2] // 2, x.shape[1] // w.shape[1]
    return lambda x, w, b: functional.relu(functional.conv2d(x, w, b, stride, padding, groups=groups))


def convolve_nhwc(inputs, output_shape):
    x, w, _ = images(*inputs)
    return convolve(x, w, output_shape[1:3])


def convolve_nchw(inputs, output_shape):
    x, w, _ = inputs
    return convolve(x, w, output_shape[2:])


def plain(function):
    return lambda inputs, output_shape: function


class Family(typing.NamedTuple):
    build: typing.Callable  # makes the function for given inputs and the output's shape
    prepare: typing.Callable = same  # its arguments, of the inputs
    restore: typing.Callable = lambda y: y  # gives the result our shape
    context: typing.Callable = contextlib.nullcontext  # what it is called within
    rounding: str = ""  # what its factors are rounded to, where its result does not say it


FAMILIES = {
    "gemm": Family(plain(gpu_products.product)),
    "gemm_kn": Family(plain(gpu_products.product_kn)),
    "gemm_tf32": Family(plain(gpu_products.product), context=gpu_products.tf32_allowed, rounding="tf32"),
    "gemm_e4m3": Family(plain(gpu_products.scaled_product)),
    "gemm_i8": Family(plain(gpu_products.integer_product)),
    "gemv": Family(plain(gpu_products.product)),
    "gemm_bias_gelu": Family(plain(lambda a, b, d: functional.gelu(functional.linear(a, b, d), approximate="tanh"))),
    "bmm": Family(plain(lambda a, b: a @ b.transpose(1, 2))),
    "conv": Family(convolve_nhwc, images, rows_columns),
    "conv_nchw": Family(convolve_nchw),
    "dwconv": Family(convolve_nhwc, images, rows_columns),
    "softmax": Family(plain(lambda x: torch.softmax(x, -1))),
    "layernorm": Family(plain(lambda x, g, b: functional.layer_norm(x, g.shape, g, b, 1e-5))),
    "rmsnorm": Family(plain(lambda x, g: functional.rms_norm(x, g.shape, g, 1e-5))),
    "sum": Family(plain(lambda x: torch.sum(x, -1, dtype=torch.float32))),
    "column_sum": Family(plain(lambda x: torch.sum(x, 0, dtype=torch.float32))),
    "logsumexp": Family(plain(lambda x: torch.logsumexp(x, -1))),
    "argmax": Family(plain(lambda x: torch.argmax(x, -1))),
    "transpose": Family(plain(lambda x: x.t().contiguous())),
    "chain": Family(plain(lambda x: torch.sigmoid(torch.relu(x) * 2 + 1))),
    "gelu": Family(plain(lambda x: functional.gelu(x, approximate="tanh"))),
}


class Peer:
    """A workload in PyTorch on given inputs."""

    def __init__(self, name, inputs, output_shape):
        matching = [family for family in FAMILIES if name.startswith(f"{family}_")]
        if not matching:
            raise harness.BenchmarkError(f"{name}: no family of gpu_peers.py has this name; expected one of {', '.join(FAMILIES)}")
        self.family = FAMILIES[max(matching, key=len)]
        self.function, self.arguments = self.family.build(inputs, output_shape), self.family.prepare(*inputs)

    def calling(self, function):
        def call():
            with self.family.context():
                return function(*self.arguments)

        return call

    def eager(self):
        """PyTorch's operators, one after the other: cuBLAS, cuDNN and its own kernels."""
        return self.calling(self.function)

    def compiled(self):
        """PyTorch's compiler with its autotuner; tunes and compiles here."""
        torch._dynamo.reset()
        call = self.calling(torch.compile(self.function, mode="max-autotune-no-cudagraphs", dynamic=False))
        call()
        return call

    def rounding_of(self, dtype):
        """The difference of results of this type that roundings explain."""
        return self.family.rounding or dtype

    def result(self):
        """The result that ours is compared with. Partial sums of a split depth stay f32 here: rounded to 16 bits, as PyTorch lets its
        library have them, they are off by more than one rounding."""
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_bf16_reduced_precision_reduction, matmul.allow_fp16_reduced_precision_reduction
        matmul.allow_bf16_reduced_precision_reduction = matmul.allow_fp16_reduced_precision_reduction = False
        try:
            return self.family.restore(self.eager()())
        finally:
            matmul.allow_bf16_reduced_precision_reduction, matmul.allow_fp16_reduced_precision_reduction = before

"""The computations of gpu_workloads.py in PyTorch: what its users call, so what the vendor's libraries and PyTorch's own kernels do.

A peer takes the tensors that our function takes. Whatever is a view alone (images to PyTorch's order of dimensions, in the same memory) is
done once, outside of what is timed.
"""

import torch
import torch.nn.functional as functional

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


def convolve(groups_of):
    """A convolution with bias and ReLU; `groups_of` gives the groups for the weights."""

    def build(inputs, output_shape):
        x, w, _ = inputs
        stride = round(max(x.shape[1:3]) / max(output_shape[1:3]))
        padding, groups = (w.shape[1] // 2 if w.dim() > 2 else 0), groups_of(w)
        return lambda x, w, b: functional.relu(functional.conv2d(x, w, b, stride, padding, groups=groups))

    return build


def plain(function):
    return lambda inputs, output_shape: function


# family -> (what makes the function for given inputs and output, what prepares its arguments, what gives the result our shape)
FAMILIES = {
    "gemm": (plain(lambda a, b: a @ b.t()), same, lambda y: y),
    "gemv": (plain(lambda a, b: a @ b.t()), same, lambda y: y),
    "gemm_bias_gelu": (plain(lambda a, b, d: functional.gelu(functional.linear(a, b, d), approximate="tanh")), same, lambda y: y),
    "bmm": (plain(lambda a, b: a @ b.transpose(1, 2)), same, lambda y: y),
    "conv": (convolve(lambda w: 1), images, rows_columns),
    "dwconv": (convolve(lambda w: w.shape[0]), images, rows_columns),
    "softmax": (plain(lambda x: torch.softmax(x, -1)), same, lambda y: y),
    "layernorm": (plain(lambda x, g, b: functional.layer_norm(x, g.shape, g, b, 1e-5)), same, lambda y: y),
    "rmsnorm": (plain(lambda x, g: functional.rms_norm(x, g.shape, g, 1e-5)), same, lambda y: y),
    "sum": (plain(lambda x: torch.sum(x, -1, dtype=torch.float32)), same, lambda y: y),
    "transpose": (plain(lambda x: x.t().contiguous()), same, lambda y: y),
    "chain": (plain(lambda x: torch.sigmoid(torch.relu(x) * 2 + 1)), same, lambda y: y),
    "gelu": (plain(lambda x: functional.gelu(x, approximate="tanh")), same, lambda y: y),
}


class Peer:
    """A workload in PyTorch on given inputs."""

    def __init__(self, name, inputs, output_shape):
        matching = [family for family in FAMILIES if name.startswith(f"{family}_")]
        if not matching:
            raise harness.BenchmarkError(f"{name}: no family of gpu_peers.py has this name; expected one of {', '.join(FAMILIES)}")
        build, prepare, self.restore = FAMILIES[max(matching, key=len)]
        self.function, self.arguments = build(inputs, output_shape), prepare(*inputs)

    def eager(self):
        """PyTorch's operators, one after the other: cuBLAS, cuDNN and its own kernels."""
        return lambda: self.function(*self.arguments)

    def compiled(self):
        """PyTorch's compiler with its autotuner; tunes and compiles here."""
        torch._dynamo.reset()
        function = torch.compile(self.function, mode="max-autotune-no-cudagraphs", dynamic=False)
        function(*self.arguments)
        return lambda: function(*self.arguments)

    def result(self):
        return self.restore(self.function(*self.arguments))

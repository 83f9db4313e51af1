"""The libraries' matrix products of A [M,K] and B, stored [N,K] where its name does not say [K,N], for each type of operands: what PyTorch's users call."""

import contextlib

import torch


@contextlib.contextmanager
def tf32_allowed():
    """Within, products of f32 round their operands to tf32."""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def product(a, b):
    return a @ b.t()


def product_kn(a, b):
    return a @ b


def scaled_product(a, b, p, q):
    """8-bit floats, each operand with one scale, to bf16. Sums leave the tensor cores' few bits now and then, as in our kernels: that is what
    PyTorch does where nobody asks for fast accumulation."""
    return torch._scaled_mm(a, b.t(), p, q, out_dtype=torch.bfloat16)


def integer_product(a, b):
    return torch._int_mm(a, b.t())

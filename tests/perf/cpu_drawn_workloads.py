"""Workloads for CPUs that are drawn at random, of shapes that the suites of cpu_workloads.py lack: odd, tiny, long, and in other layouts."""

import random

from cpu_workloads import BLOCK, bmm, chain, conv, gelu, gemm, layernorm, named, softmax, transpose
from workload_text import log_uniform

MOST_PRODUCTS = 1 << 29  # of a drawn contraction: a few milliseconds


def drawn_shape(source):
    """Rows, columns and depth of a product: odd, one row, tiny, very wide, very deep, or a batch of eight."""
    kind = source.choice(("odd", "odd", "row", "tiny", "wide", "deep", "eight"))
    if kind == "tiny":
        return tuple(source.randint(1, 48) for _ in range(3))
    if kind == "deep":
        return source.randint(1, 64), source.randint(4, 64), log_uniform(source, 4_000, 100_000)
    n, k = log_uniform(source, 33, 4000) | 1, log_uniform(source, 33, 4000) | 1
    if kind == "wide":
        n, k = log_uniform(source, 8_000, 60_000), log_uniform(source, 16, 600)
    m = {"row": 1, "eight": 8, "wide": source.randint(1, 64)}.get(kind) or source.randint(2, 1200)
    return min(m, max(1, MOST_PRODUCTS // (n * k))), n, k


def drawn_gemm(source, tag, a="f32", b=None):
    m, n, k = drawn_shape(source)
    kind = "" if a == "f32" else f"{a}_"
    return gemm(f"gemm_{kind}{tag}_{m}x{n}x{k}", m, n, k, a, b)


def drawn_bytes_gemm(source, tag):
    return drawn_gemm(source, tag, source.choice(("u8", "i8")), "i8")


def drawn_bmm(source, tag):
    batch, m, n, k = source.randint(2, 24), log_uniform(source, 4, 300), log_uniform(source, 4, 300), source.choice((32, 64, 80, 128))
    return bmm(f"bmm_{tag}_{batch}x{m}x{n}x{k}", batch, m, n, k)


def drawn_image(source):
    """Images and a kernel: batch one or eight, any odd size."""
    return source.choice((1, 1, 1, 8)), log_uniform(source, 7, 120), log_uniform(source, 7, 120), source.choice((1, 3, 3, 5))


def drawn_conv(source, tag, x="f32", w=None, groups=1):
    n, height, width, kernel = drawn_image(source)
    stride, dilation = source.choice((1, 1, 2)), source.choice((1, 1, 2)) if kernel > 1 else 1
    each, out = (log_uniform(source, 3, 300), log_uniform(source, 8, 300)) if groups == 1 else (source.choice((4, 8, 16)),) * 2
    c, k = each * groups, out * groups
    if n * height * width * each * k * kernel**2 // stride**2 > MOST_PRODUCTS:
        n, height, width = 1, min(height, 28), min(width, 28)
    kind = "" if x == "f32" else f"{x}_"
    name = f"conv_{kind}{tag}_n{n}_{height}x{width}_c{c}_k{k}_{kernel}x{kernel}_s{stride}_d{dilation}_g{groups}"
    return conv(name, (n, height, width, c), k, kernel, stride, dilation, groups, x=x, w=w)


def drawn_grouped_conv(source, tag):
    return drawn_conv(source, tag, groups=source.choice((4, 8, 32)))


def drawn_dwconv(source, tag):
    n, height, width, _ = drawn_image(source)
    c, kernel, stride, dilation = log_uniform(source, 16, 500), source.choice((3, 3, 5)), source.choice((1, 1, 2)), source.choice((1, 1, 2))
    name = f"dwconv_{tag}_n{n}_{height}x{width}_c{c}_{kernel}x{kernel}_s{stride}_d{dilation}"
    return conv(name, (n, height, width, c), c, kernel, stride, dilation, groups=c)


def drawn_stem(source, tag):
    """The first layer of a network: few channels of a large image."""
    c, k, (kernel, stride) = source.choice((1, 3, 3, 4)), 16 * source.randint(1, 6), source.choice(((3, 2), (7, 2), (3, 1)))
    height, width, layout = source.randint(32, 240), source.randint(32, 240), source.choice(("nhwc", "nhwc", "nchw", "blocked"))
    name = f"stem_{layout}_{tag}_{height}x{width}_c{c}_k{k}_{kernel}x{kernel}_s{stride}"
    return conv(name, (1, height, width, c), k, kernel, stride, layout=layout)


def drawn_layout_conv(source, tag):
    """Channels before the places of an image, or in blocks."""
    layout, (n, height, width, kernel), stride = source.choice(("nchw", "blocked")), drawn_image(source), source.choice((1, 1, 2))
    c, k = (BLOCK * log_uniform(source, 1, 20) for _ in "ck")
    if n * height * width * c * k * kernel**2 // stride**2 > MOST_PRODUCTS:
        n, height, width = 1, min(height, 28), min(width, 28)
    name = f"conv_{layout}_{tag}_n{n}_{height}x{width}_c{c}_k{k}_{kernel}x{kernel}_s{stride}"
    return conv(name, (n, height, width, c), k, kernel, stride, layout=layout)


def drawn_narrow_conv(source, tag):
    return drawn_conv(source, tag, *source.choice((("bf16",), ("u8", "i8"), ("i8", "i8"))))


def drawn_rows(source, tag, families):
    """At most four million elements, in rows of any length."""
    family = source.choice(families)
    n = log_uniform(source, 8, 60_000)
    m = max(2, log_uniform(source, 1 << 10, 1 << 22) // n)
    return family(f"{family.__name__}_{tag}_{m}x{n}", m, n)


DRAWN = (
    drawn_gemm,
    drawn_conv,
    lambda source, tag: drawn_rows(source, tag, (softmax, layernorm)),
    drawn_gemm,
    drawn_dwconv,
    lambda source, tag: drawn_gemm(source, tag, "bf16"),
    drawn_bmm,
    lambda source, tag: drawn_rows(source, tag, (transpose, gelu, chain)),
    drawn_conv,
    drawn_bytes_gemm,
    drawn_grouped_conv,
    drawn_narrow_conv,
    drawn_stem,
    drawn_layout_conv,
)


def drawn(count, seed):
    """`count` workloads of other shapes than the suites', in turn of each family of DRAWN."""
    source = random.Random(seed)
    return named(DRAWN[index % len(DRAWN)](source, f"r{index}") for index in range(count))

"""The computations of the CPU benchmarks: each as text for mycc and as a specification for the libraries' programs, made from the same numbers.
`python3 cpu_workloads.py` prints the f32 suite, which suite_cpu_f32.te holds.

A specification is one word, `FAMILY:KEY=VALUE,...`, which peers_cpu (peer_workloads.h) and cpu_newest_peer.py read alike. Arguments come
in the order in which the workload declares them.
"""

import typing

import gpu_workloads
from workload_text import output_extent, padded, strided, tensor, workload

BLOCK = 16  # channels of a block, where activations are blocked: nChw16c
EPSILON = "0.00001"


class Workload(typing.NamedTuple):
    name: str
    text: str
    spec: str
    operands: str  # the type of what is multiplied: f32, bf16, i8 or u8
    contraction: bool
    work: dict | None = None  # operations and bytes, `flops` and `bytes`, where the text's counts are more than is needed


def specification(family, **numbers):
    return f"{family}:{','.join(f'{key}={value}' for key, value in numbers.items())}"


def sum_type(operands):
    return "i32" if operands in ("i8", "u8") else "f32"


def factor(operands, read):
    """A factor of a sum of products, widened to the type of the sum."""
    return read if operands == sum_type(operands) else f"{sum_type(operands)}({read})"


def gemm(name, m, n, k, a="f32", b=None):
    """A [M,K] times constant B [K,N]: f32 or bf16 to f32, bytes to i32."""
    b = b or a
    product = f"{factor(a, 'a[i,k]')} * {factor(b, 'b[k,j]')}"
    text = workload(name, [tensor("a", a, (m, k)), tensor("b", b, (k, n), const=True)], tensor("c", sum_type(a), (m, n)),
                    [f"c[i,j] = sum[k:{k}]({product})"])
    return Workload(name, text, specification("gemm", m=m, n=n, k=k, a=a, b=b, transposed=0, bias=0), a, True)


def linear(name, m, n, k):
    """x [M,K] times the transpose of constant weights [N,K], and a bias: how models write it."""
    text = workload(name, [tensor("x", "f32", (m, k)), tensor("w", "f32", (n, k), const=True), tensor("b", "f32", (n,), const=True)],
                    tensor("y", "f32", (m, n)), [
        f"a[n,k]: f32[{m},{n}] = sum[c:{k}](x[n,c] * w[k,c])",
        "y[n,k] = a[n,k] + b[k]"])
    return Workload(name, text, specification("gemm", m=m, n=n, k=k, a="f32", b="f32", transposed=1, bias=1), "f32", True)


def bmm(name, batch, m, n, k):
    """A product for each of a batch; neither operand is constant."""
    text = workload(name, [tensor("a", "f32", (batch, m, k)), tensor("b", "f32", (batch, k, n))], tensor("c", "f32", (batch, m, n)),
                    [f"c[g,i,j] = sum[k:{k}](a[g,i,k] * b[g,k,j])"])
    return Workload(name, text, specification("bmm", batch=batch, m=m, n=n, k=k), "f32", True)


class Channels(typing.NamedTuple):
    """The channels of an image: its axes, in their order among the others, and a channel's number."""
    axes: dict
    number: str


def image(layout, shape, letters):
    """Images of shape n, h, w and c in a layout; `letters` name the channels' axes."""
    n, h, w, c = shape
    if layout == "nhwc":
        return Channels({"n": n, "i": h, "j": w, letters[0]: c}, letters[0])
    if layout == "nchw":
        return Channels({"n": n, letters[0]: c, "i": h, "j": w}, letters[0])
    block, lane = letters
    return Channels({"n": n, block: c // BLOCK, "i": h, "j": w, lane: BLOCK}, f"{block}*{BLOCK}+{lane}")


def at(name, axes, **indices):
    """A read or a definition, at indices that are the axes where nothing else is said."""
    return f"{name}[{','.join(indices.get(axis, axis) for axis in axes)}]"


def positions(kernel, stride, dilation):
    """Rows and columns that are read: a kernel's tap for each output."""
    taps = {"i": "r", "j": "s"} if kernel > 1 else {}
    return {axis: strided(axis, stride) + (f"+{strided(taps[axis], dilation)}" if taps else "") for axis in "ij"}


EPILOGUES = {"bias": "{a} + {b}", "bias_relu": "max({a} + {b}, 0.0)", "bias_add_relu": "max({a} + {b} + {z}, 0.0)"}


def conv(name, shape, k, kernel, stride=1, dilation=1, groups=1, epilogue="bias_relu", layout="nhwc", x="f32", w=None):
    """A convolution of images of shape n, h, w and c, padded so that a stride of one keeps their size, with constant weights. `layout` is
    nhwc, nchw, or blocked, where images of few channels are read as nchw. Bytes are summed to i32, with no epilogue."""
    n, height, width, c = shape
    w, total = w or x, sum_type(x)
    epilogue = epilogue if total == "f32" else "none"
    depthwise, each, pad = groups > 1 and groups == c == k, c // groups, dilation * (kernel // 2)
    source = "nchw" if layout == "blocked" and c < BLOCK else layout
    inner = image(source, shape, "de" if source == "blocked" else "c")
    reach = (kernel - 1) * dilation + 1
    stages, read_from = [], "x"
    out_h, out_w = (output_extent(extent, pad, stride, reach) for extent in (height, width))
    if kernel > 1:
        stage, out_h, out_w = padded(inner.axes, pad, stride, reach, x, "0.0" if total == "f32" else "0", axis_by_axis=True)
        stages, read_from = [stage], "p"
    outer = image(layout, (n, out_h, out_w, k), ("de" if layout == "blocked" else "c") if depthwise else ("lm" if layout == "blocked" else "k"))

    reads = positions(kernel, stride, dilation)
    reductions = [f"r:{kernel}", f"s:{kernel}"] if kernel > 1 else []
    if depthwise:
        extents, weight = [c], [outer.number]
    else:
        channels = {axis: extent for axis, extent in inner.axes.items() if axis not in "nij"}
        if groups > 1:
            channels, reads[inner.number] = {"c": each}, f"({outer.number}//{k // groups})*{each}+c"
        axes = [f"{axis}:{extent}" for axis, extent in channels.items()]
        reductions = reductions + axes if source == "nhwc" else axes[:1] + reductions + axes[1:]
        extents, weight = [k, each], [outer.number, "c" if groups > 1 else inner.number]
    if kernel > 1:
        extents, weight = extents + [kernel, kernel], weight + ["r", "s"]
    product = f"{factor(x, at(read_from, inner.axes, **reads))} * {factor(w, f'w[{chr(44).join(weight)}]')}"
    summed = f"sum[{', '.join(reductions)}]({product})" if reductions else product

    inputs = [tensor("x", x, inner.axes), tensor("w", w, extents, const=True)]
    if epilogue == "none":
        stages.append(f"{at('y', outer.axes)} = {summed}")
    else:
        a, z, b = at("a", outer.axes), at("z", outer.axes), f"b[{outer.number}]"
        inputs += [tensor("b", "f32", (k,), const=True)] + ([tensor("z", "f32", outer.axes)] if "add" in epilogue else [])
        stages += [f"{tensor(a, 'f32', outer.axes)} = {summed}", f"{at('y', outer.axes)} = {EPILOGUES[epilogue].format(a=a, b=b, z=z)}"]
    spec = specification("conv", n=n, h=height, w=width, c=c, k=k, kernel=kernel, stride=stride, dilation=dilation, pad=pad, groups=groups,
                         x=x, weights=w, layout=layout, epilogue=epilogue)
    return Workload(name, workload(name, inputs, tensor("y", total, outer.axes), stages), spec, x, True)


def max_pool(name, shape, kernel, stride):
    n, h, w, c = shape
    stage, out_h, out_w = padded({"n": n, "i": h, "j": w, "c": c}, kernel // 2, stride, kernel, "f32", "-inf", axis_by_axis=True)
    reads = positions(kernel, stride, 1)
    text = workload(name, [tensor("x", "f32", shape)], tensor("y", "f32", (n, out_h, out_w, c)), [
        stage, f"y[n,i,j,c] = max[r:{kernel}, s:{kernel}](p[n,{reads['i']},{reads['j']},c])"])
    return Workload(name, text, specification("max_pool", n=n, h=h, w=w, c=c, kernel=kernel, stride=stride, pad=kernel // 2), "f32", False)


def average_all(name, shape):
    """The average of each channel of an image."""
    n, h, w, c = shape
    text = workload(name, [tensor("x", "f32", shape)], tensor("y", "f32", (n, c)), [
        f"a[n,c]: f32[{n},{c}] = sum[i:{h}, j:{w}](x[n,i,j,c])", f"y[n,c] = a[n,c] / {h * w}.0"])
    return Workload(name, text, specification("average_all", n=n, h=h, w=w, c=c), "f32", False)


def rows(family, name, m, n, text):
    return Workload(name, text, specification(family, m=m, n=n), "f32", False)


def softmax(name, m, n):
    return rows("softmax", name, m, n, gpu_workloads.softmax(name, m, n, "f32"))


def transpose(name, m, n):
    return rows("transpose", name, m, n, gpu_workloads.transpose(name, m, n, "f32"))


def chain(name, m, n):
    return rows("chain", name, m, n, gpu_workloads.chain(name, m, n))


def layernorm(name, m, n):
    """Scale and shift are constant, as a library has them."""
    text = workload(name, [tensor("x", "f32", (m, n)), tensor("g", "f32", (n,), const=True), tensor("b", "f32", (n,), const=True)],
                    tensor("y", "f32", (m, n)), [
        f"s[i]: f32[{m}] = sum[j:{n}](x[i,j])",
        f"d[i,j]: f32[{m},{n}] = x[i,j] - s[i] / {n}.0",
        f"v[i]: f32[{m}] = sum[j:{n}](d[i,j] * d[i,j])",
        f"y[i,j] = d[i,j] * rsqrt(v[i] / {n}.0 + {EPSILON}) * g[j] + b[j]"])
    return rows("layernorm", name, m, n, text)


def gelu(name, m, n):
    text = workload(name, [tensor("x", "f32", (m, n))], tensor("y", "f32", (m, n)), [
        f"t[i,j]: f32[{m},{n}] = tanh(0.7978846 * (x[i,j] + 0.044715 * x[i,j] * x[i,j] * x[i,j]))",
        "y[i,j] = 0.5 * x[i,j] * (1.0 + t[i,j])"])
    return rows("gelu", name, m, n, text)


def named(workloads):
    """name -> workload."""
    return {one.name: one for one in workloads}


GEMMS = ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (128, 768, 3072), (128, 3072, 768), (1, 4096, 4096), (16, 4096, 4096),
         (3136, 64, 576))
CONVOLUTIONS = {  # image, channels out, kernel, and more
    "conv_{}c3_h224_k64_7x7_s2": ((1, 224, 224, 3), 64, 7, {"stride": 2}),
    "conv_{}c64_h56_k64_3x3": ((1, 56, 56, 64), 64, 3, {}),
    "conv_{}c128_h28_k128_3x3": ((1, 28, 28, 128), 128, 3, {}),
    "conv_{}c256_h14_k256_3x3": ((1, 14, 14, 256), 256, 3, {}),
    "conv_{}c512_h7_k512_3x3": ((1, 7, 7, 512), 512, 3, {}),
    "conv_{}c64_h56_k256_1x1": ((1, 56, 56, 64), 256, 1, {}),
    "conv_{}c256_h56_k64_1x1": ((1, 56, 56, 256), 64, 1, {}),
    "dwconv_{}c144_h56_k144_3x3": ((1, 56, 56, 144), 144, 3, {"groups": 144}),
}

DIVIDED = {  # of bytes: depths that are no multiple of a tile's 64, and lines of few pixels
    "conv_{}c16_h112_k32_3x3": ((1, 112, 112, 16), 32, 3, {}),
    "conv_{}c24_h56_k48_3x3": ((1, 56, 56, 24), 48, 3, {}),
    "conv_{}c40_h28_k80_3x3": ((1, 28, 28, 40), 80, 3, {}),
    "conv_{}c72_h28_k72_3x3": ((1, 28, 28, 72), 72, 3, {}),
    "conv_{}c96_h40_k96_3x3": ((1, 40, 40, 96), 96, 3, {}),
    "conv_{}c112_h19_k112_3x3": ((1, 19, 19, 112), 112, 3, {}),
    "conv_{}c160_h14_k160_3x3": ((1, 14, 14, 160), 160, 3, {}),
    "conv_{}c192_h17_k320_3x3": ((1, 17, 17, 192), 320, 3, {}),
    "conv_{}c320_h10_k320_3x3": ((1, 10, 10, 320), 320, 3, {}),
    "conv_{}c512_h7_k512_3x3": ((1, 7, 7, 512), 512, 3, {}),
    "conv_{}c40_h28_k240_1x1": ((1, 28, 28, 40), 240, 1, {}),
}


def gemms(prefix, *types, shapes=GEMMS):
    return [gemm(f"{prefix}_{m}x{n}x{k}", m, n, k, *types) for m, n, k in shapes]


def convolutions(kind, patterns, of=CONVOLUTIONS, **options):
    return [conv(name.format(kind), shape, k, kernel, **more, **options)
            for name, (shape, k, kernel, more) in of.items() if name.format("") in patterns or not patterns]


def f32():
    return named([
        *gemms("gemm"),
        *convolutions("", ()),
        softmax("softmax_512x1024", 512, 1024),
        softmax("softmax_4x50257", 4, 50257),
        layernorm("layernorm_512x1024", 512, 1024),
        layernorm("layernorm_197x768", 197, 768),
        transpose("transpose_4096x1024", 4096, 1024),
        gelu("gelu_1024x4096", 1024, 4096),
    ])


DENSE = ("conv_c64_h56_k64_3x3", "conv_c128_h28_k128_3x3", "conv_c256_h14_k256_3x3", "conv_c64_h56_k256_1x1", "conv_c256_h56_k64_1x1")


def bf16():
    return named(gemms("gemm_bf16", "bf16") + convolutions("bf16_", DENSE, x="bf16"))


def i8():
    """Activations u8, as after ReLU, and i8."""
    return named(gemms("gemm_u8", "u8", "i8") + gemms("gemm_i8", "i8", "i8", shapes=GEMMS[1:7:2]) + convolutions("u8_", DENSE, x="u8", w="i8") +
                 convolutions("u8_", (), DIVIDED, x="u8", w="i8") + gemms("gemm_u8", "u8", "i8", shapes=((64, 500, 1000), (100, 1000, 2000))))


def blocked():
    """The f32 convolutions over activations in blocks of sixteen channels."""
    return named(convolutions("blocked_", (), layout="blocked"))


SETS = {"f32": f32, "bf16": bf16, "i8": i8, "blocked": blocked}

RESNET50 = (  # of examples/resnet50_b1_f32.te: name, extent and channels of the image, channels out, kernel, stride, epilogue
    ("conv1_7x7_s2_3_64", 224, 3, 64, 7, 2, "bias_relu"),
    ("conv2_1x1_64_64", 56, 64, 64, 1, 1, "bias_relu"),
    ("conv2_3x3_64_64", 56, 64, 64, 3, 1, "bias_relu"),
    ("conv2_1x1_64_256_add", 56, 64, 256, 1, 1, "bias_add_relu"),
    ("conv2_1x1_64_256", 56, 64, 256, 1, 1, "bias"),
    ("conv2_1x1_256_64", 56, 256, 64, 1, 1, "bias_relu"),
    ("conv3_1x1_256_128", 56, 256, 128, 1, 1, "bias_relu"),
    ("conv3_3x3_s2_128_128", 56, 128, 128, 3, 2, "bias_relu"),
    ("conv3_3x3_128_128", 28, 128, 128, 3, 1, "bias_relu"),
    ("conv3_1x1_128_512_add", 28, 128, 512, 1, 1, "bias_add_relu"),
    ("conv3_1x1_s2_256_512", 56, 256, 512, 1, 2, "bias"),
    ("conv3_1x1_512_128", 28, 512, 128, 1, 1, "bias_relu"),
    ("conv4_1x1_512_256", 28, 512, 256, 1, 1, "bias_relu"),
    ("conv4_3x3_s2_256_256", 28, 256, 256, 3, 2, "bias_relu"),
    ("conv4_3x3_256_256", 14, 256, 256, 3, 1, "bias_relu"),
    ("conv4_1x1_256_1024_add", 14, 256, 1024, 1, 1, "bias_add_relu"),
    ("conv4_1x1_s2_512_1024", 28, 512, 1024, 1, 2, "bias"),
    ("conv4_1x1_1024_256", 14, 1024, 256, 1, 1, "bias_relu"),
    ("conv5_1x1_1024_512", 14, 1024, 512, 1, 1, "bias_relu"),
    ("conv5_3x3_s2_512_512", 14, 512, 512, 3, 2, "bias_relu"),
    ("conv5_3x3_512_512", 7, 512, 512, 3, 1, "bias_relu"),
    ("conv5_1x1_512_2048_add", 7, 512, 2048, 1, 1, "bias_add_relu"),
    ("conv5_1x1_s2_1024_2048", 14, 1024, 2048, 1, 2, "bias"),
    ("conv5_1x1_2048_512", 7, 2048, 512, 1, 1, "bias_relu"),
)


def resnet50():
    """The layers of examples/resnet50_b1_f32.te, for peers_cpu."""
    return named([max_pool("pool1_max_3x3_s2", (1, 112, 112, 64), 3, 2), average_all("pool5_avg_7x7", (1, 7, 7, 2048)),
                  linear("fc_2048_1000", 1, 1000, 2048),
                  *(conv(name, (1, h, h, c), k, kernel, stride, epilogue=epilogue) for name, h, c, k, kernel, stride, epilogue in RESNET50)])


if __name__ == "__main__":
    print("# The f32 suite of cpu_vs_libraries.sh, as cpu_workloads.py prints it: products with a constant second operand, convolutions with bias")
    print("# and ReLU over NHWC, then rows.\n")
    print("\n".join(one.text for one in f32().values()), end="")

"""The computations of the GPU benchmarks as text: the suite, a set of other types and layouts, and shapes drawn by seed. `python3
gpu_workloads.py` prints the suite, which suite_gpu.te holds.

They are the libraries' computations: 16-bit operands, their products and sums in f32, one rounding at the end. B of a matrix
product is stored [N,K]; images are NHWC with weights [K,R,S,C], PyTorch's channels_last, where a name does not say NCHW. No input is
`const`: a library takes weights as they are, and so do we.

A workload's name begins with its family, by which gpu_peers.py finds the computation in PyTorch.
"""

import random
import typing

from workload_text import log_uniform, named, padded, strided, workload


def widened(dtype, read):
    return read if dtype == "f32" else f"f32({read})"


def rounded(dtype, value):
    return value if dtype == "f32" else f"{dtype}({value})"


def gemm(name, m, n, k, dtype="bf16"):
    if dtype == "f32":
        stages = [f"c[i,j] = sum[k:{k}](a[i,k] * b[j,k])"]
    else:
        stages = [f"s[i,j]: f32[{m},{n}] = sum[k:{k}](f32(a[i,k]) * f32(b[j,k]))", f"c[i,j] = {dtype}(s[i,j])"]
    return workload(name, [f"a: {dtype}[{m},{k}]", f"b: {dtype}[{n},{k}]"], f"c: {dtype}[{m},{n}]", stages)


def gemm_kn(name, m, n, k):
    """A product of f32 whose B is stored [K,N]."""
    return workload(name, [f"a: f32[{m},{k}]", f"b: f32[{k},{n}]"], f"c: f32[{m},{n}]", [f"c[i,j] = sum[k:{k}](a[i,k] * b[k,j])"])


def gemm_tf32(name, m, n, k):
    return workload(name, [f"a: f32[{m},{k}]", f"b: f32[{n},{k}]"], f"c: f32[{m},{n}]",
                    [f"c[i,j] = sum[k:{k}](tf32(a[i,k]) * tf32(b[j,k]))"])


def gemm_e4m3(name, m, n, k):
    """8-bit floats with one scale for each operand."""
    return workload(name, [f"a: f8e4m3[{m},{k}]", f"b: f8e4m3[{n},{k}]", "p: f32[]", "q: f32[]"], f"c: bf16[{m},{n}]", [
        f"s[i,j]: f32[{m},{n}] = sum[k:{k}](f32(a[i,k]) * f32(b[j,k]))",
        "c[i,j] = bf16(s[i,j] * (p[] * q[]))"])


def gemm_i8(name, m, n, k):
    return workload(name, [f"a: i8[{m},{k}]", f"b: i8[{n},{k}]"], f"c: i32[{m},{n}]",
                    [f"c[i,j] = sum[k:{k}](i32(a[i,k]) * i32(b[j,k]))"])


def gemm_bias_gelu(name, m, n, k, dtype="bf16"):
    return workload(name, [f"a: {dtype}[{m},{k}]", f"b: {dtype}[{n},{k}]", f"d: {dtype}[{n}]"], f"c: {dtype}[{m},{n}]", [
        f"s[i,j]: f32[{m},{n}] = sum[k:{k}](f32(a[i,k]) * f32(b[j,k]))",
        f"h[i,j]: f32[{m},{n}] = s[i,j] + f32(d[j])",
        f"t[i,j]: f32[{m},{n}] = tanh(0.7978845608 * (h[i,j] + 0.044715 * h[i,j] * h[i,j] * h[i,j]))",
        f"c[i,j] = {dtype}(0.5 * h[i,j] * (1.0 + t[i,j]))"])


def bmm(name, batch, m, n, k, dtype="f16"):
    return workload(name, [f"a: {dtype}[{batch},{m},{k}]", f"b: {dtype}[{batch},{n},{k}]"], f"c: {dtype}[{batch},{m},{n}]", [
        f"s[g,i,j]: f32[{batch},{m},{n}] = sum[k:{k}](f32(a[g,i,k]) * f32(b[g,j,k]))",
        f"c[g,i,j] = {dtype}(s[g,i,j])"])


def conv(name, shape, k, kernel, stride=1, dtype="f16", groups=1):
    """A convolution with bias and ReLU over images [n,h,w,c], padded by half its kernel."""
    n, h, w, c = shape
    y, x = strided("i", stride), strided("j", stride)
    each = c // groups  # channels of a group
    channel = "c" if groups == 1 else f"(k//{k // groups})*{each}+c"
    if kernel == 1:
        pad, (out_h, out_w) = [], ((extent - 1) // stride + 1 for extent in (h, w))
        weights, product = f"{dtype}[{k},{each}]", f"sum[c:{each}](f32(x[n,{y},{x},{channel}]) * f32(w[k,c]))"
    else:
        stage, out_h, out_w = padded({"n": n, "i": h, "j": w, "c": c}, kernel // 2, stride, kernel, dtype)
        pad, weights = [stage], f"{dtype}[{k},{kernel},{kernel},{each}]"
        product = f"sum[r:{kernel}, s:{kernel}, c:{each}](f32(p[n,{y}+r,{x}+s,{channel}]) * f32(w[k,r,s,c]))"
    return workload(name, [f"x: {dtype}[{n},{h},{w},{c}]", f"w: {weights}", f"b: {dtype}[{k}]"], f"y: {dtype}[{n},{out_h},{out_w},{k}]",
                    pad + [f"a[n,i,j,k]: f32[{n},{out_h},{out_w},{k}] = {product}",
                           f"y[n,i,j,k] = {dtype}(max(a[n,i,j,k] + f32(b[k]), 0.0))"])


def conv_nchw(name, shape, k, kernel, stride=1, dtype="f16"):
    """The same over images [n,c,h,w] with weights [k,c,r,s]; `shape` is n, h, w and c as there."""
    n, h, w, c = shape
    stage, out_h, out_w = padded({"n": n, "c": c, "i": h, "j": w}, kernel // 2, stride, kernel, dtype)
    y, x = strided("i", stride), strided("j", stride)
    return workload(name, [f"x: {dtype}[{n},{c},{h},{w}]", f"w: {dtype}[{k},{c},{kernel},{kernel}]", f"b: {dtype}[{k}]"],
                    f"y: {dtype}[{n},{k},{out_h},{out_w}]", [
        stage,
        f"a[n,k,i,j]: f32[{n},{k},{out_h},{out_w}] = "
        f"sum[c:{c}, r:{kernel}, s:{kernel}](f32(p[n,c,{y}+r,{x}+s]) * f32(w[k,c,r,s]))",
        f"y[n,k,i,j] = {dtype}(max(a[n,k,i,j] + f32(b[k]), 0.0))"])


def dwconv(name, shape, kernel, stride=1, dtype="f16"):
    n, h, w, c = shape
    stage, out_h, out_w = padded({"n": n, "i": h, "j": w, "c": c}, kernel // 2, stride, kernel, dtype)
    y, x = strided("i", stride), strided("j", stride)
    return workload(name, [f"x: {dtype}[{n},{h},{w},{c}]", f"w: {dtype}[{c},{kernel},{kernel}]", f"b: {dtype}[{c}]"],
                    f"y: {dtype}[{n},{out_h},{out_w},{c}]", [
        stage,
        f"a[n,i,j,c]: f32[{n},{out_h},{out_w},{c}] = sum[r:{kernel}, s:{kernel}](f32(p[n,{y}+r,{x}+s,c]) * f32(w[c,r,s]))",
        f"y[n,i,j,c] = {dtype}(max(a[n,i,j,c] + f32(b[c]), 0.0))"])


def softmax(name, m, n, dtype="f16"):
    x = widened(dtype, "x[i,j]")
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"y: {dtype}[{m},{n}]", [
        f"h[i]: f32[{m}] = max[j:{n}]({x})",
        f"e[i,j]: f32[{m},{n}] = exp({x} - h[i])",
        f"s[i]: f32[{m}] = sum[j:{n}](e[i,j])",
        f"y[i,j] = {rounded(dtype, 'e[i,j] / s[i]')}"])


def layernorm(name, m, n, dtype="f16"):
    x, g, b = (widened(dtype, read) for read in ("x[i,j]", "g[j]", "b[j]"))
    return workload(name, [f"x: {dtype}[{m},{n}]", f"g: {dtype}[{n}]", f"b: {dtype}[{n}]"], f"y: {dtype}[{m},{n}]", [
        f"s[i]: f32[{m}] = sum[j:{n}]({x})",
        f"d[i,j]: f32[{m},{n}] = {x} - s[i] / {n}.0",
        f"v[i]: f32[{m}] = sum[j:{n}](d[i,j] * d[i,j])",
        f"y[i,j] = {rounded(dtype, f'd[i,j] * rsqrt(v[i] / {n}.0 + 0.00001) * {g} + {b}')}"])


def rmsnorm(name, m, n, dtype="f16"):
    x, g = widened(dtype, "x[i,j]"), widened(dtype, "g[j]")
    return workload(name, [f"x: {dtype}[{m},{n}]", f"g: {dtype}[{n}]"], f"y: {dtype}[{m},{n}]", [
        f"v[i]: f32[{m}] = sum[j:{n}]({x} * {x})",
        f"y[i,j] = {rounded(dtype, f'{x} * rsqrt(v[i] / {n}.0 + 0.00001) * {g}')}"])


def row_sum(name, m, n, dtype="f16"):
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"s: f32[{m}]", [f"s[i] = sum[j:{n}]({widened(dtype, 'x[i,j]')})"])


def column_sum(name, m, n, dtype="f16"):
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"s: f32[{n}]", [f"s[j] = sum[i:{m}]({widened(dtype, 'x[i,j]')})"])


def logsumexp(name, m, n, dtype="f16"):
    x = widened(dtype, "x[i,j]")
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"y: {dtype}[{m}]", [
        f"h[i]: f32[{m}] = max[j:{n}]({x})",
        f"s[i]: f32[{m}] = sum[j:{n}](exp({x} - h[i]))",
        f"y[i] = {rounded(dtype, 'log(s[i]) + h[i]')}"])


def argmax(name, m, n, dtype="f16"):
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"y: i32[{m}]", [f"y[i] = argmax[j:{n}](x[i,j])"])


def transpose(name, m, n, dtype="f16"):
    return workload(name, [f"x: {dtype}[{m},{n}]"], f"y: {dtype}[{n},{m}]", ["y[i,j] = x[j,i]"])


def chain(name, m, n):
    return workload(name, [f"x: f32[{m},{n}]"], f"y: f32[{m},{n}]", ["y[i,j] = 1.0 / (1.0 + exp(-(max(x[i,j], 0.0) * 2.0 + 1.0)))"])


def gelu(name, m, n):
    return workload(name, [f"x: f32[{m},{n}]"], f"y: f32[{m},{n}]", [
        f"t[i,j]: f32[{m},{n}] = tanh(0.7978845608 * (x[i,j] + 0.044715 * x[i,j] * x[i,j] * x[i,j]))",
        "y[i,j] = 0.5 * x[i,j] * (1.0 + t[i,j])"])


def suite():
    """The fixed workloads, name -> text."""
    return named([
        gemm("gemm_bf16_1024", 1024, 1024, 1024),
        gemm("gemm_bf16_4096", 4096, 4096, 4096),
        gemm("gemm_bf16_8192", 8192, 8192, 8192),
        gemm("gemm_bf16_qkv_2048x12288x4096", 2048, 12288, 4096),
        gemm("gemm_bf16_ffn_128x4096x14336", 128, 4096, 14336),
        gemm("gemm_bf16_decode_16x14336x4096", 16, 14336, 4096),
        gemm("gemv_bf16_1x4096x14336", 1, 4096, 14336),
        bmm("bmm_fp16_96x512x512x64", 96, 512, 512, 64),
        gemm("gemm_fp32_2048", 2048, 2048, 2048, "f32"),
        gemm_bias_gelu("gemm_bias_gelu_bf16_4096x16384x4096", 4096, 16384, 4096),
        conv("conv_fp16_n32_c64_h56_k64_3x3", (32, 56, 56, 64), 64, 3),
        conv("conv_fp16_n32_c128_h28_k128_3x3", (32, 28, 28, 128), 128, 3),
        conv("conv_fp16_n32_c256_h14_k256_3x3", (32, 14, 14, 256), 256, 3),
        conv("conv_fp16_n32_c512_h7_k512_3x3", (32, 7, 7, 512), 512, 3),
        conv("conv_fp16_n32_c64_h56_k256_1x1", (32, 56, 56, 64), 256, 1),
        conv("conv_fp16_n32_stem_7x7", (32, 224, 224, 3), 64, 7, stride=2),
        dwconv("dwconv_fp16_n32_c144_h56_3x3", (32, 56, 56, 144), 3),
        softmax("softmax_fp16_8192x8192", 8192, 8192),
        layernorm("layernorm_fp16_8192x4096", 8192, 4096),
        rmsnorm("rmsnorm_fp16_8192x4096", 8192, 4096),
        row_sum("sum_fp16_8192x8192", 8192, 8192),
        transpose("transpose_fp16_8192x8192", 8192, 8192),
        chain("chain_fp32_4096x4096", 4096, 4096),
        gelu("gelu_fp32_8192x8192", 8192, 8192),
    ])


def types():
    """Workloads of other types and layouts than the suite's, name -> text: products of 8-bit floats, of integers, of tf32 and of f16, the
    grouped convolutions of ResNeXt-50 (32x4d), convolutions over NCHW, rows that become one number."""
    return named([
        gemm_e4m3("gemm_e4m3_4096", 4096, 4096, 4096),
        gemm_e4m3("gemm_e4m3_qkv_2048x12288x4096", 2048, 12288, 4096),
        gemm_i8("gemm_i8_4096", 4096, 4096, 4096),
        gemm_tf32("gemm_tf32_4096", 4096, 4096, 4096),
        gemm("gemm_fp16_4096", 4096, 4096, 4096, "f16"),
        conv("conv_grouped_fp16_n32_c128_h56_g32_3x3", (32, 56, 56, 128), 128, 3, groups=32),
        conv("conv_grouped_fp16_n32_c256_h56_g32_3x3_s2", (32, 56, 56, 256), 256, 3, stride=2, groups=32),
        conv("conv_grouped_fp16_n32_c256_h28_g32_3x3", (32, 28, 28, 256), 256, 3, groups=32),
        conv("conv_grouped_fp16_n32_c512_h14_g32_3x3", (32, 14, 14, 512), 512, 3, groups=32),
        conv("conv_grouped_fp16_n32_c1024_h7_g32_3x3", (32, 7, 7, 1024), 1024, 3, groups=32),
        conv_nchw("conv_nchw_fp16_n32_c64_h56_k64_3x3", (32, 56, 56, 64), 64, 3),
        conv_nchw("conv_nchw_fp16_n32_c256_h14_k256_3x3", (32, 14, 14, 256), 256, 3),
        logsumexp("logsumexp_fp16_8192x8192", 8192, 8192),
        argmax("argmax_fp16_8192x8192", 8192, 8192),
    ])


def f32_products():
    """Products of f32 without tensor cores, name -> text: even ones, and each extent odd in turn."""
    return named([
        gemm("gemm_f32_1024", 1024, 1024, 1024, "f32"),
        gemm("gemm_f32_4096", 4096, 4096, 4096, "f32"),
        gemm("gemm_f32_511x1024x2048", 511, 1024, 2048, "f32"),
        gemm("gemm_f32_512x1023x2048", 512, 1023, 2048, "f32"),
        gemm("gemm_f32_512x1024x2045", 512, 1024, 2045, "f32"),
        gemm("gemm_f32_700x701x703", 700, 701, 703, "f32"),
        gemm_kn("gemm_kn_f32_512x1023x2048", 512, 1023, 2048),
        gemm_kn("gemm_kn_f32_700x701x703", 700, 701, 703),
    ])


def limits():
    """Workloads that were found slower than a library, name -> text. Rows that the copy engine cannot fetch or store stand beside rows that it can."""
    return named([
        gemm("gemm_bf16_129x4096x14336", 129, 4096, 14336),
        gemm("gemm_bf16_257x4096x14336", 257, 4096, 14336),
        gemm("gemm_bf16_5120", 5120, 5120, 5120),
        gemm("gemm_bf16_4096x4096x4104", 4096, 4096, 4104),
        gemm("gemm_bf16_4096x4096x4097", 4096, 4096, 4097),
        gemm("gemm_bf16_237x5816x48", 237, 5816, 48),
        gemm("gemm_bf16_237x5817x49", 237, 5817, 49),
        gemm("gemm_f16_2856x4488x39", 2856, 4488, 39, "f16"),
        gemm("gemm_f16_2856x4489x39", 2856, 4489, 39, "f16"),
        gemm("gemm_f32_8x1x10", 8, 1, 10, "f32"),
        gemm("gemm_f32_1x1x1000000", 1, 1, 1000000, "f32"),
        gemm("gemm_f32_1853x3547x2293", 1853, 3547, 2293, "f32"),
        gemm("gemm_f32_2570x632x1274", 2570, 632, 1274, "f32"),
        gemm_kn("gemm_kn_f32_2807x1939x3690", 2807, 1939, 3690),
        softmax("softmax_fp16_1x221", 1, 221),
        column_sum("column_sum_fp16_8192x8192", 8192, 8192),
    ])


def drawn_gemm(source, name):
    m, n, k = source.randint(1, 257), log_uniform(source, 33, 6000) | 1, log_uniform(source, 33, 6000) | 1
    return gemm(f"gemm_{name}_{m}x{n}x{k}", m, n, k, source.choice(("bf16", "f16")))


def drawn_conv(source, name):
    n, h, w = source.randint(1, 9), log_uniform(source, 7, 75) | 1, log_uniform(source, 7, 75) | 1
    c, kernel, stride = log_uniform(source, 3, 300), source.choice((1, 3, 5)), source.choice((1, 2))
    if kernel > 1 and source.random() < 0.25:
        return dwconv(f"dwconv_{name}_n{n}_{h}x{w}_c{c}_{kernel}x{kernel}_s{stride}", (n, h, w, c), kernel, stride)
    k = log_uniform(source, 8, 300)
    return conv(f"conv_{name}_n{n}_{h}x{w}_c{c}_k{k}_{kernel}x{kernel}_s{stride}", (n, h, w, c), k, kernel, stride)


def drawn_rows(source, name):
    n = log_uniform(source, 1, 100_000)
    m = max(1, log_uniform(source, 64, 1 << 24) // n)
    family = source.choice((softmax, layernorm, rmsnorm, row_sum, transpose))
    if family is transpose:  # of one row or column is the same memory under another shape
        m, n = max(m, 2), max(n, 2)
    prefix = {row_sum: "sum"}.get(family, family.__name__)
    return family(f"{prefix}_{name}_{m}x{n}", m, n, source.choice(("f16", "f32")))


def drawn(count, seed):
    """`count` workloads of other shapes, name -> text: products with few rows and odd extents, convolutions of odd sizes, rows of 1 to
    100,000 elements in turn."""
    source = random.Random(seed)
    families = (drawn_gemm, drawn_conv, drawn_rows)
    return named(families[index % len(families)](source, f"r{index}") for index in range(count))


def drawn_f32_products(count, seed):
    """`count` products of f32 with extents of 33 to 3000, name -> text: drawn evenly and by their logarithms in turn, B stored either way."""
    source = random.Random(seed)

    def drawn_one(index):
        m, n, k = (source.randint(33, 3000) if index % 2 == 0 else log_uniform(source, 33, 3000) for _ in range(3))
        if source.random() < 0.5:
            return gemm_kn(f"gemm_kn_f32_r{index}_{m}x{n}x{k}", m, n, k)
        return gemm(f"gemm_f32_r{index}_{m}x{n}x{k}", m, n, k, "f32")

    return named(drawn_one(index) for index in range(count))


class Set(typing.NamedTuple):
    fixed: typing.Callable  # makes its workloads, name -> text
    drawn: typing.Callable  # makes others of other shapes, of a count and a seed


SETS = {"suite": Set(suite, drawn), "types": Set(types, drawn), "f32_products": Set(f32_products, drawn_f32_products),
        "limits": Set(limits, drawn)}


if __name__ == "__main__":
    print("# The suite of gpu_vs_libraries.sh, as gpu_workloads.py prints it, where it is explained.\n")
    print("\n".join(suite().values()), end="")

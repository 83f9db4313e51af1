"""The workloads of the GPU benchmarks mean what their names say: small ones of each family, compiled for this CPU, against NumPy in f64.
python3 gpu_workloads_test.py MYCC. Ends with status 77 without NumPy."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import gpu_vs_libraries
import gpu_workloads
import harness

sys.path.insert(0, str(harness.ROOT / "tests/e2e"))
import artifact_ctypes  # noqa: E402

MYCC = None
SUITE = harness.ROOT / "tests/perf/suite_gpu.te"


def bf16(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def e4m3(bits):
    """A sign, 4 bits of exponent, 3 of mantissa."""
    sign, exponent, mantissa = 1 - 2.0 * (bits >> 7), (bits >> 3 & 15).astype(int), (bits & 7) / 8
    return sign * numpy.where(exponent > 0, (1 + mantissa) * 2.0 ** (exponent - 7), mantissa * 2.0**-6)


def tf32(x):
    """Rounded to 10 bits of mantissa, to nearest even."""
    bits = x.astype(numpy.float32).view(numpy.uint32)
    return (bits + 0xFFF + (bits >> 13 & 1) & 0xFFFFE000).astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)


def gelu(x):
    return 0.5 * x * (1 + numpy.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def row(x, function):
    return numpy.stack([function(line) for line in x])


def conv(x, w, b, stride, groups=1):
    """Images [n,h,w,c], weights [k,r,s,c/groups], padded by half the kernel."""
    kernel = w.shape[1]
    pad = kernel // 2
    padded = numpy.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (1, 2))[:, ::stride, ::stride]  # n i j c r s
    n, i, j, c, r, s = windows.shape
    windows, w = windows.reshape(n, i, j, groups, c // groups, r, s), w.reshape(groups, -1, r, s, c // groups)
    return numpy.maximum(numpy.einsum("nijgcrs,gkrsc->nijgk", windows, w).reshape(n, i, j, -1) + b, 0)


def conv_nchw(x, w, b, stride):
    return conv(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), b, stride).transpose(0, 3, 1, 2)


# A small workload of each family, in each of its forms, and what it computes.
CASES = [
    (gpu_workloads.gemm("gemm_bf16", 5, 7, 9), lambda a, b: a @ b.T),
    (gpu_workloads.gemm("gemm_f16", 1, 8, 33, "f16"), lambda a, b: a @ b.T),
    (gpu_workloads.gemm("gemm_f32", 6, 4, 10, "f32"), lambda a, b: a @ b.T),
    (gpu_workloads.gemm_kn("gemm_kn_f32", 6, 5, 9), lambda a, b: a @ b),
    (gpu_workloads.gemm_tf32("gemm_tf32", 6, 4, 10), lambda a, b: tf32(a) @ tf32(b).T),
    (gpu_workloads.gemm_e4m3("gemm_e4m3", 6, 5, 18), lambda a, b, p, q: a @ b.T * p * q),
    (gpu_workloads.gemm_i8("gemm_i8", 6, 5, 18), lambda a, b: a @ b.T),
    (gpu_workloads.gemm_bias_gelu("gemm_bias_gelu", 5, 6, 7), lambda a, b, d: gelu(a @ b.T + d)),
    (gpu_workloads.bmm("bmm", 3, 4, 5, 6), lambda a, b: a @ b.transpose(0, 2, 1)),
    (gpu_workloads.conv("conv_3x3", (2, 7, 9, 5), 6, 3), lambda x, w, b: conv(x, w, b, 1)),
    (gpu_workloads.conv("conv_5x5_s2", (1, 9, 8, 3), 4, 5, 2), lambda x, w, b: conv(x, w, b, 2)),
    (gpu_workloads.conv("conv_7x7_s2", (1, 14, 14, 3), 4, 7, 2), lambda x, w, b: conv(x, w, b, 2)),
    (gpu_workloads.conv("conv_1x1", (2, 4, 3, 6), 5, 1), lambda x, w, b: conv(x, w[:, None, None], b, 1)),
    (gpu_workloads.conv("conv_1x1_s2", (2, 5, 4, 6), 5, 1, 2), lambda x, w, b: conv(x, w[:, None, None], b, 2)),
    (gpu_workloads.conv("conv_grouped_3x3", (2, 7, 9, 6), 9, 3, groups=3), lambda x, w, b: conv(x, w, b, 1, 3)),
    (gpu_workloads.conv("conv_grouped_5x5_s2", (1, 9, 8, 6), 4, 5, 2, groups=2), lambda x, w, b: conv(x, w, b, 2, 2)),
    (gpu_workloads.conv("conv_grouped_1x1", (2, 4, 3, 6), 4, 1, groups=2), lambda x, w, b: conv(x, w[:, None, None], b, 1, 2)),
    (gpu_workloads.conv_nchw("conv_nchw_3x3", (2, 7, 9, 5), 6, 3), lambda x, w, b: conv_nchw(x, w, b, 1)),
    (gpu_workloads.conv_nchw("conv_nchw_5x5_s2", (1, 9, 8, 3), 4, 5, 2), lambda x, w, b: conv_nchw(x, w, b, 2)),
    (gpu_workloads.dwconv("dwconv_3x3", (2, 6, 5, 4), 3), lambda x, w, b: conv(x, w[..., None], b, 1, 4)),
    (gpu_workloads.dwconv("dwconv_5x5_s2", (1, 8, 9, 4), 5, 2), lambda x, w, b: conv(x, w[..., None], b, 2, 4)),
    (gpu_workloads.softmax("softmax", 4, 33), lambda x: row(x, lambda line: numpy.exp(line) / numpy.exp(line).sum())),
    (gpu_workloads.layernorm("layernorm", 4, 33),
     lambda x, g, b: row(x, lambda line: (line - line.mean()) / numpy.sqrt(line.var() + 1e-5) * g + b)),
    (gpu_workloads.rmsnorm("rmsnorm", 4, 33, "f32"), lambda x, g: row(x, lambda line: line / numpy.sqrt((line**2).mean() + 1e-5) * g)),
    (gpu_workloads.row_sum("sum_rows", 4, 33), lambda x: x.sum(-1)),
    (gpu_workloads.column_sum("column_sum", 33, 4), lambda x: x.sum(0)),
    (gpu_workloads.logsumexp("logsumexp", 4, 33), lambda x: row(x, lambda line: numpy.log(numpy.exp(line).sum()))),
    (gpu_workloads.argmax("argmax_rows", 4, 33), lambda x: x.argmax(-1)),
    (gpu_workloads.transpose("transpose", 4, 7), lambda x: x.T),
    (gpu_workloads.chain("chain", 4, 7), lambda x: 1 / (1 + numpy.exp(-(numpy.maximum(x, 0) * 2 + 1)))),
    (gpu_workloads.gelu("gelu", 4, 7), gelu),
]
LARGEST_DIFFERENCE = {"bf16": 2**-7, "f16": 2**-10, "f32": 1e-5, "i32": 0}


def random_input(source, argument):
    """An array for an input, and its values in f64."""
    shape, dtype = argument["shape"], argument["dtype"]
    if dtype == "i8":
        array = source.integers(-128, 128, shape, numpy.int8)
    elif dtype == "f8e4m3":
        array = source.integers(0, 127, shape, numpy.uint8) | source.integers(0, 2, shape, numpy.uint8) << 7  # no NaN
        return array, e4m3(array)
    else:
        array = numpy.asarray(source.standard_normal(shape)).astype(numpy.float16 if dtype == "f16" else numpy.float32)
    if dtype == "bf16":
        array = (array.view(numpy.uint32) >> 16).astype(numpy.uint16)
        return array, bf16(array).astype(numpy.float64)
    return array, array.astype(numpy.float64)


def random_inputs(arguments):
    source = numpy.random.default_rng(0)
    return zip(*(random_input(source, argument) for argument in arguments))


def compile_for(target, texts):
    """mycc compiling workloads for a GPU that is elsewhere. NVRTC is in this Python's packages, or where mycc looks by itself."""
    environment = {"VIRTUAL_ENV": sys.prefix, **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "workloads.te"
        source.write_text("\n".join(texts))
        command = [MYCC, "compile", source, "--target", target, "-o", folder]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


class GpuWorkloadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source = pathlib.Path(cls.folder.name) / "small.te"
        source.write_text("\n".join(text for text, _ in CASES))
        subprocess.run([MYCC, "compile", source, "-o", cls.folder.name], check=True, stdout=subprocess.DEVNULL)
        cls.library = artifact_ctypes.Library(pathlib.Path(cls.folder.name) / "small.so")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_family_computes_what_numpy_does(self):
        self.assertEqual(len(self.library.functions), len(CASES))
        for function, (text, compute) in zip(self.library.description["functions"], CASES):
            name = function["name"].removeprefix("small_")
            with self.subTest(name):
                self.assertIn(f"workload {name}(", text)
                *inputs, output = function["args"]
                arrays, values = random_inputs(inputs)
                result, expected = self.library.call(name, *arrays), compute(*values)
                result = bf16(result) if output["dtype"] == "bf16" else result
                self.assertEqual(result.shape, expected.shape)
                tolerance = LARGEST_DIFFERENCE[output["dtype"]]
                numpy.testing.assert_allclose(result.astype(numpy.float64), expected, tolerance, tolerance)

    def test_suite_file_is_what_is_printed(self):
        printed = subprocess.run([sys.executable, "-B", gpu_workloads.__file__], capture_output=True, text=True, check=True).stdout
        self.assertEqual(SUITE.read_text(), printed)

    def test_suite_is_the_24_workloads(self):
        self.assertEqual(list(harness.workloads_of(SUITE)), list(gpu_workloads.suite()))
        self.assertEqual(len(gpu_workloads.suite()), 24)

    def test_types_are_others_than_the_suite(self):
        types, suite = gpu_workloads.types(), gpu_workloads.suite()
        self.assertEqual(len(types), 14)
        self.assertFalse(types.keys() & suite.keys())
        self.assertFalse(set(types.values()) & set(suite.values()))

    def test_limits_have_neighbours_that_are_aligned(self):
        names = gpu_workloads.limits().keys()
        self.assertFalse(names & (gpu_workloads.suite() | gpu_workloads.types()).keys())
        self.assertLessEqual({"gemm_bf16_4096x4096x4097", "gemm_bf16_4096x4096x4104"}, names)
        self.assertLessEqual({"gemm_f16_2856x4489x39", "gemm_f16_2856x4488x39"}, names)

    def test_f32_products_have_odd_extents_and_repeat(self):
        fixed, drawn = gpu_workloads.f32_products(), gpu_workloads.drawn_f32_products(20, seed=1)
        self.assertEqual(drawn, gpu_workloads.drawn_f32_products(20, seed=1))
        self.assertNotEqual(list(drawn), list(gpu_workloads.drawn_f32_products(20, seed=2)))
        for name, text in (fixed | drawn).items():
            self.assertRegex(name, "^gemm_(kn_)?f32_")
            self.assertNotRegex(text, "f16|tf32")
        shapes = [tuple(map(int, name.split("_")[-1].split("x"))) for name in drawn]
        self.assertTrue(all(33 <= extent <= 3000 for shape in shapes for extent in shape), shapes)
        self.assertTrue(all(any(shape[axis] % 4 for shape in shapes) for axis in range(3)), shapes)
        self.assertTrue(any("kn" in name for name in drawn) and any("kn" not in name for name in drawn))

    def test_work_is_counted_by_what_is_multiplied(self):
        arguments = argparse.Namespace(bin=pathlib.Path(MYCC).parent, work=pathlib.Path(self.folder.name), only="", random=0, set="types")
        works = {name: gpu_vs_libraries.work_of(arguments, path) for name, path in gpu_vs_libraries.write_workloads(arguments).items()}
        self.assertEqual(list(works), list(gpu_workloads.types()))
        operands = {name: work.operands for name, work in works.items() if name.startswith("gemm_")}
        self.assertEqual(operands, {"gemm_e4m3_4096": "f8e4m3", "gemm_e4m3_qkv_2048x12288x4096": "f8e4m3", "gemm_i8_4096": "i8",
                                    "gemm_tf32_4096": "tf32", "gemm_fp16_4096": "f16"})
        for name in ("gemm_e4m3_4096", "gemm_i8_4096", "gemm_tf32_4096", "gemm_fp16_4096"):
            self.assertAlmostEqual(works[name].operations / (2 * 4096**3), 1, 2)
        grouped = works["conv_grouped_fp16_n32_c128_h56_g32_3x3"]
        self.assertAlmostEqual(grouped.operations / (2 * 9 * 4 * 32 * 56 * 56 * 128), 1, 1)
        self.assertEqual(works["argmax_fp16_8192x8192"], (2 * 8192**2 + 4 * 8192, 0, "f16"))

    def test_drawn_workloads_are_accepted_and_repeat(self):
        drawn = gpu_workloads.drawn(150, seed=7)
        self.assertEqual(drawn, gpu_workloads.drawn(150, seed=7))
        self.assertNotEqual(list(drawn), list(gpu_workloads.drawn(150, seed=8)))
        source = pathlib.Path(self.folder.name) / "drawn.te"
        source.write_text("\n".join(drawn.values()))
        tasks = subprocess.run([MYCC, "tasks", source], capture_output=True, text=True, check=False)
        self.assertEqual((tasks.returncode, tasks.stderr), (0, ""))


class CompileTest(unittest.TestCase):
    """Default schedules, to machine code; no GPU is needed."""

    def expect_compiles(self, texts, quietly):
        for target in ("h200", "a100"):
            with self.subTest(target):
                compiled = compile_for(target, texts)
                if "libnvrtc.so.13 was not found" in compiled.stderr:
                    self.skipTest(compiled.stderr)
                self.assertEqual(compiled.returncode, 0, compiled.stderr)
                if quietly:
                    self.expect_few_spills(compiled.stderr)

    def expect_few_spills(self, warnings):
        """No warning but of threads that spill less than one line of a cache, 128 bytes."""
        for line in warnings.splitlines():
            spills = re.fullmatch(r"mycc: warning: \w+: a thread spills (\d+) bytes of its \d+ registers to memory", line)
            self.assertTrue(spills, line)
            self.assertLess(int(spills[1]), 128, line)

    def test_suite_and_other_shapes_compile(self):
        self.expect_compiles([*gpu_workloads.suite().values(), *gpu_workloads.drawn(12, seed=3).values()], quietly=True)

    def test_f32_products_compile(self):
        self.expect_compiles([*gpu_workloads.f32_products().values(), *gpu_workloads.drawn_f32_products(4, seed=3).values()], quietly=True)

    def test_types_compile(self):
        """ptxas notes of a grouped convolution's default that it waits where we do not."""
        self.expect_compiles(gpu_workloads.types().values(), quietly=False)


if __name__ == "__main__":
    MYCC = sys.argv.pop(1)
    unittest.main()

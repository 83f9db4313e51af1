"""The workloads of the GPU benchmarks mean what their names say: small ones of each family, compiled for this CPU, against NumPy in f64.
python3 gpu_workloads_test.py MYCC. Ends with status 77 without NumPy."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import gpu_workloads
import harness

sys.path.insert(0, str(harness.ROOT / "tests/e2e"))
import artifact_ctypes  # noqa: E402

MYCC = None
SUITE = harness.ROOT / "tests/perf/suite_gpu.te"


def bf16(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


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
    y = numpy.einsum("nijcrs,crs->nijc", windows, w[..., 0]) if groups > 1 else numpy.einsum("nijcrs,krsc->nijk", windows, w)
    return numpy.maximum(y + b, 0)


# A small workload of each family, in each of its forms, and what it computes.
CASES = [
    (gpu_workloads.gemm("gemm_bf16", 5, 7, 9), lambda a, b: a @ b.T),
    (gpu_workloads.gemm("gemm_f16", 1, 8, 33, "f16"), lambda a, b: a @ b.T),
    (gpu_workloads.gemm("gemm_f32", 6, 4, 10, "f32"), lambda a, b: a @ b.T),
    (gpu_workloads.gemm_bias_gelu("gemm_bias_gelu", 5, 6, 7), lambda a, b, d: gelu(a @ b.T + d)),
    (gpu_workloads.bmm("bmm", 3, 4, 5, 6), lambda a, b: a @ b.transpose(0, 2, 1)),
    (gpu_workloads.conv("conv_3x3", (2, 7, 9, 5), 6, 3), lambda x, w, b: conv(x, w, b, 1)),
    (gpu_workloads.conv("conv_5x5_s2", (1, 9, 8, 3), 4, 5, 2), lambda x, w, b: conv(x, w, b, 2)),
    (gpu_workloads.conv("conv_7x7_s2", (1, 14, 14, 3), 4, 7, 2), lambda x, w, b: conv(x, w, b, 2)),
    (gpu_workloads.conv("conv_1x1", (2, 4, 3, 6), 5, 1), lambda x, w, b: conv(x, w[:, None, None], b, 1)),
    (gpu_workloads.conv("conv_1x1_s2", (2, 5, 4, 6), 5, 1, 2), lambda x, w, b: conv(x, w[:, None, None], b, 2)),
    (gpu_workloads.dwconv("dwconv_3x3", (2, 6, 5, 4), 3), lambda x, w, b: conv(x, w[..., None], b, 1, 4)),
    (gpu_workloads.dwconv("dwconv_5x5_s2", (1, 8, 9, 4), 5, 2), lambda x, w, b: conv(x, w[..., None], b, 2, 4)),
    (gpu_workloads.softmax("softmax", 4, 33), lambda x: row(x, lambda line: numpy.exp(line) / numpy.exp(line).sum())),
    (gpu_workloads.layernorm("layernorm", 4, 33),
     lambda x, g, b: row(x, lambda line: (line - line.mean()) / numpy.sqrt(line.var() + 1e-5) * g + b)),
    (gpu_workloads.rmsnorm("rmsnorm", 4, 33, "f32"), lambda x, g: row(x, lambda line: line / numpy.sqrt((line**2).mean() + 1e-5) * g)),
    (gpu_workloads.row_sum("sum_rows", 4, 33), lambda x: x.sum(-1)),
    (gpu_workloads.transpose("transpose", 4, 7), lambda x: x.T),
    (gpu_workloads.chain("chain", 4, 7), lambda x: 1 / (1 + numpy.exp(-(numpy.maximum(x, 0) * 2 + 1)))),
    (gpu_workloads.gelu("gelu", 4, 7), gelu),
]
LARGEST_DIFFERENCE = {"bf16": 2**-7, "f16": 2**-10, "f32": 1e-5}


def random_inputs(arguments):
    """Arrays for a function's inputs, and their values in f64."""
    source = numpy.random.default_rng(0)
    arrays, values = [], []
    for argument in arguments:
        array = source.standard_normal(argument["shape"]).astype({"f16": numpy.float16}.get(argument["dtype"], numpy.float32))
        if argument["dtype"] == "bf16":
            array = (array.view(numpy.uint32) >> 16).astype(numpy.uint16)
            values.append(bf16(array).astype(numpy.float64))
        else:
            values.append(array.astype(numpy.float64))
        arrays.append(array)
    return arrays, values


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

    def test_suite_and_other_shapes_compile(self):
        texts = [*gpu_workloads.suite().values(), *gpu_workloads.drawn(12, seed=3).values()]
        for target in ("h200", "a100"):
            with self.subTest(target):
                compiled = compile_for(target, texts)
                if "libnvrtc.so.13 was not found" in compiled.stderr:
                    self.skipTest(compiled.stderr)
                self.assertEqual((compiled.returncode, compiled.stderr), (0, ""))


if __name__ == "__main__":
    MYCC = sys.argv.pop(1)
    unittest.main()

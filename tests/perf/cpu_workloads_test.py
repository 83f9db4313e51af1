"""The workloads of the CPU benchmarks mean the same to everybody: small ones of each family by mycc, by the libraries' programs, and by PyTorch
where this Python has it, on the same data, against NumPy in f64. python3 cpu_workloads_test.py BIN, the folder of mycc and peers_cpu. Ends with
status 77 without NumPy."""

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

import cpu_drawn_workloads
import cpu_newest
import cpu_workloads
import harness

sys.path.insert(0, str(harness.ROOT / "tests/e2e"))
import artifact_ctypes  # noqa: E402

BIN = None
FLOAT_TYPES, INTEGER_TYPES = ("f32", "bf16"), {"u8": numpy.uint8, "i8": numpy.int8}
LIBRARIES_HAVE_BF16 = "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text()  # oneDNN has none for AVX2


def gemm(inputs, spec):
    a, b, *bias = inputs
    return a @ (b.T if spec["transposed"] == "1" else b) + (bias[0] if bias else 0)


def to_nhwc(x, layout):
    if layout == "blocked" and x.ndim == 5:
        n, blocks, h, w, lanes = x.shape
        return x.transpose(0, 2, 3, 1, 4).reshape(n, h, w, blocks * lanes)
    return x if layout == "nhwc" else x.transpose(0, 2, 3, 1)


def from_nhwc(y, layout):
    if layout == "blocked":
        n, h, w, c = y.shape
        return y.reshape(n, h, w, c // 16, 16).transpose(0, 3, 1, 2, 4)
    return y if layout == "nhwc" else y.transpose(0, 3, 1, 2)


def windows_of(x, kernel, stride, dilation, pad, surrounding=0):
    """[n,i,j,c,r,s] of images [n,h,w,c]."""
    reach = (kernel - 1) * dilation + 1
    padded = numpy.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=surrounding)
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (reach, reach), (1, 2))
    return windows[:, ::stride, ::stride, :, ::dilation, ::dilation]


def conv(inputs, spec):
    x, w, *more = inputs
    c, k, kernel, stride, dilation, pad, groups = (int(spec[key]) for key in ("c", "k", "kernel", "stride", "dilation", "pad", "groups"))
    windows = windows_of(to_nhwc(x, spec["layout"]), kernel, stride, dilation, pad)
    n, i, j = windows.shape[:3]
    windows, w = windows.reshape(n, i, j, groups, c // groups, kernel, kernel), w.reshape(groups, k // groups, c // groups, kernel, kernel)
    y = numpy.einsum("nijgcrs,gkcrs->nijgk", windows, w).reshape(n, i, j, k) + (more[0] if more else 0)
    y = y + to_nhwc(more[1], spec["layout"]) if len(more) > 1 else y
    return from_nhwc(numpy.maximum(y, 0) if "relu" in spec["epilogue"] else y, spec["layout"])


def max_pool(inputs, spec):
    return windows_of(inputs[0], int(spec["kernel"]), int(spec["stride"]), 1, int(spec["pad"]), -numpy.inf).max((-2, -1))


def softmax(inputs, _):
    e = numpy.exp(inputs[0] - inputs[0].max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layernorm(inputs, _):
    x, g, b = inputs
    return (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


REFERENCES = {
    "gemm": gemm,
    "bmm": lambda inputs, _: inputs[0] @ inputs[1],
    "conv": conv,
    "max_pool": max_pool,
    "average_all": lambda inputs, _: inputs[0].mean((1, 2)),
    "softmax": softmax,
    "layernorm": layernorm,
    "transpose": lambda inputs, _: inputs[0].T,
    "gelu": lambda inputs, _: 0.5 * inputs[0] * (1 + numpy.tanh(0.7978845608 * (inputs[0] + 0.044715 * inputs[0]**3))),
    "chain": lambda inputs, _: 1 / (1 + numpy.exp(-(numpy.maximum(inputs[0], 0) * 2 + 1))),
}

CASES = [
    cpu_workloads.gemm("gemm_odd", 5, 7, 9),
    cpu_workloads.gemm("gemm_row", 1, 33, 40),
    cpu_workloads.gemm("gemm_column", 33, 1, 40),
    cpu_workloads.gemm("gemm_bf16", 5, 8, 33, "bf16"),
    cpu_workloads.gemm("gemm_u8", 6, 5, 18, "u8", "i8"),
    cpu_workloads.gemm("gemm_i8", 6, 17, 70, "i8", "i8"),
    cpu_workloads.linear("linear", 3, 10, 20),
    cpu_workloads.bmm("bmm", 3, 4, 5, 6),
    cpu_workloads.conv("conv_3x3", (2, 7, 9, 5), 6, 3),
    cpu_workloads.conv("conv_5x5_s2_d2", (1, 13, 12, 3), 4, 5, 2, 2),
    cpu_workloads.conv("conv_7x7_s2", (1, 14, 14, 3), 4, 7, 2),
    cpu_workloads.conv("conv_1x1", (2, 4, 3, 6), 5, 1, epilogue="bias"),
    cpu_workloads.conv("conv_1x1_s2_add", (2, 5, 4, 6), 5, 1, 2, epilogue="bias_add_relu"),
    cpu_workloads.conv("conv_grouped", (2, 7, 9, 6), 9, 3, groups=3),
    cpu_workloads.conv("conv_grouped_1x1", (1, 4, 3, 6), 4, 1, groups=2),
    cpu_workloads.conv("conv_nchw", (2, 7, 9, 5), 6, 3, layout="nchw"),
    cpu_workloads.conv("conv_nchw_grouped", (1, 6, 5, 8), 4, 3, 2, groups=2, layout="nchw"),
    cpu_workloads.conv("conv_blocked", (2, 7, 5, 32), 48, 3, layout="blocked"),
    cpu_workloads.conv("conv_blocked_stem", (1, 9, 8, 3), 32, 3, 2, layout="blocked"),
    cpu_workloads.conv("conv_blocked_1x1", (1, 4, 5, 32), 16, 1, layout="blocked"),
    cpu_workloads.conv("dwconv", (2, 6, 5, 4), 4, 3, groups=4),
    cpu_workloads.conv("dwconv_5x5_s2_d2", (1, 12, 11, 4), 4, 5, 2, 2, groups=4),
    cpu_workloads.conv("dwconv_blocked", (1, 6, 5, 32), 32, 3, groups=32, layout="blocked"),
    cpu_workloads.conv("conv_bf16", (1, 6, 5, 8), 16, 3, x="bf16"),
    cpu_workloads.conv("conv_u8", (1, 6, 5, 8), 16, 3, x="u8", w="i8"),
    cpu_workloads.conv("conv_i8_s2", (1, 7, 6, 8), 16, 3, 2, x="i8", w="i8"),
    cpu_workloads.max_pool("max_pool", (1, 8, 9, 5), 3, 2),
    cpu_workloads.average_all("average_all", (2, 3, 4, 5)),
    cpu_workloads.softmax("softmax", 4, 33),
    cpu_workloads.layernorm("layernorm", 4, 33),
    cpu_workloads.transpose("transpose", 19, 35),
    cpu_workloads.gelu("gelu", 4, 33),
    cpu_workloads.chain("chain", 4, 33),
]
LARGEST_DIFFERENCE = 4e-6  # of sums of at most some hundreds of products
# Without VNNI, oneDNN adds two products in 16 bits, which saturate, and halves weights of i8. Sums of 255 * 62 fit, and even numbers are
# halved exactly.
I8_VALUES = numpy.arange(-62, 63, 2, numpy.int8)
BF16_DIFFERENCE = 2**-7  # of results that PyTorch rounds


def random_input(source, argument):
    """An array as the artifact takes it, and its values in f64."""
    shape, dtype = argument["shape"], argument["dtype"]
    if dtype in INTEGER_TYPES:
        array = source.choice(I8_VALUES, shape) if dtype == "i8" else source.integers(0, 256, shape, numpy.uint8)
        return array, array.astype(numpy.float64)
    array = source.uniform(-1, 1, shape).astype(numpy.float32)
    if dtype == "bf16":
        array = (array.view(numpy.uint32) >> 16).astype(numpy.uint16)
        return array, (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return array, array.astype(numpy.float64)


def specification(text):
    family, _, rest = text.partition(":")
    return family, dict(pair.split("=") for pair in rest.split(","))


class CpuWorkloadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        source = cls.folder / "small.te"
        source.write_text("\n".join(case.text for case in CASES))
        subprocess.run([BIN / "mycc", "compile", source, "-o", cls.folder], check=True, stdout=subprocess.DEVNULL)
        cls.library = artifact_ctypes.Library(cls.folder / "small.so")
        numbers = numpy.random.default_rng(0)
        cls.inputs, cls.expected = {}, {}
        for case, function in zip(CASES, cls.library.description["functions"]):
            arrays, values = zip(*(random_input(numbers, argument) for argument in function["args"][:-1]))
            family, spec = specification(case.spec)
            expected = numpy.ascontiguousarray(REFERENCES[family](values, spec))
            cls.inputs[case.name] = arrays
            cls.expected[case.name] = expected.astype(numpy.int32 if case.operands in INTEGER_TYPES else numpy.float32)
            data = cls.folder / f"data_{case.name}"
            data.mkdir()
            for index, array in enumerate([*arrays, cls.expected[case.name]]):
                array.tofile(data / str(index))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def differences(self, command, case):
        lines = harness.measurements([*command, case.spec, self.folder / f"data_{case.name}", 0.0005])
        times = [who for who in lines if not who.endswith(".difference")]
        self.assertEqual({f"{who}.difference" for who in times}, lines.keys() - set(times))
        return {who: lines[f"{who}.difference"] for who in times}

    def test_mycc_computes_what_numpy_does(self):
        for case in CASES:
            with self.subTest(case.name):
                result, expected = self.library.call(case.name, *self.inputs[case.name]), self.expected[case.name]
                self.assertEqual(result.shape, expected.shape)
                numpy.testing.assert_allclose(result, expected, 1e-5, 1e-5)

    def test_libraries_compute_what_numpy_does(self):
        who = {}
        for case in CASES:
            with self.subTest(case.name):
                found = {}
                for library in ("onednn", "openblas", "loops"):
                    found |= self.differences([BIN / "peers_cpu", library], case)
                who[case.name] = set(found)
                self.assertTrue(found or case.operands == "bf16" and not LIBRARIES_HAVE_BF16)
                for way, difference in found.items():
                    self.assertLessEqual(difference, 0 if case.operands in INTEGER_TYPES else LARGEST_DIFFERENCE, way)
        self.assertEqual(who["gemm_odd"], {"onednn", "openblas.gemm"})
        self.assertEqual(who["gemm_row"], {"onednn", "openblas.gemm", "openblas.gemv"})
        self.assertEqual(who["gemm_column"], {"onednn", "openblas.gemm", "openblas.gemv"})
        self.assertEqual(who["bmm"], {"onednn", "openblas.loop", "openblas.parallel"})
        self.assertEqual(who["conv_1x1_s2_add"], {"onednn.binary", "onednn.in_place"})
        self.assertEqual(who["softmax"], {"onednn", "loops"})
        self.assertEqual(who["chain"], {"loops"})

    def test_pytorch_computes_what_numpy_does(self):
        python = next((python for python in cpu_newest.candidates() if cpu_newest.has_torch(python)), None)
        if python is None:
            self.skipTest("no Python here imports PyTorch")
        script = pathlib.Path(cpu_newest.__file__).with_name("cpu_newest_peer.py")
        for case in CASES:
            with self.subTest(case.name):
                found = self.differences([python, "-B", script], case)
                self.assertEqual(bool(found), "blocked" not in case.name and not case.name.startswith("conv_i8"))
                limit = {"bf16": BF16_DIFFERENCE, "f32": LARGEST_DIFFERENCE}.get(case.operands, 0)
                for way, difference in found.items():
                    self.assertLessEqual(difference, limit, way)

    def test_another_result_is_seen(self):
        case = CASES[0]
        data = self.folder / f"data_{case.name}"
        other = self.expected[case.name].copy()
        other[2, 3] += 0.5
        other.tofile(data / "2")
        try:
            size = max(abs(self.expected[case.name][2, 3]), float(numpy.sqrt((self.expected[case.name]**2).mean())))
            for difference in self.differences([BIN / "peers_cpu", "onednn"], case).values():
                self.assertAlmostEqual(difference, 0.5 / size, 2)
        finally:
            self.expected[case.name].tofile(data / "2")

    def test_data_of_another_size_are_refused(self):
        words = [BIN / "peers_cpu", "onednn", "softmax:m=4,n=34", self.folder / "data_softmax", "0.001"]
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has 528 bytes; expected 544", refused.stderr)

    def test_all_sets_and_drawn_workloads_are_accepted(self):
        source = self.folder / "all.te"
        texts = [one.text for make in cpu_workloads.SETS.values() for one in make().values()]
        source.write_text("\n".join(texts + [one.text for one in cpu_drawn_workloads.drawn(240, seed=7).values()]))
        tasks = subprocess.run([BIN / "mycc", "tasks", source], capture_output=True, text=True, check=False)
        self.assertEqual((tasks.returncode, tasks.stderr), (0, ""))


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1))
    unittest.main()

"""The attention workloads mean what their names say: small ones of each form by mycc for this CPU, by PyTorch where a Python has it and by ONNX
Runtime, against NumPy in f64. python3 attention_workloads_test.py MYCC. Ends with status 77 without NumPy."""

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

import attention_workloads
import cpu_newest
import harness
from small_attention import CAPPED, FORMS, small

sys.path.insert(0, str(harness.ROOT / "tests/e2e"))
import artifact_ctypes  # noqa: E402

MYCC = None
HERE = pathlib.Path(__file__).parent

CASES = [
    *FORMS,
    CAPPED,
    small("log_sum_exp", 1, 2, 8, 8, causal=True, lse=True),
    small("early", 1, 2, 8, 8, early=True),
    small("all_at_once", 3, 4, 9, 12, kv_heads=2, causal=True, window=8, cap=2.0, bias="tensor", padded=True, lse=True),
    small("half", 2, 2, 12, 12, dtype="f16", causal=True),
    small("half_early", 2, 2, 12, 12, dtype="f16", early=True),
    small("half_bias", 1, 2, 12, 12, dtype="f16", bias="tensor"),
    small("brain", 2, 2, 12, 12, dtype="bf16", causal=True),
    small("brain_grouped", 2, 4, 4, 20, dtype="bf16", kv_heads=2),
]
LARGEST_DIFFERENCE = {"f32": 1e-5, "f16": 2**-9, "bf16": 2**-6}


def seen(spec):
    """[b,i,j]: whether a query sees a key."""
    i, j = numpy.arange(spec.queries)[:, None] + spec.keys - spec.queries, numpy.arange(spec.keys)
    result = numpy.broadcast_to((j <= i) if spec.causal else True, (spec.batch, spec.queries, spec.keys)).copy()
    if spec.window:
        result &= i - j < spec.window
    if spec.padded:
        result &= j < numpy.array(spec.lengths())[:, None, None]
    return result


def attention(spec, q, k, v, *more):
    """The result, and the logarithm of the sums of exponentials."""
    k, v = (numpy.repeat(tensor, spec.groups, 1) for tensor in (k, v))
    scores = q @ k.swapaxes(2, 3) / spec.d**0.5
    scores = numpy.tanh(scores / spec.cap) * spec.cap if spec.cap else scores
    if spec.bias == "position":
        distance = numpy.arange(spec.queries)[:, None] + spec.keys - spec.queries - numpy.arange(spec.keys)
        scores = scores - more[-1][:, None, None] * distance
    if spec.bias == "tensor":
        scores = scores + more[-1]
    scores = numpy.where(seen(spec)[:, None], scores, -numpy.inf)
    exponentials = numpy.exp(scores - scores.max(-1, keepdims=True))
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / total @ v, (numpy.log(total) + scores.max(-1, keepdims=True))[..., 0]


def wide(array, dtype):
    """The values in f64; bf16 comes as its bits."""
    return ((array.astype(numpy.uint32) << 16).view(numpy.float32) if dtype == "bf16" else array).astype(numpy.float64)


def random_input(source, spec, argument):
    """The array of an input, as the artifact takes it."""
    shape, dtype = argument["shape"], argument["dtype"]
    if dtype == "i32":
        return numpy.array(spec.lengths(), numpy.int32)
    if spec.bias == "position" and len(shape) == 1:
        return numpy.array(spec.slopes(), numpy.float32)
    array = source.standard_normal(shape).astype(numpy.float16 if dtype == "f16" else numpy.float32)
    return (array.view(numpy.uint32) >> 16).astype(numpy.uint16) if dtype == "bf16" else array


def accepted(texts):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "all.te"
        source.write_text("\n".join(texts))
        tasks = subprocess.run([MYCC, "tasks", source], capture_output=True, text=True, check=False)
    return tasks.returncode, tasks.stderr


class MeaningTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        source = cls.folder / "small.te"
        source.write_text("\n".join(attention_workloads.text(case) for case in CASES))
        subprocess.run([MYCC, "compile", source, "-o", cls.folder], check=True, stdout=subprocess.DEVNULL)
        cls.library = artifact_ctypes.Library(cls.folder / "small.so")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_mycc_computes_what_numpy_does(self):
        numbers = numpy.random.default_rng(0)
        for case, function in zip(CASES, self.library.description["functions"], strict=True):
            with self.subTest(case.label):
                declared = [argument for argument in function["args"] if argument["kind"] == "input"]
                arrays = [random_input(numbers, case, argument) for argument in declared]
                expected = attention(case, *(wide(array, argument["dtype"]) for array, argument in zip(arrays, declared)))
                results = self.library.call(case.name, *arrays)
                results = results if case.lse else [results]
                self.assertEqual(len(results), 2 if case.lse else 1)
                for result, values, dtype in zip(results, expected, (case.dtype, "f32")):
                    self.assertEqual(result.shape, values.shape)
                    numpy.testing.assert_allclose(wide(result, dtype), values, LARGEST_DIFFERENCE[dtype], LARGEST_DIFFERENCE[dtype])

    def peer_differences(self, python, script, causal):
        """Way -> difference of a library's program, on data where ours is NumPy's result."""
        case = small("peer", 1, 3, 10, 10 if causal else 24, causal=causal)
        numbers = numpy.random.default_rng(1)
        arrays = [numbers.standard_normal((1, 3, length, 16)).astype(numpy.float32) for length in (case.queries, case.keys, case.keys)]
        data = self.folder / f"{pathlib.Path(script).stem}_{causal}"
        data.mkdir()
        for index, array in enumerate([*arrays, attention(case, *arrays)[0].astype(numpy.float32)]):
            array.tofile(data / str(index))
        spec = f"attention:batch=1,heads=3,queries={case.queries},keys={case.keys},d=16,causal={int(causal)},x=f32"
        lines = harness.measurements([python, "-B", HERE / script, spec, data, 0.0005])
        return {who.removesuffix(".difference"): number for who, number in lines.items() if who.endswith(".difference")}

    def check_peer(self, python, script, ways):
        for causal in (False, True):
            found = self.peer_differences(python, script, causal)
            self.assertEqual(found.keys(), ways)
            for way, difference in found.items():
                self.assertLess(difference, 1e-5, way)

    def test_pytorch_computes_what_numpy_does(self):
        python = next((python for python in cpu_newest.candidates() if cpu_newest.has_torch(python)), None)
        if python is None:
            self.skipTest("no Python here imports PyTorch")
        self.check_peer(python, "attention_torch_peer.py", {"torch.flash", "torch.math"})

    def test_onnxruntime_computes_what_numpy_does(self):
        if not cpu_newest.imports(sys.executable, "onnx, onnxruntime"):
            self.skipTest("this Python has no onnx or no ONNX Runtime (tests/requirements.txt)")
        self.check_peer(sys.executable, "attention_onnxruntime_peer.py", {"onnxruntime.attention", "onnxruntime.multi_head_attention"})


class SetTest(unittest.TestCase):
    def test_all_are_accepted(self):
        texts = [*attention_workloads.texts(attention_workloads.fixed()).values(), *attention_workloads.texts(attention_workloads.drawn(60, 7)).values()]
        texts += [one.text for dtype in ("f32", "bf16") for one in attention_workloads.cpu(dtype).values()]
        self.assertEqual(accepted(texts), (0, ""))

    def test_groups_have_what_they_are_named_for(self):
        specs = list(attention_workloads.fixed().values())
        counts = {group: sum(spec.group == group for spec in specs) for group in attention_workloads.GROUPS}
        self.assertEqual(counts, {"forward": 20, "decoding": 18, "variant": 8, "other": 11})
        self.assertEqual(len(specs), 57)
        for spec in specs:
            if spec.group == "forward":
                self.assertEqual((spec.batch * spec.queries, spec.heads * spec.d, spec.keys), (16384, 2048, spec.queries))
            if spec.group == "decoding":
                self.assertEqual((spec.heads, spec.groups, spec.d), (32, 8, 128))
        self.assertEqual({spec.d for spec in specs}, {32, 64, 96, 128, 192, 256})

    def test_drawn_ones_repeat(self):
        drawn = attention_workloads.drawn(30, 3)
        self.assertEqual(drawn, attention_workloads.drawn(30, 3))
        self.assertNotEqual(list(drawn), list(attention_workloads.drawn(30, 4)))
        self.assertEqual(len(drawn), 30)

    def test_pairs_are_counted_as_they_are_seen(self):
        """Up to the diagonal, which counts as half."""
        for case in CASES:
            if not (case.padded and case.causal):
                with self.subTest(case.label):
                    self.assertAlmostEqual(case.share_of_pairs(), seen(case).mean(), delta=0.5001 / case.keys if case.causal else 1e-9)
        self.assertEqual(attention_workloads.square("forward", "", 1024, 64, causal=True).share_of_pairs(), 0.5)

    def test_work_is_of_both_products_and_of_each_tensor_once(self):
        spec = attention_workloads.fixed()["forward_bf16_d128_4k"]
        self.assertEqual((spec.operations(), spec.byte_count()), (4 * 4 * 16 * 4096**2 * 128, 4 * 4 * 16 * 4096 * 128 * 2))
        decoding = attention_workloads.fixed()["decoding_bf16_b16_q1_4k"]
        self.assertEqual(decoding.byte_count(), 2 * (2 * 16 * 4 * 4096 * 128 + 2 * 16 * 32 * 128))
        both = attention_workloads.cpu("f32") | attention_workloads.cpu("bf16")
        self.assertEqual(len(both), 30)
        self.assertEqual(both["attention_f32_h12_d64_128_causal"].work, {"flops": 2 * 12 * 128**2 * 64, "bytes": 4 * 4 * 12 * 128 * 64})


if __name__ == "__main__":
    MYCC = sys.argv.pop(1)
    unittest.main()

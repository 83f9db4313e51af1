"""Artifacts on a GPU against PyTorch: every family of workload in odd shapes, with default and tuned schedules; streams, graphs, refusals.
python3 gpu_artifact_test.py BIN. Ends with status 77 where there is no GPU, or Python has no PyTorch that sees it."""

import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "perf"))  # where the sources are; an archive has all in one folder
import gpu_workloads  # noqa: E402
import harness  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    print("skipped: this Python has no PyTorch, or it sees no NVIDIA GPU")
    sys.exit(77)

import gpu_artifact  # noqa: E402
import gpu_peers  # noqa: E402
import gpu_results  # noqa: E402

BIN = None
BUILDERS = 8

SMALL = [
    gpu_workloads.gemm("gemm_bf16", 65, 129, 72),
    gpu_workloads.gemm("gemm_f16_odd", 33, 47, 51, "f16"),
    gpu_workloads.gemm("gemm_f32", 70, 30, 41, "f32"),
    gpu_workloads.gemm_tf32("gemm_tf32_small", 70, 40, 136),
    gpu_workloads.gemm_i8("gemm_i8_small", 70, 40, 136),
    gpu_workloads.gemm("gemv_bf16", 1, 320, 1000),
    gpu_workloads.gemm_bias_gelu("gemm_bias_gelu_bf16", 100, 96, 64),
    gpu_workloads.bmm("bmm_f16", 5, 60, 36, 40),
    gpu_workloads.conv("conv_3x3", (3, 13, 11, 24), 40, 3),
    gpu_workloads.conv("conv_1x1", (2, 9, 7, 33), 20, 1),
    gpu_workloads.conv("conv_stem_7x7_s2", (2, 30, 30, 3), 16, 7, 2),
    gpu_workloads.conv("conv_grouped_3x3_s2", (2, 15, 14, 24), 48, 3, 2, groups=6),
    gpu_workloads.conv_nchw("conv_nchw_3x3", (3, 13, 11, 24), 40, 3),
    gpu_workloads.dwconv("dwconv_3x3", (2, 15, 14, 24), 3),
    gpu_workloads.softmax("softmax_f16", 70, 1000),
    gpu_workloads.layernorm("layernorm_f16", 37, 513),
    gpu_workloads.rmsnorm("rmsnorm_f32", 37, 4096, "f32"),
    gpu_workloads.row_sum("sum_f16", 1, 100_000),
    gpu_workloads.logsumexp("logsumexp_f16", 37, 4097),
    gpu_workloads.argmax("argmax_f16", 37, 4097),
    gpu_workloads.transpose("transpose_f16", 65, 130),
    gpu_workloads.chain("chain_f32", 100, 1001),
    gpu_workloads.gelu("gelu_f32", 64, 1024),
]
if torch.cuda.get_device_capability() >= (8, 9):  # where PyTorch multiplies 8-bit floats
    SMALL.append(gpu_workloads.gemm_e4m3("gemm_e4m3_small", 64, 144, 208))
TUNED = ("gemm_bf16", "conv_3x3", "softmax_f16")


def name_of(text):
    return text.split("(")[0].split()[1]


class GpuArtifactTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def compile(self, text, *options):
        """The path of a workload's library."""
        name = name_of(text)
        source = self.folder / f"{name}.te"
        source.write_text(text)
        harness.run([BIN / "mycc", "compile", source, "--target", "cuda", *options, "-o", self.folder / name], capture_output=True)
        return self.folder / name / f"{name}.so"

    def bound(self, text, *options):
        """A call of a workload's function on random inputs; its inputs and output."""
        function = gpu_artifact.Function(self.compile(text, *options))
        inputs, (output,) = function.random_inputs("cuda", 0), function.empty_outputs("cuda")
        return function.bind([*inputs, output]), inputs, output

    def expect_as_pytorch(self, library):
        function = gpu_artifact.Function(library)
        inputs, (output,) = function.random_inputs("cuda", 0), function.empty_outputs("cuda")
        function.bind([*inputs, output])()
        peer = gpu_peers.Peer(library.stem, inputs, list(output.shape))
        gpu_results.check(library.stem, output, peer.result(), peer.rounding_of(function.arguments[-1]["dtype"]))

    def expect_all_as_pytorch(self, texts):
        with concurrent.futures.ThreadPoolExecutor(BUILDERS) as pool:
            compiled = {name_of(text): pool.submit(self.compile, text) for text in texts}
        for name, library in compiled.items():
            with self.subTest(name):
                self.expect_as_pytorch(library.result())

    def test_small_workloads_agree_with_pytorch(self):
        self.expect_all_as_pytorch(SMALL)

    def test_drawn_workloads_agree_with_pytorch(self):
        self.expect_all_as_pytorch(gpu_workloads.drawn(45, seed=11).values())

    def test_tuned_schedules_agree_with_pytorch(self):
        log = self.folder / "tuning.db"
        for text in (text for text in SMALL if name_of(text) in TUNED):
            library = self.compile(text)  # also writes the workload's file
            harness.run([BIN / "mycc-tune", "tune", self.folder / f"{library.stem}.te", "--target", "cuda", "--log", log, "--trials", "4"],
                        capture_output=True)
            with self.subTest(library.stem):
                self.expect_as_pytorch(self.compile(text.replace(library.stem, f"{library.stem}_tuned"), "--tuning-log", log, "--strict"))

    def test_products_of_8_bits_are_summed_within_their_tolerance(self):
        """At any depth within 2^-9 of the largest result, and of each where all are positive: docs/gpu.md."""
        for dtype in ("f8e4m3", "f8e5m2"):
            for m, n, k in ((200, 304, 4096), (192, 256, 160), (37, 53, 61)):
                text = gpu_workloads.workload(f"gemm_{dtype}_{k}", [f"a: {dtype}[{m},{k}]", f"b: {dtype}[{n},{k}]"], f"c: f32[{m},{n}]",
                                              [f"c[i,j] = sum[k:{k}](f32(a[i,k]) * f32(b[j,k]))"])
                function = gpu_artifact.Function(self.compile(text))
                for positive in (False, True):
                    inputs, (output,) = function.random_inputs("cuda", k), function.empty_outputs("cuda")
                    if positive:
                        inputs = [tensor.float().abs().to(tensor.dtype) for tensor in inputs]
                    function.bind([*inputs, output])()
                    a, b = (tensor.double() for tensor in inputs)
                    expected = a @ b.T
                    worst = ((output.double() - expected).abs() / (expected.abs() + expected.abs().max())).max().item()
                    print(f"{name_of(text)} {'positive' if positive else 'both signs'}: {worst:.2g}")
                    with self.subTest(name_of(text), positive=positive):
                        self.assertLess(worst, 2**-9)

    def test_products_of_bytes_are_exact(self):
        text = gpu_workloads.workload("gemm_i8", ["a: i8[200,512]", "b: i8[304,512]"], "c: i32[200,304]",
                                      ["c[i,j] = sum[k:512](i32(a[i,k]) * i32(b[j,k]))"])
        function = gpu_artifact.Function(self.compile(text))
        generator = torch.Generator("cuda").manual_seed(0)
        a, b = (torch.randint(-128, 128, (rows, 512), generator=generator, device="cuda", dtype=torch.int8) for rows in (200, 304))
        output = torch.empty((200, 304), device="cuda", dtype=torch.int32)
        function.bind([a, b, output])()
        self.assertTrue(torch.equal(output.long(), (a.double() @ b.double().T).long()))

    def test_call_follows_its_stream(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            call, (x,), y = self.bound(gpu_workloads.chain("chain_stream", 300, 1000))
            torch.cuda._sleep(50_000_000)
            x.fill_(1.0)
            call()
            after = y.clone()
        torch.cuda.synchronize()
        self.assertEqual(after.unique().numel(), 1, "the call did not wait for what was before it on its stream")

    def test_call_is_captured_into_a_graph(self):
        function = gpu_artifact.Function(self.compile(gpu_workloads.softmax("softmax_graph", 64, 256, "f32")))
        (x,), (y,) = function.random_inputs("cuda", 0), function.empty_outputs("cuda")
        function.bind([x, y])()  # what a capture must not do, loading and allocating, is done by the first call
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function.bind([x, y])()  # on the capturing stream
        for seed in range(3):
            x.copy_(torch.randn(x.shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda"))
            graph.replay()
            gpu_results.check("softmax_graph", y, torch.softmax(x, -1), "f32")

    def test_tensors_of_the_host_are_refused(self):
        function = gpu_artifact.Function(self.compile(gpu_workloads.transpose("transpose_refused", 64, 32)))
        on_device, on_host = torch.zeros(64, 32, dtype=torch.half, device="cuda"), torch.zeros(32, 64, dtype=torch.half)
        with self.assertRaisesRegex(harness.BenchmarkError, r"\by\b.*devi"):
            function.bind([on_device, on_host])()


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

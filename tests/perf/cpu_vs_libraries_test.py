"""The figures that cpu_vs_libraries.py makes of measurements: the best library, refused results, shares of peaks, the last figures."""

import argparse
import contextlib
import io
import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import attention_workloads
import cpu_newest
import cpu_shares
import cpu_vs_libraries
import cpu_workloads
import harness

PEAKS = {"f32_gops": 200.0, "f32_isa": "avx512", "bf16_gops": 3000.0, "bf16_isa": "amx", "i8_gops": 6000.0, "i8_isa": "amx",
         "read_gbs_1024": 400.0, "read_gbs_1048576": 100.0, "copy_gbs_1024": 200.0, "copy_gbs_1048576": 50.0}


def row(which, workload, ratio, newest=None):
    return cpu_vs_libraries.Row(which, workload, 2.0, "onednn", 2.0 * ratio, newest, cpu_shares.Share(0.5, "avx512"))


class FastestTest(unittest.TestCase):
    def test_is_the_least_time_of_all_programs(self):
        peers = [{"onednn": 3.0, "onednn.difference": 1e-6}, {"openblas.gemm": 4.0, "openblas.gemm.difference": 0.0, "openblas.gemv": 2.0,
                                                              "openblas.gemv.difference": 1e-7}, {}]
        self.assertEqual(cpu_vs_libraries.fastest("w", peers, 1e-3), ("openblas.gemv", 2.0))
        self.assertEqual(cpu_vs_libraries.fastest("w", [{}, {}], 1e-3), (None, None))

    def test_another_result_is_refused_whoever_has_it(self):
        for wrong in (2e-3, math.inf, math.nan):
            peers = [{"onednn": 3.0, "onednn.difference": wrong}, {"loops": 1.0, "loops.difference": 0.0}]
            with self.assertRaisesRegex(harness.BenchmarkError, "w: our result differs from onednn's"):
                cpu_vs_libraries.fastest("w", peers, 1e-3)


class SharesTest(unittest.TestCase):
    def setUp(self):
        self.peaks = cpu_shares.Peaks(PEAKS)

    def test_curve_lies_between_what_was_measured(self):
        curve = self.peaks.curves["read"]
        for size, rate in ((1, 400), (1024, 400), (32768, 250), (1048576, 100), (1 << 30, 100)):
            self.assertAlmostEqual(curve.at(size), rate)

    def test_products_are_held_against_arithmetic(self):
        gemm = cpu_workloads.gemm("gemm", 100, 100, 100)
        share = self.peaks.share(gemm, {"flops": 2e6, "bytes": 120_000}, 0.0125)
        self.assertAlmostEqual(share.value, 0.8)
        self.assertEqual(str(share), "80 % avx512")
        self.assertEqual(self.peaks.share(cpu_workloads.gemm("g", 9, 9, 9, "u8", "i8"), {"flops": 6e6, "bytes": 1}, 0.002), (0.5, "amx"))

    def test_one_row_is_held_against_memory(self):
        gemv = cpu_workloads.gemm("gemm", 1, 512, 512)
        self.assertEqual(self.peaks.share(gemv, {"flops": 2 * 512**2, "bytes": 1 << 20}, 0.01 * 1.048576), (1.0, "read"))

    def test_rows_are_read_and_written(self):
        share = self.peaks.share(cpu_workloads.gelu("gelu", 256, 512), {"flops": 1e12, "bytes": 1 << 20}, 0.04 * 1.048576)
        self.assertEqual((round(share.value, 6), share.peak), (0.5, "copy"))


class FiguresTest(unittest.TestCase):
    def test_each_table_has_its_own(self):
        gemm, narrow = cpu_workloads.gemm("a", 8, 8, 8), cpu_workloads.gemm("b", 8, 8, 8, "bf16")
        bytes_product, softmax = cpu_workloads.gemm("c", 8, 8, 8, "u8", "i8"), cpu_workloads.softmax("d", 8, 8)
        rows = [row("f32", gemm, 2.0, newest=1.0), row("f32", gemm, 0.5), row("f32", softmax, 3.0, newest=9.0), row("bf16", narrow, 4.0, newest=9.0),
                row("i8", bytes_product, 5.0), row("blocked", gemm, 0.1), row("random", gemm, 0.25), row("random", softmax, 0.125)]
        figures = cpu_vs_libraries.all_figures(rows)
        self.assertEqual(list(figures), [
            "geomean_f32_contractions", "min_f32", "geomean_f32_rows", "geomean_bf16", "geomean_i8", "geomean_f32_vs_newest", "geomean_f32_blocked",
            "random_geomean_f32_contractions", "random_min_f32", "random_geomean_f32_rows", "random_geomean_bf16", "random_geomean_i8",
            "attention_geomean_f32", "attention_min_f32", "attention_geomean_bf16", "attention_min_bf16"])
        for name, value in zip(figures, (1.0, 0.5, 3.0, 4.0, 5.0, 0.5, 0.1, 0.25, 0.125, 0.125)):
            self.assertAlmostEqual(figures[name], value)
        self.assertTrue(math.isnan(figures["random_geomean_bf16"]))
        self.assertTrue(math.isnan(figures["attention_geomean_f32"]))

    def test_attention_is_apart(self):
        f32, bf16 = (next(iter(attention_workloads.cpu(dtype).values())) for dtype in ("f32", "bf16"))
        figures = cpu_vs_libraries.all_figures([row("attention", f32, 2.0), row("attention", f32, 0.5), row("attention", bf16, 4.0)])
        known = {name: round(value, 9) for name, value in figures.items() if not math.isnan(value)}
        self.assertEqual(known, {"attention_geomean_f32": 1.0, "attention_min_f32": 0.5, "attention_geomean_bf16": 4.0, "attention_min_bf16": 4.0})


class AttentionTest(unittest.TestCase):
    def attention(self, isa):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            workloads = cpu_vs_libraries.attention(cpu_shares.Peaks(PEAKS | {"bf16_isa": isa}))
        return {one.operands for one in workloads.values()}, said.getvalue()

    def test_bf16_is_for_cpus_with_amx(self):
        self.assertEqual(self.attention("amx"), ({"f32", "bf16"}, ""))
        self.assertEqual(self.attention("avx512_bf16"), ({"f32"}, "no attention in bf16: this CPU has avx512_bf16 and no AMX\n"))

    def test_what_no_library_computes_is_said_and_left_out(self):
        sets = {"f32": {}, "attention": attention_workloads.cpu("f32") | attention_workloads.cpu("bf16")}
        for python, onnxruntime, left, reason in (("p", None, 30, None), (None, "p", 15, "PyTorch"), (None, None, 0, "PyTorch or ONNX Runtime")):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                kept = cpu_vs_libraries.without_peerless(sets, python, onnxruntime)
            self.assertEqual((list(kept), len(kept["attention"])), (["f32", "attention"], left))
            self.assertEqual(said.getvalue(), f"no comparison of {30 - left} attention workloads: no Python here has {reason}\n" if reason else "")
        self.assertEqual(cpu_vs_libraries.without_peerless({"f32": {}}, None, None), {"f32": {}})

    def test_a_row_has_the_better_library_and_pytorch(self):
        arguments = cpu_vs_libraries.parse_arguments(["--set", "attention", "--work", tempfile.gettempdir()])
        workload = next(iter(attention_workloads.cpu("f32").values()))
        comparison = cpu_vs_libraries.Comparison(arguments, cpu_shares.Peaks(PEAKS), "torch_python", "onnx_python")
        turns = [{"ours": 2.0}, {"torch.flash": 3.0, "torch.flash.difference": 0.0}, {"onnxruntime.attention": 1.0, "onnxruntime.attention.difference": 0.0}]
        with mock.patch.object(comparison, "in_turn", return_value=turns) as in_turn:
            found = comparison.row("attention", workload, None, None)
        self.assertEqual([command[0] for command in in_turn.call_args.args[3]], ["torch_python", "onnx_python"])
        self.assertEqual((found.ratio, found.newest_ratio, found.best), (0.5, 1.5, "onnxruntime.attention"))
        self.assertEqual(found.times, {"torch.flash": 3.0, "onnxruntime.attention": 1.0})


class NewestTest(unittest.TestCase):
    def find(self, folder, has_torch, make_environment=None):
        said = io.StringIO()
        with mock.patch.object(cpu_newest, "has_torch", has_torch), mock.patch.object(cpu_newest, "make_environment", make_environment), \
                contextlib.redirect_stdout(said):
            return cpu_newest.find_python(folder), said.getvalue()

    def test_a_pytorch_that_is_there_is_taken(self):
        self.assertEqual(self.find(pathlib.Path("/no/such/folder"), lambda python: True), (sys.executable, ""))

    def test_an_earlier_environment_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "bin/python3"
            python.parent.mkdir()
            python.touch()
            self.assertEqual(self.find(pathlib.Path(folder), lambda one: one == python), (python, ""))

    def test_what_cannot_be_installed_is_said_and_left_out(self):
        def fail(folder):
            raise harness.BenchmarkError("`pip install` failed with status 1: ERROR: one\nERROR: no network")

        self.assertEqual(self.find(pathlib.Path("/no/such/folder"), lambda python: False, fail),
                         (None, "no column of the newest libraries: ERROR: no network\n"))


class ArgumentsTest(unittest.TestCase):
    def test_sets_are_chosen_by_name(self):
        self.assertEqual(cpu_vs_libraries.set_names("all"), ("f32", "bf16", "i8", "blocked", "attention", "random"))
        self.assertEqual(cpu_vs_libraries.set_names("random,f32"), ("f32", "random"))
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "`f64` is no set; expected all, or some of f32,"):
            cpu_vs_libraries.set_names("f32,f64")

    def test_trials_are_at_most_256(self):
        self.assertEqual(cpu_vs_libraries.trial_count("256"), 256)
        for text in ("257", "-1", "many"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "expected 0 .* to 256"):
                cpu_vs_libraries.trial_count(text)

    def test_programs_are_of_a_folder_or_of_a_build(self):
        build = cpu_vs_libraries.parse_arguments(["--build", "there"])
        self.assertEqual((str(build.bin), str(build.work)), ("there/bin", "there/cpu_vs_libraries"))
        folder = cpu_vs_libraries.parse_arguments(["--bin", "here"])
        self.assertEqual((str(folder.bin), folder.work), ("here", harness.ROOT / "build/cpu_vs_libraries"))


if __name__ == "__main__":
    unittest.main()

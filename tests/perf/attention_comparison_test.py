"""How gpu_vs_libraries.py compares attention, draws the second families, and goes on with a run that was cut off. It needs no GPU: arrays of
NumPy take the place of PyTorch's tensors, and stand-ins that of its modules. Ends with status 77 without NumPy."""

import contextlib
import io
import json
import math
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import attention_comparison
import attention_workloads
import gpu_drawn_workloads
import gpu_progress
import gpu_vs_libraries
import gpu_workloads
import harness
from gpu_results_test import Tensor


def row(group, ratio, tune_seconds=2.0, **peers):
    return {"name": f"{group}_{ratio}", "group": group, "ours": 2.0, "ratio": ratio, "roof": 0.5, "operations": 2e12, "bytes": 4e9, "refused": {},
            "reason": "tuned", "seconds": 1.0, "tune_seconds": tune_seconds, **(peers or {"cudnn": 2.0 * ratio})}


def silently(call, *words):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        call(*words)
    return said.getvalue()


class FiguresTest(unittest.TestCase):
    def setUp(self):
        self.rows = [row("forward", 1.0), row("forward", 0.25), row("decoding", 3.0, tune_seconds=30.0),
                     row("variant", 0.5, cudnn=1.0, flex=8.0), row("variant", 2.0, cudnn=4.0), row("other", 4.0)]

    def test_each_group_has_its_own(self):
        figures = attention_comparison.figures(self.rows)
        expected = {"geomean_forward": 0.5, "min_forward": 0.25, "geomean_decoding": 3.0, "min_decoding": 3.0, "geomean_variants": 1.0,
                    "min_variants": 0.5, "geomean_others": 4.0, "min_others": 4.0, "geomean_variants_against_flex": 4.0, "tune_seconds_median": 2.0,
                    "tune_seconds_max": 30.0}
        self.assertEqual({name: round(value, 9) for name, (value, _) in figures.items()}, expected)
        self.assertEqual([count for _, count in figures.values()], [2, 2, 1, 1, 2, 2, 1, 1, 1, 6, 6])
        self.assertTrue(all(math.isnan(value) and count == 0 for value, count in attention_comparison.figures([]).values()))

    def test_what_is_asked_stands_beside_them(self):
        self.assertEqual(attention_comparison.asked("geomean_forward", 0.95), ("at least 0.95", "yes"))
        self.assertEqual(attention_comparison.asked("geomean_decoding", 1.49), ("at least 1.5", "no"))
        self.assertEqual(attention_comparison.asked("tune_seconds_max", 20.1), ("at most 20", "no"))
        self.assertEqual(attention_comparison.asked("geomean_variants", 1.0), ("-", "-"))
        self.assertEqual(attention_comparison.asked("min_forward", math.nan), ("-", "-"))

    def test_last_lines_are_names_and_values(self):
        lines = silently(attention_comparison.report, self.rows).splitlines()
        self.assertEqual(lines[-11], "geomean_forward: 0.500")
        self.assertEqual(lines[-1], "tune_seconds_max: 30.0")
        self.assertTrue(any(line.split() == ["geomean_forward", "2", "0.500", "at", "least", "0.95", "no"] for line in lines))

    def test_rates_are_of_operations_and_of_decoding_of_bytes(self):
        self.assertEqual(str(attention_comparison.rate(row("forward", 0.5))), "1000, 2000 TFLOP/s")
        self.assertEqual(str(attention_comparison.rate(row("decoding", 0.5))), "2.00, 4.00 TB/s")
        self.assertEqual(attention_comparison.remarks({**row("variant", 1.0, flex=4.0), "refused": {"flash": "no mask"}}),
                         "flex 4.0000; 1000, 500 TFLOP/s\n  flash refused: no mask")


class PeersTest(unittest.TestCase):
    """One sequence of one head, two queries, in f16."""

    spec = attention_workloads.Attention("other", "w", 1, 1, 2, 2, 2, dtype="f16")

    def setUp(self):
        self.right = numpy.array([[[[1.0, 2.0], [3.0, 4.0]]]]).view(Tensor)
        self.wrong = (self.right + [[0.0, 0.0], [0.0, 0.5]]).view(Tensor)

    def checked(self, ours, peers, rows):
        refused = {}
        calls = {who: lambda result=result: result for who, result in peers.items()}
        right = attention_comparison.checked(self.spec, [ours], [self.right[:, :, rows]], rows, calls, refused)
        return list(right), refused

    def test_a_wrong_peer_is_refused(self):
        right, refused = self.checked(self.right, {"flash": self.wrong, "cudnn": self.right}, [0, 1])
        self.assertEqual(right, ["cudnn"])
        self.assertRegex(refused["flash"], "its result is wrong: flash: 1 elements")

    def test_ours_is_compared_beyond_the_sample(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "other_f16_w, against cudnn: 1 elements"):
            self.checked(self.wrong, {"cudnn": self.right}, [0])

    def test_no_right_peer_is_an_error_with_the_reasons(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "no peer computes it: flash: its result is wrong"):
            self.checked(self.right, {"flash": self.wrong}, [0, 1])

    def test_second_results_are_checked(self):
        sums = numpy.zeros((1, 1, 2)).view(Tensor)
        attention_comparison.check_sample("w", self.spec, [self.right, sums], (self.right, sums), [0, 1])
        with self.assertRaisesRegex(harness.BenchmarkError, "w, log-sum-exp"):
            attention_comparison.check_sample("w", self.spec, [self.right, (sums + 1).view(Tensor)], (self.right, sums), [0, 1])

    def test_peers_far_behind_are_timed_a_few_times(self):
        timer, asked = mock.Mock(), []

        def milliseconds(calls, rounds):
            asked.append((sorted(calls), rounds))
            return {name: {"ours": 4.0, "cudnn": 1.0, "flash": 1.2, "efficient": 3.0}[name] * (1 if rounds == 8 else 1.1) for name in calls}

        timer.milliseconds = milliseconds
        times = attention_comparison.times_of(timer, None, {"cudnn": None, "flash": None, "efficient": None}, 100)
        self.assertEqual(asked, [(["cudnn", "efficient", "flash", "ours"], 8), (["cudnn", "flash", "ours"], 100)])
        self.assertEqual({name: round(value, 9) for name, value in times.items()}, {"ours": 4.4, "cudnn": 1.1, "flash": 1.32, "efficient": 3.0})


class FolderTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class ProgressTest(FolderTest):
    def progress(self, go_on=False, limit=60.0):
        return gpu_progress.Progress(self.folder / "results.json", go_on, limit)

    def test_rows_and_failures_are_kept(self):
        first = self.progress()
        first.add({"name": "a"})
        silently(first.fail, "b", "why")
        second = self.progress(go_on=True)
        self.assertEqual((second.has("a"), second.has("b"), second.has("c")), (True, True, False))
        self.assertEqual((self.progress().rows, self.progress().failures), ([], {}))

    def test_a_failure_is_one_workloads(self):
        progress = self.progress()

        def fail():
            with progress.watched("a"):
                raise TypeError("no such\nthing")

        with mock.patch.object(gpu_progress, "device_is_lost", lambda: False), mock.patch.object(gpu_progress, "restart") as restart:
            self.assertRegex(silently(fail), r"a: TypeError: no such\na: \d+\.\d s")
        restart.assert_not_called()
        self.assertEqual(json.loads((self.folder / "results.json").read_text())["failures"], {"a": "TypeError: no such"})
        self.assertIn("raise TypeError", (self.folder / "a.failure.txt").read_text())

    def test_a_lost_device_is_a_new_start(self):
        progress = self.progress()

        def fail():
            with progress.watched("a"):
                raise harness.BenchmarkError("an illegal memory access")

        with mock.patch.object(gpu_progress, "device_is_lost", lambda: True), mock.patch("os.execv") as execv, \
                mock.patch.object(sys, "argv", ["gpu_vs_libraries.py", "--set", "attention"]):
            silently(fail)
        execv.assert_called_once_with(sys.executable, [sys.executable, "-B", "gpu_vs_libraries.py", "--set", "attention", "--continue"])
        self.assertEqual(self.progress(go_on=True).failures, {"a": "an illegal memory access"})

    def test_what_does_not_end_is_a_new_start(self):
        """In a process of its own, which prints what it was started with."""
        program = self.folder / "program.py"
        program.write_text(f"import sys, time, pathlib\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport gpu_progress\n"
                           f"progress = gpu_progress.Progress(pathlib.Path({str(self.folder / 'results.json')!r}), '--continue' in sys.argv, 0.2)\n"
                           "if progress.has('a'):\n    sys.exit(f'{sys.argv[1:]} {progress.failures}')\n"
                           "with progress.watched('a'):\n    time.sleep(60)\n")
        with self.assertRaisesRegex(harness.BenchmarkError, r"\['--continue'\] \{'a': 'its comparison took more than 0.2 s'\}"):
            harness.run([sys.executable, "-B", program], capture_output=True)

    def test_large_workspaces_are_freed(self):
        progress = self.progress()
        with mock.patch.object(gpu_progress, "restart") as restart:
            progress.keep(gpu_progress.MOST_KEPT)
            restart.assert_not_called()
            progress.keep(1)
            restart.assert_called_once()


class CompareTest(FolderTest):
    def test_one_failure_does_not_end_the_run(self):
        """The second workload of three fails; PyTorch and the timer are stand-ins."""
        arguments = gpu_vs_libraries.parse_arguments(["--set", "attention", "--work", str(self.folder)])
        names = ["forward_bf16_d64_1k", "decoding_bf16_b1_q1_4k", "variant_bf16_window_d64_4k_causal"]
        libraries = {}
        for name in names:
            libraries[name] = self.folder / f"{name}.so"
            libraries[name].with_suffix(".json").write_text('{"functions": [{"workspace_bytes": 5}]}')

        def compare_one(arguments, timer, name, library):
            if name == names[1]:
                raise RuntimeError("out of memory")
            spec = attention_workloads.fixed()[name]
            more = {"group": spec.group, "refused": {"flash": "no mask"}, "operations": spec.operations(), "bytes": spec.byte_count()}
            return {"ours": 2.0, "cudnn": 3.0, "flex": 2.0}, "tuned", more

        ceilings = mock.Mock(roof_milliseconds=lambda *work: 1.0, __str__=lambda self: "copy")
        modules = {"gpu_timer": types.SimpleNamespace(ColdTimer=mock.Mock, Ceilings=lambda timer, operands: ceilings),
                   "torch": types.SimpleNamespace(cuda=mock.Mock())}
        progress = gpu_progress.Progress(self.folder / "results.json", False, 60)
        with mock.patch.dict(sys.modules, modules), mock.patch.object(gpu_vs_libraries, "set_up_torch"), \
                mock.patch.object(attention_comparison, "compare_one", compare_one):
            said = silently(gpu_vs_libraries.compare, arguments, {}, libraries, progress, {names[0]: 3.5})
        self.assertIn("variant_bf16_window_d64_4k_causal: ours 2.0000 ms, ratio 1.000; cudnn 3.0000, flex 2.0000; ", said)
        self.assertIn("decoding_bf16_b1_q1_4k: RuntimeError: out of memory\ndecoding_bf16_b1_q1_4k: 0.0 s\n", said)
        self.assertEqual(progress.kept_bytes, 15)
        results = json.loads((self.folder / "results.json").read_text())
        self.assertEqual([one["name"] for one in results["rows"]], [names[0], names[2]])
        self.assertEqual((results["rows"][0]["refused"], results["rows"][0]["tune_seconds"]), ({"flash": "no mask"}, 3.5))
        self.assertEqual(list(results["failures"]), [names[1]])
        silently(gpu_vs_libraries.report_all, arguments, gpu_progress.Progress(self.folder / "results.json", True, 60))


class OptionsTest(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            gpu_vs_libraries.parse_arguments(words)
        return said.getvalue()

    def test_second_families_are_drawn(self):
        self.assertIn("--families second needs --random N", self.refused("--families", "second"))
        self.assertIn("cannot be used with --set types", self.refused("--families", "second", "--random", "3", "--set", "types"))
        self.assertEqual(gpu_vs_libraries.parse_arguments(["--families", "second", "--random", "60"]).peers, ("eager",))

    def test_attention_has_all_peers(self):
        self.assertEqual(gpu_vs_libraries.parse_arguments(["--set", "attention", "--random", "3"]).peers, ("eager", "compile"))
        self.assertTrue(gpu_vs_libraries.parse_arguments(["--continue"]).resume)


class SecondFamiliesTest(unittest.TestCase):
    def test_are_three_in_turn_and_repeat(self):
        drawn = gpu_drawn_workloads.drawn(60, 1)
        self.assertEqual(drawn, gpu_drawn_workloads.drawn(60, 1))
        self.assertNotEqual(list(drawn), list(gpu_drawn_workloads.drawn(60, 2)))
        families = gpu_drawn_workloads.by_family(dict.fromkeys(drawn, 1.0))
        self.assertEqual({family: len(ratios) for family, ratios in families.items()}, {"f32_products": 20, "16_bit_products": 20, "rows": 20})

    def test_products_have_extents_of_their_family(self):
        for name in gpu_drawn_workloads.drawn(300, 5):
            if name.startswith("gemm_"):
                least, most = (1, 4000) if "_f32_" in name else (33, 6000)
                self.assertTrue(all(least <= int(extent) <= most for extent in name.split("_")[-1].split("x")), name)

    def test_are_no_others_workloads(self):
        self.assertFalse(gpu_drawn_workloads.drawn(60, 1).keys() & gpu_workloads.drawn(60, 1).keys())

    def test_each_family_has_figures(self):
        rows = [{"name": "gemm_kn_f32_s0_1x2x3", "ours": 1.0, "ratio": 0.5, "roof": 1.0, "reason": "tuned", "tune_seconds": None},
                {"name": "softmax_s2_3x4", "ours": 1.0, "ratio": 2.0, "roof": 1.0, "reason": "tuned", "tune_seconds": 1.0}]
        said = silently(gpu_vs_libraries.report, rows, True)
        self.assertIn("geomean: 1.000\ngeomean_memory_bound: 2.000\nmin: 0.500\ngeomean_f32_products: 0.500\nmin_f32_products: 0.500\n"
                      "geomean_rows: 2.000\nmin_rows: 2.000\n", said)


if __name__ == "__main__":
    unittest.main()

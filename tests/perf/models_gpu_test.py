"""Tests the parts of models_gpu.py that need no GPU: its models, its commands and its figures. python3 models_gpu_test.py"""

import argparse
import contextlib
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import export_models
import harness
import models_gpu

OCR = pathlib.Path("models/ch_ppocr_mobile_v2.0_cls_infer.onnx")


def row(name, peer, untuned=None, tuned=None):
    return models_gpu.Row(name, untuned, tuned, peer, 60.0 if tuned else None, 30.0, 1e-3)


def refusal(words):
    """The program's status and words as it ends for its arguments."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            models_gpu.parse_arguments(words)
        except SystemExit as end:
            return end.code, said.getvalue()
    return None, said.getvalue()


class CasesTest(unittest.TestCase):
    def test_exported_models_in_each_batch(self):
        arguments = models_gpu.parse_arguments(["--work", "w", "--batches", "1,32"])
        chosen = models_gpu.cases(arguments)
        self.assertEqual([case.name for case in chosen], [f"{name}_b{batch}" for batch in (1, 32) for name in export_models.NAMES])
        self.assertEqual({case.path.parent for case in chosen}, {pathlib.Path("w")})
        self.assertEqual(len({case.path for case in chosen}), len(chosen))
        self.assertEqual(chosen[0], models_gpu.Case("resnet50_b1", pathlib.Path("w/resnet50_f16_b1.onnx"), (), ("resnet50", 1)))

    def test_named_models_have_their_shapes(self):
        (case,) = models_gpu.cases(models_gpu.parse_arguments(["a/net.onnx", "--shape", "x=1x3", "--shape", "y=2"]))
        self.assertEqual(case, models_gpu.Case("net", pathlib.Path("a/net.onnx"), ("x=1x3", "y=2"), None))
        (case,) = models_gpu.cases(models_gpu.parse_arguments([str(OCR)]))
        self.assertEqual(case.shapes, ("x=1x3x48x192",))

    def test_file_names_tell_type_and_batch(self):
        names = [export_models.file_name("vit", batch, half) for batch in (1, 32) for half in (False, True)]
        self.assertEqual(names, ["vit.onnx", "vit_f16_b1.onnx", "vit_f32_b32.onnx", "vit_f16_b32.onnx"])


class ArgumentsTest(unittest.TestCase):
    def test_errors_are_said_in_words(self):
        for words, expected in ((["--mode", "fast"], "--mode: invalid choice: 'fast'"), (["--turns", "many"], "--turns: invalid int value"),
                                (["--batch-size", "1"], "unrecognized arguments"), (["--batches", "1,x"], "--batches: expected sizes such as 1,32"),
                                (["--batches", "0"], "--batches: expected sizes such as 1,32")):
            with self.subTest(words=words):
                status, said = refusal(words)
                self.assertEqual(status, 2, said)
                self.assertIn(expected, said)

    def test_no_model_matches(self):
        with mock.patch.object(sys, "argv", ["models_gpu.py", "--only", "nothing"]), \
                self.assertRaisesRegex(harness.BenchmarkError, "--only nothing: no model matches"):
            models_gpu.body()

    def test_a_log_to_compile_with_must_be_there(self):
        with mock.patch.object(sys, "argv", ["models_gpu.py", "--no-tune", "--log", "/nowhere/tuning.db"]), \
                self.assertRaisesRegex(harness.BenchmarkError, "--log: there is no /nowhere/tuning.db to compile with"):
            models_gpu.body()


class CommandsTest(unittest.TestCase):
    """The commands of one model."""

    def test_compile_takes_shapes_and_log(self):
        arguments = models_gpu.parse_arguments(["net.onnx", "--bin", "b", "--shape", "x=1x3"])
        (case,) = models_gpu.cases(arguments)
        with mock.patch.object(harness, "run") as run:
            library = models_gpu.compile_model(arguments, case, pathlib.Path("out"), pathlib.Path("t.db"))
        self.assertEqual(library, pathlib.Path("out/m.so"))
        self.assertEqual(" ".join(map(str, run.call_args[0][0])),
                         "b/mycc compile net.onnx --target cuda -o out --name m --quiet --shape x=1x3 --tuning-log t.db")

    def test_tune_takes_shapes_and_budget_and_keeps_what_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = models_gpu.parse_arguments(["net.onnx", "--bin", "b", "--work", folder, "--shape", "x=1x3", "--budget", "5s"])
            (case,) = models_gpu.cases(arguments)
            with mock.patch.object(harness, "run", return_value=argparse.Namespace(stdout="a job\n")) as run:
                self.assertGreaterEqual(models_gpu.tune(arguments, case, "t.db"), 0)
            self.assertEqual(" ".join(map(str, run.call_args[0][0])),
                             "b/mycc-tune tune net.onnx --log t.db --target cuda --budget 5s --shape x=1x3")
            self.assertEqual((pathlib.Path(folder) / "net.tune.txt").read_text(), "a job\n")


class FiguresTest(unittest.TestCase):
    def test_are_of_the_tuned_and_of_the_untuned_models(self):
        figures = models_gpu.figures([row("a", 4.0, 4.0, 1.0), row("b", 2.0, 8.0, 2.0), row("c", 1.0, 2.0)])
        self.assertEqual({name: round(value, 9) for name, value in figures.items()},
                         {"geomean_models": 2.0, "min_models": 1.0, "geomean_untuned": 0.5})
        self.assertTrue(all(math.isnan(value) for value in models_gpu.figures([]).values()))

    def test_ratio_is_above_1_where_ours_is_faster(self):
        self.assertEqual(row("a", 3.0).ratio(1.5), 2.0)
        self.assertIsNone(row("a", 3.0).ratio(None))

    def test_rows_are_printed_with_what_is_missing(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            models_gpu.print_rows([row("a", 3.0, 6.0, 1.5), row("b", 3.0, 6.0)], "max-autotune")
        lines = printed.getvalue().splitlines()
        self.assertIn("PyTorch max-autotune ms", lines[1])
        cells = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("a ", "b "))}
        self.assertEqual(cells["a"], ["6.0000", "1.5000", "3.0000", "0.500", "2.000", "60", "30", "1.0e-03"])
        self.assertEqual(cells["b"], ["6.0000", "-", "3.0000", "0.500", "-", "-", "30", "1.0e-03"])


class RunTest(unittest.TestCase):
    def test_one_failure_leaves_the_others_and_is_told(self):
        def compare(_arguments, case, _log):
            if case.name == "bad":
                raise RuntimeError("out of memory " + "x" * 1000)
            return row(case.name, 4.0, 4.0, 2.0)

        with tempfile.TemporaryDirectory() as folder:
            words = ["models_gpu.py", "bad.onnx", "good.onnx", "--work", folder]
            with mock.patch.object(sys, "argv", words), mock.patch.object(models_gpu, "compare", compare), \
                    contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaisesRegex(harness.BenchmarkError, "1 of 2 models failed and have no row above: bad"):
                models_gpu.body()
            results = json.loads((pathlib.Path(folder) / "results.json").read_text())
        self.assertEqual([one["name"] for one in results["rows"]], ["good"])
        self.assertTrue(results["failures"]["bad"].startswith("out of memory x"))
        self.assertLess(len(results["failures"]["bad"]), 600)
        self.assertEqual(printed.getvalue().splitlines()[-3:], ["geomean_models: 2.000", "min_models: 2.000", "geomean_untuned: 1.000"])

    def test_help_needs_no_torch(self):
        program = pathlib.Path(models_gpu.__file__)
        result = subprocess.run([sys.executable, "-B", "-S", program, "--help"], capture_output=True, text=True, check=True)
        self.assertIn("--batches", result.stdout)


if __name__ == "__main__":
    unittest.main()

"""The figures that models_cpu.py makes of measurements, and how models_timer.py measures. python3 models_cpu_test.py"""

import math
import pathlib
import sys
import unittest
from unittest import mock

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))

try:
    import ml_dtypes  # noqa: F401
    import numpy
    import onnxruntime  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import harness  # noqa: E402
import model_library  # noqa: E402
import models_cpu  # noqa: E402
import models_files  # noqa: E402
import models_timer  # noqa: E402


def row(name, untuned, tuned=None):
    """A row with ratios."""
    timings = [ratio and models_cpu.Timing(2.0, 2.0 * ratio, 0.0) for ratio in (untuned, tuned)]
    return models_cpu.Row(name, 1.0, timings[0], tuned and 60.0, timings[1])


class FiguresTest(unittest.TestCase):
    def test_are_of_the_tuned_and_of_the_untuned_models(self):
        figures = models_cpu.figures([row("a", 1.0, 4.0), row("b", 0.25, 1.0), row("c", 0.5)])
        self.assertEqual({name: round(value, 9) for name, value in figures.items()},
                         {"geomean_models": 2.0, "min_models": 1.0, "geomean_untuned": 0.5})
        self.assertTrue(all(math.isnan(value) for value in models_cpu.figures([]).values()))

    def test_another_result_is_refused(self):
        arguments = models_cpu.parse_arguments([])
        for apart, good in ((1e-4, True), (2e-3, False), (math.nan, False), (math.inf, False)):
            lines = {"ours": 1.0, "onnxruntime": 2.0, "difference": apart}
            with self.subTest(apart=apart), mock.patch.object(harness, "measurements", return_value=lines):
                if good:
                    self.assertEqual(models_cpu.time_model(arguments, "m.onnx", "m.so").ratio, 2.0)
                else:
                    with self.assertRaisesRegex(harness.BenchmarkError, "our result differs from ONNX Runtime's"):
                        models_cpu.time_model(arguments, "m.onnx", "m.so")

    def test_shapes_are_the_given_ones_or_the_models_own(self):
        path = pathlib.Path("build/models/ch_PP-OCRv4_det_infer.onnx")
        self.assertEqual(models_files.shapes_of(path, []), ("x=1x3x640x640",))
        self.assertEqual(models_files.shapes_of(path, ["x=1x3x32x32"]), ("x=1x3x32x32",))
        self.assertEqual(models_files.shapes_of(pathlib.Path("resnet50.onnx"), []), ())


class TimerTest(unittest.TestCase):
    def test_difference_is_relative_to_an_element_or_the_root_mean_square(self):
        reference = numpy.array([3.0, 4.0, 0.0, 0.0], numpy.float32)  # root mean square 2.5
        self.assertEqual(models_timer.difference(reference, reference), 0)
        self.assertAlmostEqual(models_timer.difference(reference + [0, 0, 0.25, 0], reference), 0.1)
        self.assertAlmostEqual(models_timer.difference(reference + [0, 1, 0, 0], reference), 0.25)
        self.assertEqual(models_timer.difference(reference * numpy.nan, reference), math.inf)
        self.assertEqual(models_timer.difference(reference[:3], reference), math.inf)

    def test_inputs_are_what_a_model_could_get(self):
        generator = numpy.random.default_rng(1)

        def drawn(name, dtype, *shape):
            return models_timer.random_input(model_library.Argument(name, "input", dtype, shape), generator)

        self.assertEqual(drawn("attention_mask", "i64", 1, 8).tolist(), [[1] * 8])
        words = drawn("input_ids", "i64", 1, 128)
        self.assertTrue(words.dtype == numpy.int64 and 0 <= words.min() < words.max() < 100)
        self.assertLessEqual(drawn("token_type_ids", "i64", 1, 128).max(), 1)
        image = drawn("x", "f32", 1, 3, 64, 192)
        self.assertTrue(image.dtype == numpy.float32 and -1 <= image.min() < image.max() <= 1)

    def test_turns_go_on_while_something_disturbs_them(self):
        calls = {"ours": 1.0, "onnxruntime": 2.0}
        for slow, expected in ((1.0, 4), (2.0, 12)):
            numbers = iter(range(100))

            def turn(milliseconds, seconds, slow=slow, numbers=numbers):
                return [milliseconds * (slow if next(numbers) >= 2 else 1.0)]

            with self.subTest(slow=slow), mock.patch.object(models_timer, "turn", side_effect=turn) as turns, mock.patch("sys.stderr"):
                medians = models_timer.take_turns(calls, 1.0, 4)
                self.assertEqual(turns.call_count, 2 * expected)
                self.assertEqual(medians, {"ours": slow, "onnxruntime": 2.0 * slow})


if __name__ == "__main__":
    unittest.main()

"""mycc-tune tune of a small ONNX model: one budget for all its kernels, its latency, and why the job ended.
python3 model_tuning_test.py MYCC_TUNE"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

MYCC_TUNE = None

# Runs on every x86-64 processor.
TARGET = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1"
SHAPES = {"a": [64, 64], "b": [64, 64], "c": [256, 512], "d": [40]}


def save_model(path):
    """Two equal kernels, one of another shape and one that does other work."""
    nodes = []
    for name in SHAPES:
        nodes.append(helper.make_node("Add", [name, name], [f"{name}_twice"]))
        nodes.append(helper.make_node("Relu", [f"{name}_twice"], [f"{name}_out"]))
    nodes.append(helper.make_node("Mul", ["d_out", "d"], ["d_product"]))
    outputs = {"a_out": "a", "b_out": "b", "c_out": "c", "d_product": "d"}
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES[like]) for name, like in outputs.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


class ModelTuningTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "small.onnx"
        save_model(self.model)

    def tune(self, *options, status=0):
        result = subprocess.run([MYCC_TUNE, "tune", self.model, "--log", self.folder / "tuning.db", "--target", TARGET, *map(str, options)],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout if status == 0 else result.stderr

    def test_kernels_share_the_trials(self):
        job = json.loads(self.tune("--trials", 9, "--json").splitlines()[-1])
        self.assertEqual((job["trials"], job["trials_planned"]), (9, 9))
        self.assertEqual(job["message"], "all trials are measured")
        self.assertEqual(sorted(task["count"] for task in job["tasks"]), [1, 1, 2])
        self.assertEqual(job["tasks_timed"], 3)
        self.assertAlmostEqual(job["latency_seconds"], sum(task["count"] * task["best_seconds"] for task in job["tasks"]), places=12)
        self.assertGreaterEqual(job["default_latency_seconds"], job["latency_seconds"])
        self.assertIn("nothing to tune", self.tune("--trials", 9))
        self.assertIn("the log already had the results", self.tune("--trials", 8))

    def test_latency_is_shown(self):
        text = self.tune("--trials", 6)
        self.assertIn(": 3 kernels for ", text)
        self.assertRegex(text, r"6 trials \(6 ok\)  model [\d.]+ us, was [\d.]+ us by default schedules")
        self.assertRegex(text, r"\nmodel +6 ")

    def test_defaults_are_said(self):
        # The spaces of such small kernels are used up at once.
        text = self.tune()
        self.assertIn("for 10m at most, and no longer than a minute gains 0.5%, results go to", text.splitlines()[0])
        self.assertIn("the spaces hold nothing new", text)

    def test_library_kernels_have_nothing_to_tune(self):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [3, 3]), ("y", []))]
        graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"])], "det", values[:1], values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.model)
        self.assertIn("small.onnx: nothing to tune: all launches are of library kernels", self.tune(status=1))

    def test_a_share_is_expected(self):
        for wrong in "much", "0", "-1%", "100%", "2":
            self.assertIn("--min-gain", self.tune("--min-gain", wrong, status=2))
        self.tune("--min-gain", "1%", "--trials", 3)


if __name__ == "__main__":
    MYCC_TUNE = sys.argv.pop(1)
    unittest.main()

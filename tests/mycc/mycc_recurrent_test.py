"""Recurrent networks on teams of threads: compiled, and called by `mycc run` and from Python. python3 mycc_recurrent_test.py MYCC

Ends with status 77 without the packages of tests/requirements.txt.
"""

import os
import pathlib
import sys
import threading
import unittest

try:
    import numpy
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import mycc  # noqa: E402
import mycc_case  # noqa: E402

FLOAT = onnx.TensorProto.FLOAT
STEPS, INPUTS = 12, 16
# One of each way to divide a call: by columns, by directions, by rows of the batch, and by several of them. The name, the operator, its
# gates, the hidden size, the batch, and other attributes.
LAYERS = [
    ("columns", "LSTM", 4, 330, 1, {}),
    ("waits", "GRU", 3, 300, 2, {"direction": "reverse"}),
    ("directions", "GRU", 3, 200, 1, {"direction": "bidirectional", "linear_before_reset": 1}),
    ("rows", "LSTM", 4, 96, 9, {}),
    ("all", "LSTM", 4, 256, 7, {"direction": "bidirectional", "clip": 0.5}),
    ("rnn", "RNN", 1, 260, 3, {"direction": "bidirectional"}),
    ("small", "RNN", 1, 20, 1, {}),
]


class RecurrentTest(mycc_case.MyccCase):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(1)
        nodes, inputs, outputs, weights, self.inputs = [], [], [], [], {}
        for name, operator, gates, hidden, batch, attributes in LAYERS:
            directions = 2 if attributes.get("direction") == "bidirectional" else 1
            lengths = numpy.arange(batch) % 3 * 5 + 2
            for part, shape in (("w", (directions, gates * hidden, INPUTS)), ("r", (directions, gates * hidden, hidden)), ("b", (directions, 2 * gates * hidden))):
                numbers = random.uniform(-1, 1, shape).astype(numpy.float32) / numpy.float32(hidden**0.5)
                weights.append(numpy_helper.from_array(numbers, f"{name}_{part}"))
            weights.append(numpy_helper.from_array(lengths.astype(numpy.int32), f"{name}_l"))
            names = [f"{name}_{part}" for part in ("x", "w", "r", "b", "l")]
            nodes.append(helper.make_node(operator, names, [f"{name}_y", f"{name}_h"], hidden_size=hidden, **attributes))
            inputs.append(helper.make_tensor_value_info(f"{name}_x", FLOAT, [STEPS, batch, INPUTS]))
            outputs.append(helper.make_tensor_value_info(f"{name}_y", FLOAT, [STEPS, directions, batch, hidden]))
            outputs.append(helper.make_tensor_value_info(f"{name}_h", FLOAT, [directions, batch, hidden]))
            self.inputs[f"{name}_x"] = random.uniform(-1, 1, (STEPS, batch, INPUTS)).astype(numpy.float32)
        model = self.folder / "m.onnx"
        onnx.save(helper.make_model(helper.make_graph(nodes, "m", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 20)]), model)
        self.succeeds("compile", model, "-o", self.folder / "out", "--target", "host")
        self.library = self.folder / "out" / "m.so"

    def results_with(self, threads):
        words = []
        for name, array in self.inputs.items():
            numpy.save(self.folder / f"{name}.npy", array)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        results = self.folder / f"results{threads}"
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "false"}
        self.succeeds("run", self.library, *words, "--output-dir", results, env=environment)
        return {path.stem: numpy.load(path) for path in results.iterdir()}

    def test_results_do_not_depend_on_the_number_of_threads(self):
        alone = self.results_with(1)
        self.assertEqual(len(alone), 2 * len(LAYERS))
        for array in alone.values():
            self.assertTrue(numpy.isfinite(array).all() and array.any())
        for threads in (2, 3, 8):
            for name, array in self.results_with(threads).items():
                self.assertEqual(array.tobytes(), alone[name].tobytes(), f"{name} with {threads} threads")

    def test_a_library_serves_two_threads_at_once(self):
        library, inputs = mycc.Library(self.library), list(self.inputs.values())
        expected, problems = [array.tobytes() for array in library.run(*inputs)], []

        def work():
            for _ in range(20):
                if [array.tobytes() for array in library.run(*inputs)] != expected:
                    problems.append("other results")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

"""Lock files: the same bytes again without the log, or what differs. python3 mycc_lock_test.py MYCC"""

import json
import pathlib
import sys
import unittest

try:
    import numpy
    import onnx
except ImportError:
    onnx = None

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402


class MyccLockTest(mycc_case.MyccCase):
    TARGET = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2"

    def setUp(self):
        super().setUp()
        self.lock = self.folder / "two.lock"
        self.succeeds("compile", self.te, "--target", self.TARGET, "-o", self.folder / "first", "--write-lock", self.lock)

    def contents(self, folder):
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()}

    def change(self, **values):
        lock = json.loads(self.lock.read_text())
        lock.update(values)
        self.lock.write_text(json.dumps(lock))

    def refused(self, message):
        self.fails(1, message, "compile", self.te, "-o", self.folder / "again", "--lock", self.lock)
        self.assertFalse((self.folder / "again").exists())

    def test_the_same_bytes_again(self):
        out = self.succeeds("compile", self.te, "-o", self.folder / "again", "--lock", self.lock)
        self.assertEqual(self.contents("first"), self.contents("again"))
        self.assertIn("from the lock file", out)

    def test_what_differs_is_named(self):
        good = self.lock.read_text()
        self.change(toolchain="llvm-1.0")
        self.refused("the toolchain is llvm-")
        self.lock.write_text(good)
        kernels = json.loads(good)["kernels"]
        self.change(kernels=kernels[:2])
        self.refused("the number of kernels is 3 here, and 2 in the lock file")
        self.change(kernels=[{**kernels[0], "code_digest": "0" * 64}, *kernels[1:]])
        self.refused("the code of workload scale is")
        self.change(kernels=[{**kernels[0], "workload_hash": "0" * 64}, *kernels[1:]])
        self.refused("workload scale is")
        self.lock.write_text(good)
        self.fails(1, "the target is", "compile", self.te, "--target", "znver3", "-o", self.folder / "again", "--lock", self.lock)

    def test_a_lock_file_that_cannot_be_written_leaves_no_library(self):
        self.fails(1, "nowhere/two.lock", "compile", self.te, "--target", self.TARGET, "-o", self.folder / "again", "--write-lock",
                   self.folder / "nowhere/two.lock")
        self.assertEqual(self.contents("again"), {})
        self.succeeds("compile", self.te, "--target", self.TARGET, "-o", self.folder / "new", "--write-lock", self.folder / "new/two.lock")
        self.assertEqual((self.folder / "new/two.lock").read_text(), self.lock.read_text())

    def test_no_lock_file(self):
        self.lock.write_text("{}")
        self.refused("is no lock file that `mycc compile --write-lock` wrote")
        self.lock.write_text(json.dumps({"mycc_lock": 9}))
        self.refused("is a lock file of version 9; expected 1")
        self.lock.unlink()
        self.refused("two.lock")


@unittest.skipIf(onnx is None, "the package onnx is not there")
class ModelLockTest(mycc_case.MyccCase):
    """A model of a convolution and a product, whose shape and a factor are options."""

    OPTIONS = ("--shape", "x=1x3x8x8", "--value", "factor=0.5")

    def setUp(self):
        super().setUp()
        self.lock = self.folder / "m.lock"
        self.model = self.save(self.folder / "m.onnx")

    def save(self, path, seed=0):
        random = numpy.random.default_rng(seed)
        weights = {"w": (4, 3, 3, 3), "m": (256, 10)}
        nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), onnx.helper.make_node("Flatten", ["a"], ["b"]),
                 onnx.helper.make_node("MatMul", ["b", "m"], ["c"]), onnx.helper.make_node("Mul", ["c", "factor"], ["y"])]
        shapes = {"x": ["n", 3, 8, 8], "factor": [], "y": ["n", 10]}
        values = {name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()}
        graph = onnx.helper.make_graph(
            nodes, "m", [values["x"], values["factor"]], [values["y"]],
            [onnx.numpy_helper.from_array(random.standard_normal(shape, dtype=numpy.float32), name) for name, shape in weights.items()])
        path.parent.mkdir(exist_ok=True)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
        return path

    def compiled(self, folder, *words, model=None, **options):
        out = self.folder / folder
        self.succeeds("compile", model or self.model, "-o", out, *words, **options)
        return {path.name: path.read_bytes() for path in out.iterdir()}

    def test_the_same_bytes_in_any_folder_and_run(self):
        first = self.compiled("first", *self.OPTIONS)
        self.assertEqual(sorted(first), ["dlpack.h", "m.h", "m.json", "m.so"])
        self.assertEqual(self.compiled("second", *self.OPTIONS), first)
        elsewhere = self.save(self.folder / "elsewhere/m.onnx")
        out = elsewhere.parent / "out"
        self.succeeds("compile", elsewhere.name, "-o", "out", *self.OPTIONS, cwd=elsewhere.parent)
        self.assertEqual({path.name: path.read_bytes() for path in out.iterdir()}, first)
        other = self.save(self.folder / "other/m.onnx", seed=1)
        self.assertNotEqual(self.compiled("third", *self.OPTIONS, model=other)["m.so"], first["m.so"])

    def test_the_same_options_give_the_same_bytes(self):
        for options in (self.OPTIONS, (*self.OPTIONS, "--dtype", "bf16")):
            first = self.compiled("first", *options, "--write-lock", self.lock)
            self.assertEqual(self.compiled("again", *options, "--lock", self.lock), first)

    def test_another_option_is_named(self):
        numpy.save(self.folder / "factor.npy", numpy.float32(0.5))
        shape, value, dtype = self.OPTIONS[:2], self.OPTIONS[2:], ("--dtype", "bf16")
        file = ("--value", f"factor={self.folder / 'factor.npy'}")
        self.compiled("first", *shape, *value, "--write-lock", self.lock)
        for message, words in (
            ("--shape x is 2x3x8x8 here, and 1x3x8x8 in the lock file", ("--shape", "x=2x3x8x8", *value)),
            ("--shape x is not given here, and 1x3x8x8 in the lock file", value),
            ("--value factor is 0.25 here, and 0.5 in the lock file", (*shape, "--value", "factor=0.25")),
            ("--value factor is not given here, and 0.5 in the lock file", shape),
            ("--value factor is a file of sha256 ", (*shape, *file)),
            ("--dtype is bf16 here, and not given in the lock file", (*shape, *value, *dtype)),
        ):
            self.fails(1, f"--lock: {message}", "compile", self.model, *words, "-o", self.folder / "again", "--lock", self.lock)
            self.assertFalse((self.folder / "again").exists())
        other = self.save(self.folder / "other/m.onnx", seed=1)
        self.fails(1, "the model (its weights, names or launches) is", "compile", other, *self.OPTIONS, "-o", self.folder / "again", "--lock",
                   self.lock)

    def test_another_model_is_named(self):
        self.compiled("first", *self.OPTIONS, "--write-lock", self.lock)
        other = "the model is another than that of the lock file, or is cut into other kernels: "
        for op, message in (("Relu", "workload "), ("Identity", "the number of kernels is 1 here, and 2 in the lock file")):
            model = onnx.load(self.model)
            del model.graph.node[2 if op == "Identity" else 3:]
            model.graph.node.append(onnx.helper.make_node(op, ["b" if op == "Identity" else "c"], ["y"]))
            onnx.save(model, self.folder / "other.onnx")
            self.fails(1, f"--lock: {other}{message}", "compile", self.folder / "other.onnx", *self.OPTIONS, "-o", self.folder / "again",
                       "--lock", self.lock)
        two = self.folder / "two.lock"
        self.succeeds("compile", self.te, "-o", self.folder / "two", "--write-lock", two)
        self.fails(1, "m.onnx is a model here, and a file of workloads in the lock file", "compile", self.model,
                   *self.OPTIONS, "-o", self.folder / "again", "--lock", two)
        self.assertFalse((self.folder / "again").exists())

    def test_the_time_of_a_library_kernel_is_not_expected(self):
        value, FLOAT = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
        node = onnx.helper.make_node
        for nodes, shape, is_known in (([node("Relu", ["x"], ["y"])], [3, 3], True),
                                       ([node("Relu", ["x"], ["a"]), node("Det", ["a"], ["y"])], [], False)):
            graph = onnx.helper.make_graph(nodes, "m", [value("x", FLOAT, [3, 3])], [value("y", FLOAT, shape)])
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), self.model)
            self.compiled("first", "--target", "host", "--write-lock", self.lock)
            lock = json.loads(self.lock.read_text())
            lock["kernels"][0]["expected_seconds"], lock["kernels"][0]["predicted_seconds"] = 0.25, 0.5
            self.lock.write_text(json.dumps(lock))
            out = self.succeeds("compile", self.model, "-o", self.folder / "out", "--lock", self.lock)
            self.assertIn("expected in all: 250.000 ms" + ("\n" if is_known else ", without 1 launch of unknown time\n"), out)
            (row,) = json.loads(self.succeeds("bench", self.folder / "out/m.so", "--json", "--repeat", 2))["functions"]
            self.assertEqual(row.get("expected_seconds"), 0.25 if is_known else None)
            (kernel,) = json.loads((self.folder / "out/m.json").read_text())["kernels"]
            self.assertEqual(kernel["predicted_seconds"], 0.5)

    def test_a_file_is_known_by_what_is_in_it(self):
        first, second = self.folder / "factor.npy", self.folder / "copy.npy"
        for path in (first, second):
            numpy.save(path, numpy.float32(0.5))
        shape = self.OPTIONS[:2]
        one = self.compiled("first", *shape, "--value", f"factor={first}", "--write-lock", self.lock)
        self.assertEqual(self.compiled("again", *shape, "--value", f"factor={second}", "--lock", self.lock), one)
        numpy.save(second, numpy.float32(0.75))
        self.fails(1, "--lock: --value factor is a file of sha256 ", "compile", self.model, *shape, "--value", f"factor={second}",
                   "-o", self.folder / "other", "--lock", self.lock)


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()

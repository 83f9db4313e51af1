"""Inputs of models whose values are known when they are compiled (--value). python3 mycc_value_test.py MYCC

Ends with status 77 without the packages of tests/requirements.txt.
"""

import json
import sys
import unittest

import mycc_model_test as models  # ends without the package onnx
import numpy
import onnx
from onnx import helper

sys.path.insert(0, str(models.pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
X = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)


class ValueCase(models.ModelCase):
    def save_node(self, operator, *inputs, **attributes):
        """A model of one node `node`, which reads x of f32[2,3,4] and these inputs."""
        node = helper.make_node(operator, ["x", *(one.name for one in inputs)], ["y"], name="node", **attributes)
        self.save([node], inputs=[models.value("x", X.shape), *inputs], outputs=[models.value("y", None)])

    def save_array(self, name, array):
        path = self.folder / f"{name}.npy"
        numpy.save(path, array)
        return path

    def arguments(self):
        return [row["name"] for row in json.loads((self.out / "m.json").read_text())["functions"][0]["args"]]

    def results(self, *words):
        """The output y of the library that is compiled with these options, whose only input is x."""
        self.compiles(*words)
        self.assertEqual(self.arguments(), ["x", "y"])
        x = self.save_array("x", X)
        self.succeeds("run", self.out / "m.so", "--input", f"x={x}", "--output-dir", self.folder / "results")
        return numpy.load(self.folder / "results/y.npy")


class KnownTest(ValueCase):
    def test_axes(self):
        self.save_node("ReduceSum", models.value("axes", ["n"], INT64), keepdims=0)
        for text, axes in (("0,2", (0, 2)), ("-1", (2,)), ("", (0, 1, 2))):
            numpy.testing.assert_array_equal(self.results("--value", f"axes={text}"), X.sum(axes))
        path = self.save_array("axes", numpy.array([1]))
        numpy.testing.assert_array_equal(self.results("--value", f"axes={path}", "--shape", "axes=1"), X.sum(1))

    def test_a_shape(self):
        self.save_node("Reshape", models.value("shape", [2], INT64))
        numpy.testing.assert_array_equal(self.results("--value", "shape=6,-1"), X.reshape(6, 4))

    def test_numbers_of_every_kind(self):
        for shape in ([], [1]):
            self.save_node("Mul", models.value("s", shape))
            numpy.testing.assert_array_equal(self.results("--value", "s=-0.5"), X * numpy.float32(-0.5))
        self.save_node("CumSum", models.value("axis", [], INT64))
        numpy.testing.assert_array_equal(self.results("--value", "axis=1"), X.cumsum(1))
        choose = helper.make_node("Where", ["c", "x", "b"], ["y"])
        self.save([choose], inputs=[models.value("c", [4], BOOL), models.value("x", X.shape), models.value("b", [4])])
        out = self.results("--value", "c=true,false,1,0", "--value", "b=1e1,inf,2,3")
        numpy.testing.assert_array_equal(out, numpy.where([True, False, True, False], X, numpy.array([10, numpy.inf, 2, 3], numpy.float32)))

    def test_a_file_of_any_rank(self):
        self.save_node("Add", models.value("z", X.shape))
        numpy.testing.assert_array_equal(self.results("--value", f"z={self.save_array('z', X * 2)}"), X * 3)

    def test_no_input_is_left(self):
        self.save_node("Relu")
        self.compiles("--value", f"x={self.save_array('x', X - 9)}")
        self.assertEqual(self.arguments(), ["y"])
        self.succeeds("run", self.out / "m.so", "--output-dir", self.folder / "results")
        numpy.testing.assert_array_equal(numpy.load(self.folder / "results/y.npy"), numpy.maximum(X - 9, 0))

    def test_other_commands_take_it(self):
        self.save_node("ReduceSum", models.value("axes", [2], INT64), keepdims=0)
        self.assertIn("1 distinct workload", self.succeeds("tasks", self.model, "--value", "axes=0,2"))
        self.assertIn("ReduceSum node", self.succeeds("explain", self.model, "--value", "axes=0,2"))

    def test_precision_is_checked_with_the_same_values(self):
        self.save_node("Mul", models.value("s", []))
        self.assertIn("largest deviation", self.succeeds("compile", self.model, "-o", self.out, "--dtype", "bf16", "--value", "s=3", "--check-random"))


class RefusalTest(ValueCase):
    def test_an_unknown_value_names_the_option(self):
        self.save_node("ReduceSum", models.value("axes", [2], INT64), keepdims=0)
        self.refused("m.onnx: node `node` (ReduceSum): input 1 (`axes`) is not known when the model is compiled; --value axes=... would fix it")
        self.save_node("Tile", models.value("repeats", [3], INT64))
        self.refused("input 1 (`repeats`) is not known when the model is compiled; --value repeats=... would fix it")
        nodes = [helper.make_node("Compress", ["x", "which"], ["some"], name="some"), helper.make_node("Neg", ["some"], ["y"], name="node")]
        self.save(nodes, inputs=[models.value("x", X.shape), models.value("which", [24], BOOL)], outputs=[models.value("y", None)])
        self.refused("input 1 (`which`) is not known when the model is compiled; --value which=... would fix it")
        self.compiles("--value", "which=" + ",".join(["1", "0"] * 12))

    def test_an_unknown_condition_names_the_option(self):
        branches = {}
        for name, operator in (("then_branch", "Relu"), ("else_branch", "Flatten")):
            result = f"{operator}_y"
            branches[name] = helper.make_graph([helper.make_node(operator, ["x"], [result])], name, [], [models.value(result, None)])
        self.save([helper.make_node("If", ["c"], ["y"], name="node", **branches)],
                  inputs=[models.value("x", X.shape), models.value("c", [], BOOL)], outputs=[models.value("y", None)])
        self.refused("by a condition that is not known when the model is compiled; --value c=... would fix it")
        self.compiles("--value", "c=false")

    def test_all_inputs_that_the_value_depends_on(self):
        nodes = [helper.make_node("Concat", ["a", "b"], ["both"], axis=0), helper.make_node("Neg", ["both"], ["shape"]),
                 helper.make_node("Reshape", ["x", "shape"], ["y"], name="node")]
        inputs = [models.value("x", X.shape), *(models.value(name, [1], INT64) for name in ("b", "unused", "a"))]
        self.save(nodes, inputs=inputs, outputs=[models.value("y", None)])
        self.refused("input 1 (`shape`) is not known when the model is compiled; --value b=... --value a=... would fix it")
        self.refused("; --value a=... would fix it", "--value", "b=-8")
        self.compiles("--value", "b=-8", "--value", "a=-3")
        self.assertEqual(self.arguments(), ["x", "unused", "y"])

    def test_values_that_do_not_fit(self):
        self.save_node("ReduceSum", models.value("axes", [2], INT64), keepdims=0)
        for text, message in (
            ("axis=0", "--value axis: the model has no such input; expected axes, x"),
            ("axes=0,1,2", "--value axes: has shape [3]; expected [2]"),
            ("axes=0,1.5", "--value axes: `1.5` is no number of type i64; expected such as 0,2, or FILE.npy"),
            ("axes=0,", "--value axes: `` is no number of type i64"),
            ("axes=0,99999999999999999999", "`99999999999999999999` is no number of type i64"),
            ("x=1,2", "--value x: `1,2`; expected FILE.npy for a value of rank 3"),
            (f"axes={self.folder}/none.npy", "none.npy"),
            (f"axes={self.save_array('i32', numpy.zeros(2, numpy.int32))}", "i32.npy` holds <i4; expected <i8 (i64)"),
            (f"axes={self.save_array('three', numpy.zeros(3, numpy.int64))}", "three.npy` has shape [3]; expected [2]"),
        ):
            self.refused(message, "--value", text)
        self.refused("--value axes: has shape [2], but --shape axes=3 says another; expected one of the two options",
                     "--value", "axes=0,2", "--shape", "axes=3")
        for words in (("axes",), ("=2",)):
            self.refused(f"--value: `{words[0]}`; expected NAME=0,2 or NAME=FILE.npy", "--value", *words, status=2)
        self.refused("--value: `axes` is given twice", "--value", "axes=0,2", "--value", "axes=0,2", status=2)
        self.fails(2, "--value is for models", "compile", self.te, "--value", "x=2", "-o", self.out)

    def test_numbers_of_a_type(self):
        self.save_node("Mul", models.value("s", []))
        for text in ("1,2", ""):
            self.refused(f"--value s: `{text}`; expected one number, for a value of rank 0", "--value", f"s={text}")
        self.refused("--value s: `1e99` is no number of type f32", "--value", "s=1e99")
        choose = helper.make_node("Where", ["c", "x", "x"], ["y"])
        self.save([choose], inputs=[models.value("c", [4], BOOL), models.value("x", X.shape)])
        self.refused("`2` is no value of type bool", "--value", "c=0,1,2,0")


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

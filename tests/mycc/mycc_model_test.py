"""Models that cannot be compiled are refused in words, and nothing is written. python3 mycc_model_test.py MYCC

Ends with status 77 without the packages of tests/requirements.txt.
"""

import pathlib
import re
import subprocess
import sys
import unittest

try:
    import numpy
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402

FLOAT, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
OPSET = [helper.make_opsetid("", 17)]
SUM = helper.make_node("Add", ["x", "w"], ["y"], name="sum")
W = numpy_helper.from_array(numpy.ones((2, 3), numpy.float32), "w")


def relu(source, result, name="", op="Relu", **attributes):
    return helper.make_node(op, [source], [result], name=name, **attributes)


def value(name, shape=(2, 3), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def external(**entries):
    """The tensor w of f32[2,3], whose data are elsewhere."""
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=onnx.TensorProto.EXTERNAL)
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


class ModelCase(mycc_case.MyccCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.onnx"
        self.out = self.folder / "out"

    def save(self, nodes, inputs=None, outputs=None, weights=(), opsets=None, functions=()):
        graph = helper.make_graph(nodes, "m", inputs or [value("x")], outputs or [value("y")], list(weights))
        model = helper.make_model(graph, opset_imports=OPSET if opsets is None else opsets, functions=functions)
        self.model.write_bytes(model.SerializeToString())

    def refused(self, message, *words, lines=(), status=1):
        """The last line of the errors, and those before it; no file is left."""
        result = self.mycc("compile", self.model, "-o", self.out, *words)
        self.assertEqual((result.returncode, result.stdout), (status, ""), result)
        *listing, last = result.stderr.splitlines()
        self.assertRegex(last, rf"\Amycc: .*{re.escape(message)}.*\Z")
        self.assertEqual([line.strip() for line in listing], list(lines))
        self.assertFalse(self.out.exists())

    def compiles(self, *words):
        self.succeeds("compile", self.model, "-o", self.out, *words)


class FileTest(ModelCase):
    def test_cut_off_anywhere(self):
        self.save([SUM], weights=[W])
        good = self.model.read_bytes()
        for length in (1, 10, len(good) // 2, len(good) - 1):
            self.model.write_bytes(good[:length])
            self.refused("m.onnx` is no ONNX model, or is cut off")

    def test_other_files(self):
        self.refused("No such file or directory")
        self.model.write_bytes(b"")
        self.refused("m.onnx` is no ONNX model: it has no graph")
        self.model.write_text("workload f(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] }\n")
        self.refused("m.onnx` is no ONNX model, or is cut off")
        self.model.unlink()
        self.model.mkdir()
        self.refused("m.onnx`: Is a directory")

    def test_external_data(self):
        data = self.folder / "w.bin"
        for tensor, message in (
            (external(location="w.bin"), "tensor `w`: cannot read its external data"),
            (external(location="."), "tensor `w`: cannot read its external data"),
            (external(location="../w.bin"), "external data at `../w.bin`; expected a path inside the model's folder"),
            (external(location="a/../../w.bin"), "expected a path inside the model's folder"),
            (external(location="/etc/hostname"), "expected a path inside the model's folder"),
            (external(), "external data without a location"),
            (external(location="w.bin", offset=-4), "external data with offset `-4`"),
            (external(location="w.bin", length=5), "external data of 5 bytes; expected 24 for its type and shape"),
        ):
            self.save([SUM], weights=[tensor])
            self.refused(message)
        data.write_bytes(b"1234567")
        self.save([SUM], weights=[external(location="w.bin")])
        self.refused("has 7 bytes; expected 24 from byte 0")
        data.write_bytes(bytes(24))
        self.compiles()
        for offset in (4, 2**63 - 1):
            self.save([SUM], weights=[external(location="w.bin", offset=offset)])
            self.out = self.folder / "other"
            self.refused(f"has 24 bytes; expected 24 from byte {offset}")

    def test_weights_that_are_not_there_ask_for_no_memory(self):
        tensor = external(location="w.bin")
        tensor.dims[:] = [2**20, 2**19]
        (self.folder / "w.bin").write_bytes(bytes(24))
        self.save([SUM], weights=[tensor])
        self.refused("has 24 bytes; expected 2199023255552 from byte 0")
        for dims, message in (([2**20, 2**19], "its data are not the 549755813888 elements of its shape"),
                              ([2**40, 2**40], "a tensor of more than 2^40 elements"), ([-1], "an extent of -1"),
                              ([1] * 20, "a tensor of rank 20; expected at most 16")):
            self.save([SUM], weights=[onnx.TensorProto(name="w", data_type=FLOAT, dims=dims)])
            self.refused(message)
        self.save([SUM], weights=[onnx.TensorProto(name="w", data_type=FLOAT, dims=[6], raw_data=b"1234")])
        self.refused("tensor `w`: has 4 bytes of data; expected 24 for FLOAT[6]")


class GraphTest(ModelCase):
    def test_names(self):
        first = helper.make_node("Add", ["x", "b"], ["a"], name="first")
        self.save([first, relu("a", "b"), relu("b", "y")])
        self.refused("m.onnx: the graph has a cycle through node `first` (Add)")
        self.save([SUM])
        self.refused("m.onnx: node `sum` (Add): reads `w`, which nothing defines")
        self.save([relu("x", "z")])
        self.refused("m.onnx: nothing defines the output `y`")
        self.save([relu("x", "y"), relu("x", "y", op="Abs")])
        self.refused("`y` is defined twice")
        self.save([relu("w", "x", "bad"), relu("x", "y")], weights=[W])
        self.refused("node `bad` (Relu): `x` is defined twice")
        self.save([relu("x", "w", "bad"), relu("w", "y")], weights=[W])
        self.refused("node `bad` (Relu): `w` is defined twice")
        self.save([SUM], weights=[W, W])
        self.refused("initializer `w` is there twice")
        self.save([relu("x", "y")], inputs=[value("x"), value("x")])
        self.refused("input `x` is declared twice")
        self.save([relu("x", "y")], outputs=[value("y"), value("y")])
        self.refused("output `y` is declared twice")

    def test_types_and_shapes(self):
        self.save([SUM], inputs=[value("x", (4, 5))], weights=[W])
        self.refused("node `sum` (Add): shapes [4,5] and [2,3] do not fit each other")
        self.save([SUM], inputs=[value("x", kind=INT32)], weights=[W])
        self.refused("node `sum` (Add): inputs of types INT32 and FLOAT; expected one type")
        self.save([relu("x", "y", "root", "Sqrt")], inputs=[value("x", kind=INT32)])
        self.refused("node `root` (Sqrt): input 0 is of type INT32; expected floats")
        self.save([relu("x", "y")], inputs=[value("x", kind=onnx.TensorProto.COMPLEX64)])
        self.refused("input `x`: elements of type COMPLEX64 are not supported")
        map_type = helper.make_map_type_proto(onnx.TensorProto.INT64, value("x").type)
        self.save([relu("x", "y")], inputs=[helper.make_value_info("x", map_type)])
        self.refused("input `x` of type map is not supported; expected a tensor")
        self.save([relu("x", "y", op="SequenceConstruct")])
        self.refused("output `y` is a sequence of 1; expected a tensor, as it is declared")
        self.save([relu("x", "s", op="SequenceConstruct"), relu("s", "y", "all")])
        self.refused("node `all` (Relu): input 0 is a sequence of 1; expected a tensor")

    def test_strings(self):
        text = helper.make_node("Constant", [], ["t"], value_string="text")
        names = helper.make_tensor("names", onnx.TensorProto.STRING, [2], ["a", "b"])
        self.save([text, relu("x", "y")], weights=[names])
        self.compiles()
        self.out = self.folder / "none"
        for source in ("t", "names"):
            self.save([text, relu(source, "y", "read")], weights=[names])
            self.refused("node `read` (Relu): input 0 is a tensor of strings, which are not supported here")
        texts = [value("x", kind=onnx.TensorProto.STRING)]
        self.save([relu("x", "y", "same", "Identity")], inputs=texts, outputs=[value("y", kind=onnx.TensorProto.STRING)])
        on_gpu = ("compile", self.model, "-o", self.folder / "gpu", "--target", "h200")
        self.fails(1, "m.onnx: input `x`: elements of type STRING are not supported on a GPU; expected a CPU target", *on_gpu)
        self.refused("--value x: values of type STRING are not supported", "--value", "x=a")
        self.save([relu("x", "y", "split", "StringSplit")], inputs=texts, opsets=[helper.make_opsetid("", 20)],
                  outputs=[value("y", (2, 3, None), onnx.TensorProto.STRING)])
        self.refused("node `split` (StringSplit): the most parts of a text are not known, which is not supported; maxsplit")
        self.save([relu("x", "y", "join", "StringConcat")], opsets=[helper.make_opsetid("", 20)])
        self.refused("node `join` (StringConcat): input 0 is f32[2,3]; expected strings")
        names.string_data[1] = b"b\0"
        self.save([relu("x", "y")], weights=[names])
        self.refused("tensor `names`: a string with a NUL is not supported")

    def test_library_kernels_are_for_cpus(self):
        self.save([helper.make_node("TopK", ["x", "k"], ["y", "i"], name="top"), relu("x", "z")],
                  outputs=[value("y", (2, 3)), value("i", (2, 3), onnx.TensorProto.INT64), value("z")],
                  weights=[helper.make_tensor("k", onnx.TensorProto.INT64, [1], [3])])
        out = self.succeeds("compile", self.model, "-o", self.folder / "both", "--target", "haswell")
        self.assertIn("2 launches of 1 kernel and the library kernel top_k; tensors", out)
        table = self.succeeds("explain", self.model, "--target", "haswell")
        self.assertRegex(table, r"top_k +i64\[2,3\] +i ")
        for command in (("compile", self.model, "-o", self.folder / "gpu"), ("tasks", self.model)):
            self.fails(1, "m.onnx: node `TopK top`: its operator is the library kernel `top_k`, which has no version for GPUs", *command,
                       "--target", "h200")
        self.save([helper.make_node("TopK", ["x", "k"], ["y", ""], name="top")], outputs=[value("y", (2, 3))],
                  weights=[helper.make_tensor("k", onnx.TensorProto.INT64, [1], [3])])
        out = self.succeeds("compile", self.model, "-o", self.folder / "both", "--target", "haswell")
        self.assertTrue(out.startswith("1 launch of the library kernel top_k; tensors"), out)

    def test_sizes_that_data_decide(self):
        self.save([relu("x", "n", "nz", "NonZero"), relu("n", "y", "same", "Identity")],
                  outputs=[value("y", (2, None), onnx.TensorProto.INT64)])
        on_gpu = ("compile", self.model, "-o", self.folder / "gpu", "--target", "h200")
        self.fails(1, "output `y`: a size that is known after the call is not supported on a GPU; expected a CPU target", *on_gpu)
        self.assertRegex(self.succeeds("explain", self.model), r"non_zero +i64\[2,6\] +y ")
        self.compiles()
        self.out = self.folder / "none"
        self.save([relu("x", "n", "nz", "NonZero"), relu("n", "y", "on", "Neg")], outputs=[value("y", (2, None), onnx.TensorProto.INT64)])
        self.refused("node `on` (Neg): input 0 has a size that node `nz` (NonZero) takes from its data; to compute on with such a size is not "
                     "supported; there input 0 (`x`) is not known when the model is compiled; --value x=... would fix it")

    def test_nodes(self):
        self.save([relu("x", "y", "sum", "Add")])
        self.refused("node `sum` (Add): has no input 1; expected one")
        self.save([helper.make_node("Relu", ["x"], ["y", "z"], name="two")])
        self.refused("node `two` (Relu): output 1 of the operator is not supported")
        self.save([relu("x", "y", "leak", "LeakyRelu", alpha="much")])
        self.refused("node `leak` (LeakyRelu): attribute alpha has another type; expected a float")
        self.save([relu("x", "y", "bad\n\x1b[31mname", "LeakyRelu", alpha="much")])
        self.refused("node `bad \\x1b[31mname` (LeakyRelu)")
        self.save([relu("x", "y", "bad\n  \x1b[31mname", "NoSuch")])
        self.refused("1 node is not supported", lines=["node `bad   \\x1b[31mname`: operator NoSuch, opset 17"])

    def test_operators_that_are_not_supported_are_listed_at_once(self):
        nodes = [relu("x", "a", "one", "NoSuch"), relu("a", "b"), relu("b", "c", "two", "Other", domain="com.acme"),
                 relu("c", "y", op="NoSuch")]
        self.save(nodes, opsets=[*OPSET, helper.make_opsetid("com.acme", 3)])
        self.refused("m.onnx: 3 nodes are not supported", lines=[
            "node `one`: operator NoSuch, opset 17",
            "node `two`: operator Other of domain com.acme, opset 3; expected one of ONNX's own domain, or a function that the model brings",
            "node `y`: operator NoSuch, opset 17",
        ])

    def test_opsets(self):
        self.save([SUM], weights=[W], opsets=[helper.make_opsetid("", 0)])
        self.refused("m.onnx: opset 0 is not supported; expected 1 to ")
        self.save([relu("x", "y", op="Gelu")])
        self.refused("1 node is not supported", lines=["node `y`: operator Gelu, opset 17; expected opset 20 or later"])

    def test_functions_that_call_each_other(self):
        def function(name, *calls):
            nodes = [relu(f"t{i}", f"t{i + 1}", op=call, domain="f") for i, call in enumerate(calls)]
            return helper.make_function("f", name, ["t0"], [f"t{len(calls)}"], nodes, OPSET)
        opsets = [*OPSET, helper.make_opsetid("f", 1)]
        self.save([relu("x", "y", op="F", domain="f")], opsets=opsets, functions=[function("F", "F")])
        self.refused("functions call each other too deeply")
        doubling = [function(f"F{i}", f"F{i - 1}", f"F{i - 1}") for i in range(1, 40)]
        leaf = helper.make_function("f", "F0", ["a"], ["b"], [relu("a", "b")], OPSET)
        self.save([relu("x", "y", op="F39", domain="f")], opsets=opsets, functions=[leaf, *doubling])
        self.refused("more than 262144 nodes, with those that calls of functions and graphs add")


class LibraryTest(ModelCase):
    """Libraries of models whose names are no identifiers."""

    def setUp(self):
        super().setUp()
        self.save([relu("in/x", "out/y"), relu("out/y", "*/ z=1", op="Abs")], inputs=[value("in/x")], outputs=[value("out/y"), value("*/ z=1")])
        self.compiles()
        self.library = self.out / "m.so"

    def test_the_header_is_c(self):
        source = self.folder / "main.c"
        source.write_text('#include "m.h"\nint main(void) { return 0; }\n')
        done = subprocess.run(["cc", "-Wall", "-Werror", "-fsyntax-only", f"-I{self.out}", source], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_run_writes_a_file_for_each_output(self):
        x = numpy.array([[-1, 2, 3], [4, -5, 6]], numpy.float32)
        numpy.save(self.folder / "x.npy", x)
        self.succeeds("run", self.library, "--input", f"in/x={self.folder / 'x.npy'}", "--output-dir", self.folder / "results")
        self.assertEqual(sorted(path.name for path in (self.folder / "results").iterdir()), ["*_ z=1.npy", "out_y.npy"])
        numpy.testing.assert_array_equal(numpy.load(self.folder / "results/out_y.npy"), numpy.maximum(x, 0))

    def test_two_libraries_of_a_model_are_compared(self):
        self.assertIn("same bits", self.succeeds("bench", self.library, self.library, "--repeat", "2"))
        other = self.folder / "other"
        self.save([relu("x", "y")])
        self.succeeds("compile", self.model, "-o", other)
        self.fails(1, "the libraries have no workload in common", "bench", self.library, other / "m.so")

    def test_a_profile_tells_each_kernels_time(self):
        self.succeeds("compile", self.model, "-o", self.out, "--profile")
        self.assertRegex(self.succeeds("bench", self.library, "--repeat", "2"), r"\nkernel +launches +time +share\n")

    def test_a_drawing_quotes_names(self):
        dot = self.succeeds("explain", self.model, "--dot")
        self.assertTrue(dot.startswith('digraph "m" {\n') and dot.endswith("}\n"), dot)


class OptionTest(ModelCase):
    def setUp(self):
        super().setUp()
        add = helper.make_node("Add", ["x", "z"], ["y"], name="sum")
        self.save([add], inputs=[value("x", ("n", 3)), value("z", (None, "m"))])

    def test_free_dimensions(self):
        self.refused("2 inputs have free dimensions; expected --shape NAME=1x3x48x192 for each",
                     lines=["`x`: [n,3]", "`z`: [?,m]"])
        self.refused("1 input has free dimensions", "--shape", "x=2x3", lines=["`z`: [?,m]"])
        self.compiles("--shape", "x=2x3", "--shape", "z=1x3")

    def test_shapes_that_do_not_fit(self):
        z = ("--shape", "z=2x3")
        self.refused("--shape x=2x4 does not fit `x`: [n,3]", "--shape", "x=2x4", *z)
        self.refused("--shape x=2 does not fit `x`: [n,3]", "--shape", "x=2", *z)
        self.refused("--shape q: the model has no such input; expected x, z", "--shape", "q=2", "--shape", "x=2x3", *z)
        self.refused("node `sum` (Add): shapes [4,3] and [2,3] do not fit", "--shape", "x=4x3", *z)
        for text in ("x=2xq", "x", "=2", "x=-1x3", "x=2x", "x="):
            self.refused(f"--shape: `{text}`; expected NAME=1x3x48x192", "--shape", text, status=2)
        self.refused("--shape: `x` is given twice", "--shape", "x=2x3", "--shape", "x=2x3", status=2)
        self.refused("unknown target", "--target", "nonsense", status=2)

    def test_sequences_and_optionals_are_their_tensors(self):
        tensor = helper.make_tensor_type_proto(FLOAT, (None, 3))
        inputs = [helper.make_value_info("s", helper.make_sequence_type_proto(tensor)),
                  helper.make_value_info("o", helper.make_optional_type_proto(tensor))]
        outputs = [helper.make_value_info("y", inputs[0].type), helper.make_value_info("p", inputs[1].type)]
        self.save([helper.make_node("Identity", ["s"], ["y"]), helper.make_node("Identity", ["o"], ["p"])], inputs=inputs, outputs=outputs)
        self.refused("1 input is a sequence of an unknown number of tensors; expected --shape NAME[0]=2x3", lines=["`s`: a sequence"])
        elements = ("--shape", "s[0]=2x3", "--shape", "s[1]=1x3")
        self.refused("1 input has free dimensions", *elements, lines=["`o`: [?,3]"])
        self.refused("--shape s=absent: the input is of type sequence; expected an optional", "--shape", "s=absent")
        self.refused("--shape s[0]=scalar does not fit `s[0]`: [?,3]", "--shape", "s[0]=scalar")
        self.refused("--shape: `o` is given twice", "--shape", "o=2x3", "--shape", "o=absent", status=2)
        self.compiles(*elements, "--shape", "o=absent", "--write-lock", self.folder / "lock")
        self.assertRegex((self.out / "m.h").read_text(), r"args\[0\]  s\[0\]: f32\[2, 3\]  input\n(.*\n){2}.*args\[3\]  y\[1\]: f32\[1, 3\]  output\n \*/")
        self.compiles(*elements, "--shape", "o=absent", "--lock", self.folder / "lock")
        self.fails(1, "--shape o", "compile", self.model, "-o", self.out, *elements, "--shape", "o=2x3", "--lock", self.folder / "lock")
        self.compiles("--shape", "s=empty", "--shape", "o=4x3")
        self.assertIn("p: f32[4,3]", self.succeeds("run", self.out / "m.so"))

    def test_options_for_workloads_or_models_alone(self):
        self.fails(2, "--shape is for models", "compile", self.te, "--shape", "x=2", "-o", self.out)
        self.fails(2, "--profile is for models", "compile", self.te, "--profile", "-o", self.out)

    def test_folders_that_cannot_be_written(self):
        shapes = ("--shape", "x=2x3", "--shape", "z=1x3")
        file = self.folder / "file"
        file.write_text("")
        for folder in (file, file / "below", pathlib.Path("/proc/none")):
            result = self.mycc("compile", self.model, *shapes, "-o", folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""), result)
            self.assertRegex(result.stderr, rf"\Amycc: .*`{re.escape(str(folder))}[^\n]*\n\Z")
        self.assertEqual(file.read_text(), "")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["file", "m.onnx", self.te.name])


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

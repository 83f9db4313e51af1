"""Models with strings, and with outputs whose size depends on data: compiled, called by `mycc run` and from Python. python3 mycc_text_test.py MYCC

Ends with status 77 without the packages of tests/requirements.txt.
"""

import pathlib
import sys
import threading
import unittest

try:
    import numpy
    import onnx
    from onnx import helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import mycc  # noqa: E402
import mycc_case  # noqa: E402

STRING, INT64, FLOAT = onnx.TensorProto.STRING, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT


class TextCase(mycc_case.MyccCase):
    def compile(self, nodes, inputs, outputs, constants=()):
        values = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
        graph = helper.make_graph(nodes, "m", *values, list(constants))
        model = self.folder / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]), model)
        self.succeeds("compile", model, "-o", self.folder / "out", "--target", "host")
        return self.folder / "out" / "m.so"

    def run_library(self, library, **inputs):
        """The text that `mycc run` prints, and the arrays that it writes."""
        words = []
        for name, array in inputs.items():
            numpy.save(self.folder / f"{name}.npy", array)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        printed = self.succeeds("run", library, *words, "--output-dir", self.folder / "results")
        return printed, {path.stem: numpy.load(path) for path in (self.folder / "results").iterdir()}


class RunTest(TextCase):
    def test_strings_come_and_go_as_numpys(self):
        library = self.compile(
            [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER", stopwords=["und"]),
             helper.make_node("StringConcat", ["x", "end"], ["z"])],
            [("x", STRING, [3])], [("y", STRING, [None]), ("z", STRING, [3])], [helper.make_tensor("end", STRING, [], ["!"])])
        texts = numpy.array(["käse", "UND", "brot"])
        printed, results = self.run_library(library, x=texts)
        self.assertEqual(printed, 'y: string[2]  "KÄSE" "BROT"\nz: string[3]  "käse!" "UND!" "brot!"\n')
        numpy.testing.assert_array_equal(results["y"], ["KÄSE", "BROT"])
        numpy.testing.assert_array_equal(results["z"], ["käse!", "UND!", "brot!"])
        self.assertEqual(results["z"].dtype, numpy.dtype("<U5"))
        numpy.save(self.folder / "f.npy", numpy.zeros(3, numpy.float32))
        self.fails(1, "holds <f4 [3]; argument `x` expects <U (string) [3]", "run", library, "--input", f"x={self.folder / 'f.npy'}")
        self.assertIn("m_run", self.succeeds("bench", library, "--repeat", "3"))
        self.assertIn("string[at most 3]", library.with_suffix(".h").read_text())

    def test_texts_are_moved_as_numbers_are(self):
        library = self.compile(
            [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Concat", ["t", "t"], ["c"], axis=1),
             helper.make_node("Gather", ["c", "i"], ["g"], axis=0), helper.make_node("Equal", ["g", "a"], ["e"]),
             helper.make_node("Where", ["e", "b", "g"], ["y"]), helper.make_node("Shape", ["c"], ["s"]),
             helper.make_node("LabelEncoder", ["g"], ["l"], domain="ai.onnx.ml", keys_strings=["a", "f"], values_strings=["A", "F"])],
            [("x", STRING, [2, 3]), ("i", INT64, [2])], [("y", STRING, [2, 4]), ("s", INT64, [2]), ("l", STRING, [2, 4])],
            [helper.make_tensor("a", STRING, [], ["a"]), helper.make_tensor("b", STRING, [1], ["long text in the library"])])
        x = numpy.array([["a", "b", "c"], ["d", "e", "f"]])
        _, results = self.run_library(library, x=x, i=numpy.array([0, -1]))
        expected = numpy.concatenate([x.T, x.T], axis=1)[[0, -1]]
        numpy.testing.assert_array_equal(results["y"], numpy.where(expected == "a", "long text in the library", expected))
        numpy.testing.assert_array_equal(results["s"], [3, 4])
        numpy.testing.assert_array_equal(results["l"], [["A", "_Unused", "A", "_Unused"], ["_Unused", "F", "_Unused", "F"]])

    def test_grams_of_strings_are_counted(self):
        library = self.compile(
            [helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 2],
                              ngram_indexes=[0, 1, 3, 2], pool_strings=["a", "b", "a", "b", "b", "c"])],
            [("x", STRING, [2, 4])], [("y", FLOAT, [2, 4])])
        _, results = self.run_library(library, x=numpy.array([["a", "b", "c", "a"], ["x", "a", "x", "b"]]))
        numpy.testing.assert_array_equal(results["y"], [[2, 1, 1, 1], [1, 1, 0, 0]])

    def test_constants_are_computed_when_a_model_is_compiled(self):
        library = self.compile(
            [helper.make_node("Constant", [], ["t"], value_strings=["a b", "c"]), helper.make_node("StringSplit", ["t"], ["y", "n"]),
             helper.make_node("Cast", ["n"], ["s"], to=STRING)],
            [], [("y", STRING, [2, None]), ("s", STRING, [2])])
        _, results = self.run_library(library)
        numpy.testing.assert_array_equal(results["y"], [["a", "b"], ["c", ""]])
        numpy.testing.assert_array_equal(results["s"], ["2", "1"])
        self.assertNotIn("at most", library.with_suffix(".h").read_text().replace('"at most', ""))

    def test_a_call_that_cannot_be_computed_fails(self):
        library = self.compile([helper.make_node("Cast", ["x"], ["y"], to=FLOAT)], [("x", STRING, [2])], [("y", FLOAT, [2])])
        numpy.save(self.folder / "x.npy", numpy.array(["1.5", "two"]))
        self.fails(1, "m_run: a text of a Cast is no number of its type: element 1 of its input", "run", library, "--input", f"x={self.folder / 'x.npy'}")


class PythonTest(TextCase):
    def test_each_call_tells_its_sizes(self):
        library = mycc.Library(self.compile(
            [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Identity", ["n"], ["same"]), helper.make_node("Unique", ["x"], ["y", "", "i", "c"]),
             helper.make_node("Cast", ["x"], ["t"], to=STRING)],
            [("x", FLOAT, [2, 3])],
            [("n", INT64, [2, None]), ("same", INT64, [2, None]), ("y", FLOAT, [None]), ("i", INT64, [6]), ("c", INT64, [None]), ("t", STRING, [2, 3])]))
        for x in ([[0, 1, 0], [2, 1, 0]], [[0, 0, 0], [0, 0, 0]], [[1, 2, 3], [4, 5, 6]]):
            x = numpy.array(x, numpy.float32)
            n, same, y, i, c, t = library.run(x)
            numpy.testing.assert_array_equal(n, numpy.nonzero(x))
            numpy.testing.assert_array_equal(same, n)
            values, inverse, counts = numpy.unique(x, return_inverse=True, return_counts=True)
            for got, expected in ((y, values), (i, inverse.reshape(-1)), (c, counts), (t, x.astype(str))):
                numpy.testing.assert_array_equal(got, expected)

    def test_only_texts_are_taken_as_texts(self):
        library = mycc.Library(self.compile([helper.make_node("StringConcat", ["x", "x"], ["y"])], [("x", STRING, [2])], [("y", STRING, [2])]))
        numpy.testing.assert_array_equal(library.run(numpy.array(["a", "ü"], object)), ["aa", "üü"])
        for x, message in (
            (numpy.ones(2), "run: x is an array of float64; expected NumPy's array of str"),
            (numpy.array([b"a", b"b"]), r"run: x is an array of \|S1; expected NumPy's array of str"),
            (numpy.array(["a", None]), "x: an element is of Python's type NoneType; expected str"),
            (numpy.array(["a", "b\0c"]), "x: an element has a NUL; expected texts without"),
            (["a", "b"], "run: x is of Python's type list; expected an array of NumPy"),
        ):
            with self.assertRaisesRegex(TypeError, message):
                library.run(x)
        x = numpy.array(["a", "b"])
        numpy.testing.assert_array_equal(library.run(x, out=numpy.zeros(2, numpy.uint64)), ["aa", "bb"])
        for out in (numpy.zeros(2), numpy.array(["", ""])):
            with self.assertRaisesRegex(TypeError, "run: `out` for y is an array of .*; expected uint64"):
                library.run(x, out=out)

    def test_a_library_without_inputs_gives_numpys_arrays(self):
        library = mycc.Library(self.compile([helper.make_node("Constant", [], ["y"], value_strings=["a", "b"])], [], [("y", STRING, [2])]))
        numpy.testing.assert_array_equal(library.run(), ["a", "b"])

    def test_texts_of_inputs_come_back_as_they_were(self):
        library = mycc.Library(self.compile([helper.make_node("Transpose", ["x"], ["y"])], [("x", STRING, [2, 3])], [("y", STRING, [3, 2])]))
        x = numpy.array([[letter * 40 for letter in row] for row in ("abc", "def")])
        numpy.testing.assert_array_equal(library.run(x), x.T)

    def test_threads_have_texts_of_their_own(self):
        library = mycc.Library(self.compile([helper.make_node("StringConcat", ["x", "x"], ["y"])], [("x", STRING, [50])], [("y", STRING, [50])]))
        problems = []

        def work(number):
            texts = numpy.array([f"{number}:{k}-" for k in range(50)])
            for _ in range(100):
                if (library.run(texts) != numpy.char.add(texts, texts)).any():
                    problems.append(number)

        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

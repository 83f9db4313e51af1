"""The runner of the stored cases itself: what passes, how a refusal or a crash is told, the figures. python3 conformance_test.py

A program that stands for mycc (fake_mycc.py) compiles one case right, and wrong in each way that the runner must notice.
"""

import contextlib
import io
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "perf"))

try:
    import ml_dtypes
    import numpy
    import onnx  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import comparison  # noqa: E402
import conformance  # noqa: E402
import conformance_case  # noqa: E402
import conformance_report  # noqa: E402
import harness  # noqa: E402
import isolated  # noqa: E402
import model_library  # noqa: E402
import stored_cases  # noqa: E402

FOLDER = pathlib.Path(__file__).parent


def array(dtype, *values):
    return numpy.array(values, dtype)


class ComparisonTest(unittest.TestCase):
    def test_tolerances_are_those_of_the_runner_of_onnx(self):
        one = array(numpy.float32, 1, 100)
        self.assertEqual(comparison.difference(array(numpy.float32, 1.0009, 100), one), "")
        self.assertIn("1 of 2 elements differ: element [0] is 1.00", comparison.difference(array(numpy.float32, 1.002, 100), one))
        zero = array(numpy.float32, 0)
        self.assertEqual(comparison.difference(array(numpy.float32, 0.9e-7), zero), "")
        self.assertNotEqual(comparison.difference(array(numpy.float32, 2e-7), zero), "")
        self.assertEqual(comparison.difference(array(numpy.float32, 9e-7), zero, comparison.tolerance_of("test_dft")), "")

    def test_nan_and_infinity_stand_for_themselves(self):
        special = array(numpy.float32, numpy.nan, numpy.inf, -numpy.inf)
        self.assertEqual(comparison.difference(special, special), "")
        for wrong in ((0, numpy.inf, -numpy.inf), (numpy.nan, -numpy.inf, -numpy.inf), (numpy.nan, 3e38, -numpy.inf)):
            self.assertNotEqual(comparison.difference(array(numpy.float32, *wrong), special), "")

    def test_shapes_and_types_must_be_the_same(self):
        self.assertEqual(comparison.difference(numpy.zeros((2, 1)), numpy.zeros(2)), "has shape [2, 1]; expected [2]")
        self.assertEqual(comparison.difference(numpy.zeros(2), numpy.zeros(2, numpy.float32)), "is float64; expected float32")
        self.assertEqual(comparison.difference(numpy.zeros((0, 3)), numpy.zeros((0, 3))), "")
        self.assertIn("the value is 1.0; expected 0.0", comparison.difference(numpy.ones(()), numpy.zeros(())))

    def test_every_type_is_compared(self):
        for dtype in (ml_dtypes.int2, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e8m0fnu,
                      ml_dtypes.bfloat16, numpy.bool_, numpy.uint64, numpy.int8):
            with self.subTest(dtype=dtype):
                one, other = numpy.array([1, 1]).astype(dtype), numpy.array([1, 0]).astype(dtype)
                self.assertEqual(comparison.difference(one, one), "")
                self.assertRegex(comparison.difference(other, one), r"^1 of 2 elements differ: element \[1\] is ")
        self.assertNotEqual(comparison.difference(array(numpy.uint64, 2**63 + 2**62), array(numpy.uint64, 2**63)), "")


class TypesTest(unittest.TestCase):
    def argument(self, dtype):
        return model_library.Argument("x", "input", dtype, (2,))

    def test_small_types_are_bytes(self):
        negative = array(ml_dtypes.int4, -1, 7)
        self.assertEqual(model_library.passed_as(negative, self.argument("i8")).tolist(), [-1, 7])
        self.assertEqual((model_library.passed_as(negative, self.argument("u8")) & 15).tolist(), [15, 7])
        for stored in (array(numpy.int8, -1, 7), array(numpy.uint8, 15, 7)):
            returned = model_library.returned_as(stored, ml_dtypes.int4, self.argument(f"{'u' if stored.dtype == numpy.uint8 else 'i'}8"))
            self.assertEqual(comparison.difference(returned, negative), "")
        bits = array(ml_dtypes.float8_e4m3fnuz, 1, -2)
        back = model_library.returned_as(model_library.passed_as(bits, self.argument("u8")), bits.dtype, self.argument("u8"))
        self.assertEqual(back.tolist(), [1, -2])

    def test_other_types_are_refused(self):
        with self.assertRaisesRegex(model_library.LibraryError, "^input x is i32; expected a type for float32$"):
            model_library.passed_as(array(numpy.float32, 1, 2), self.argument("i32"))
        with self.assertRaisesRegex(model_library.LibraryError, "^input x is u8; expected a type for int8$"):
            model_library.returned_as(array(numpy.uint8, 1, 2), numpy.int8, self.argument("u8"))


class ReasonTest(unittest.TestCase):
    def test_a_refusal_is_the_programs_line_without_the_file(self):
        reason = conformance_case.reason_of_refusal
        self.assertEqual(reason("mycc: `/a/b.onnx`: node 3: no\nmore\n", "/a/b.onnx"), "node 3: no")
        self.assertEqual(reason("\nmycc: /a/b.onnx: node 3: no\n", "/a/b.onnx"), "node 3: no")
        self.assertEqual(reason("", "/a/b.onnx"), "")
        listed = "  node `a`: operator A, opset 18\n  node `b`: operator B, opset 18\nmycc: /a/b.onnx: 2 nodes are not supported\n"
        self.assertEqual(reason(listed, "/a/b.onnx"),
                         "2 nodes are not supported:  node `a`: operator A, opset 18  node `b`: operator B, opset 18")

    def test_only_what_is_not_supported_counts_as_such(self):
        for line in ("operator Foo is not supported", "Unsupported type", "STFT: not yet supported"):
            self.assertEqual(conformance_case.status_of_refusal(line), conformance_case.UNSUPPORTED)
        for line in ("", "supported nothing", "node 3: shapes differ"):
            self.assertEqual(conformance_case.status_of_refusal(line), conformance_case.FAILED)

    def test_inputs_whose_values_are_asked_for(self):
        asks = "node `n` (Reshape): input 1 (`s`) is not known when the model is compiled"
        self.assertEqual(conformance_case.inputs_asked_for(f"{asks}; --value a=... --value b c=... would fix it"), ["a", "b c"])
        self.assertEqual(conformance_case.inputs_asked_for(asks), [])
        self.assertEqual(conformance_case.status_of_refusal(asks), conformance_case.UNSUPPORTED)
        self.assertEqual(conformance_report.group_of(f"{asks}; --value a=... would fix it"), conformance_report.group_of(asks))

    def test_reasons_are_grouped_without_their_numbers(self):
        reasons = [f"output y: {i} of 9 elements differ: element [{i}] is 0.5; expected {i}.5" for i in range(1, 6)]
        results = [conformance_report.Result("node", f"test_{i}", "Abs", "failed", reason) for i, reason in enumerate(reasons, 1)]
        (line,) = conformance_report.grouped_lines(results)
        self.assertRegex(line, r"^    5 failed: output y: N of N elements differ: .* \(test_1, test_2, test_3, and 2 more\)$")

    def test_lists_of_nodes_are_grouped_as_operators(self):
        reason = "2 nodes are not supported:   node `a`: operator Relu, opset 18   node `b.c`: operator Conv, opset 18"
        self.assertEqual(conformance_report.group_of(reason), "not supported: Conv, Relu")
        self.assertEqual(conformance_report.group_of("input `x`: elements of type UINT16 are not supported"),
                         "input `...`: elements of type UINTN are not supported")
        self.assertEqual(len(conformance_report.shortened("x" * 1000)), conformance_report.LONGEST + len(" ..."))

    def test_figures_and_required_cases(self):
        results = [conformance_report.Result("node", "a", "Abs", "passed", ""), conformance_report.Result("node", "b", "Abs", "failed", "why"),
                   conformance_report.Result("simple", "c", "(simple)", "unsupported", "no")]
        self.assertEqual(conformance_report.figures(results), {"node_passed": 1, "node_total": 2, "other_passed": 0, "other_total": 1})
        self.assertEqual(conformance_report.count_rows(results), [["Abs", "1", "1", "-"], ["(simple)", "-", "-", "1"], ["all", "1", "1", "1"]])
        required = conformance_report.read_names("# some\na\nb # of them\n\nd\n")
        self.assertEqual(required, ["a", "b", "d"])
        self.assertEqual(conformance_report.missing(required, results), ["b: failed: why"])


class IsolatedTest(unittest.TestCase):
    def outcomes(self, work, tasks=(1,), seconds=20):
        return {outcome.task: outcome for outcome in isolated.run_all(tasks, work, 2, seconds)}

    def test_each_result_comes_back(self):
        outcomes = self.outcomes(lambda task, announce: task * task, range(9))
        self.assertEqual({task: outcome.result for task, outcome in outcomes.items()}, {task: task * task for task in range(9)})

    def test_a_crash_is_one_tasks_own(self):
        def work(task, announce):
            announce("call")
            if task == 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            if task == 2:
                sys.exit(3)
            return task

        outcomes = self.outcomes(work, range(4))
        self.assertEqual([(outcomes[task].result, outcomes[task].died) for task in range(4)],
                         [(0, ""), (None, "ended by SIGSEGV"), (None, "ended with status 1"), (3, "")])
        self.assertEqual(outcomes[1].stage, "call")

    def test_what_takes_too_long_is_ended(self):
        begin = time.monotonic()
        outcomes = self.outcomes(lambda task, announce: time.sleep(60 * task), (0, 1), seconds=0.5)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual((outcomes[0].died, outcomes[1].died), ("", "took more than 0.5 s"))


class CasesTest(unittest.TestCase):
    def test_all_stored_cases_are_found(self):
        kinds = [case.kind for case in stored_cases.all_cases()]
        self.assertEqual({kind: kinds.count(kind) for kind in stored_cases.KINDS},
                         {"node": 1765, "pytorch-converted": 82, "pytorch-operator": 35, "simple": 23})

    def test_an_expanded_case_is_the_operators(self):
        for name, operator in (("test_gelu_default_1_expanded", "Gelu"), ("test_abs", "Abs"), ("test_ai_onnx_ml_array_feature_extractor",
                                                                                              "ml.ArrayFeatureExtractor")):
            case = stored_cases.Case("node", name)
            self.assertEqual(stored_cases.operator_of(case, case.model()), operator)

    def test_what_no_tensor_is_is_refused(self):
        model = stored_cases.Case("node", "test_identity_sequence").model()
        stored_cases.check_types(model)
        model.graph.input[0].type.sequence_type.elem_type.map_type.key_type = 1
        with self.assertRaisesRegex(stored_cases.Unusable, "^an input of type map is not supported$"):
            stored_cases.check_types(model)

    def test_free_extents_are_those_of_the_data(self):
        case = stored_cases.Case("simple", "test_sequence_model8")
        given = stored_cases.given_arrays(case.model(), case.data_sets()[0])["X"]
        self.assertEqual(stored_cases.free_shapes(case.model(), case.data_sets()[0]), {"X": "x".join(map(str, given.shape))})

    def test_sequences_and_optionals_are_their_tensors(self):
        words = {"test_identity_sequence": {"x[0]": "1x1x2x2", "x[1]": "1x1x2x2"}, "test_loop13_seq": {"seq_empty": "empty"}, "test_loop16_seq_none": {"opt_seq[0]": "scalar"},
                 "test_optional_has_element_empty_optional_input": {"optional_input": "absent"}, "test_optional_has_element_optional_input": {}}
        for name, expected in words.items():
            case = stored_cases.Case("node", name)
            data = case.data_sets()[0]
            with self.subTest(name=name):
                self.assertEqual(stored_cases.free_shapes(case.model(), data), expected)
        self.assertEqual(list(stored_cases.expected_arrays(case.model(), data)), ["output"])
        case = stored_cases.Case("node", "test_sequence_insert_at_back")
        self.assertEqual(list(stored_cases.given_arrays(case.model(), case.data_sets()[0])), [*(f"sequence[{i}]" for i in range(3)), "tensor"])

    def test_a_sample_is_a_part(self):
        names = [case.name for case in stored_cases.all_cases()]
        parts = [sum(conformance.in_sample(name, (n, 10)) for name in names) for n in (1, 5, 10)]
        self.assertTrue(120 < parts[0] < 260 < parts[1] < parts[2] == len(names), parts)


class RunTest(unittest.TestCase):
    """Whole runs with the program that stands for mycc."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.mycc = self.folder / "mycc"
        self.mycc.write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "{FOLDER}/fake_mycc.py" "$@"\n')
        self.mycc.chmod(0o755)

    def run_cases(self, *words, fault=""):
        """The exit status and the output."""
        argv = ["conformance.py", "--mycc", str(self.mycc), *map(str, words)]
        output = io.StringIO()
        with mock.patch.object(sys, "argv", argv), mock.patch.dict(os.environ, FAKE_MYCC=fault), contextlib.redirect_stdout(output):
            status = conformance.body()
        return status, output.getvalue()

    def test_right_outputs_pass(self):
        names = ("test_abs", "test_cast_FLOAT_to_INT4", "test_dequantizelinear_int2", "test_identity_opt", "test_split_zero_size_splits_opset18",
                 "test_max_one_input", "test_Linear", "test_sequence_model8")  # the last one's input has a free extent
        status, output = self.run_cases("--only", f"^({'|'.join(names)})$")
        self.assertEqual(status, 0)
        self.assertTrue(output.endswith("\n\nnode_passed: 6\nnode_total: 6\nother_passed: 2\nother_total: 2\n"), output)

    def test_values_that_are_asked_for_are_given(self):
        names = ("test_add", "test_abs", "test_cast_INT4_to_FLOAT", "test_cast_FLOAT8E5M2_to_FLOAT", "test_cast_BFLOAT16_to_FLOAT")
        _, output = self.run_cases("--only", f"^({'|'.join(names)})$", fault="asks")
        self.assertTrue(output.endswith("\n5 of the cases that pass were compiled with values of inputs known\n\n"
                                        "node_passed: 5\nnode_total: 5\nother_passed: 0\nother_total: 0\n"), output)
        _, output = self.run_cases("--only", "^test_abs$", fault="asks_on")
        self.assertIn("\nunsupported test_abs: node `n` (Abs): input 0 (`x`) is not known when", output)
        self.assertIn("\n0 of the cases that pass were compiled with values", output)

    def test_each_fault_is_told(self):
        lines = {"refuse": "failed test_abs: node 3: no shape of 7 elements", "unsupported": "unsupported test_abs: the operator Foo is not supported",
                 "compiler_crash": "failed test_abs: the compiler ended by SIGABRT", "wrong": "failed test_abs: output y: 1 of 60 elements differ: ",
                 "outside": "failed test_abs: writes outside of output y", "library_crash": "failed test_abs: the library ended by SIGSEGV",
                 "hang": "failed test_abs: the library took more than 5 s", "unsteady": "failed test_abs: a second call gives other results"}
        for fault, line in lines.items():
            with self.subTest(fault=fault):
                _, output = self.run_cases("--only", "^test_abs$", "--seconds", 5, fault=fault)
                self.assertIn(f"\n{line}", output)
                self.assertIn("node_passed: 0\n", output)

    def test_required_cases_decide_the_status(self):
        required = self.folder / "required.txt"
        required.write_text("test_abs\ntest_add\n")
        words = ("--only", "^test_abs$", "--require", required)
        self.assertEqual(self.run_cases(*words)[0], 0)
        status, output = self.run_cases(*words, fault="wrong")
        self.assertEqual(status, 1)
        self.assertIn("\nrequired but not passed: test_abs: failed: output y: ", output)
        required.write_text("test_abs\ntest_nothing\n")
        with self.assertRaisesRegex(harness.BenchmarkError, "no case is called test_nothing"):
            self.run_cases(*words)


if __name__ == "__main__":
    unittest.main()

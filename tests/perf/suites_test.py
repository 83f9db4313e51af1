"""The benchmark suites' files hold what cpu_workloads.py makes, the libraries' program reads its specifications, and the harness reads both."""

import argparse
import array
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cpu_drawn_workloads
import cpu_workloads
import harness

SUITE = harness.ROOT / "tests/perf/suite_cpu_f32.te"
RESNET = harness.ROOT / "examples/resnet50_b1_f32.te"
PEERS = None


def peers(*words):
    return subprocess.run([PEERS, *words], capture_output=True, text=True, check=False)


class SuitesTest(unittest.TestCase):
    def test_suite_file_is_what_is_printed(self):
        printed = subprocess.run([sys.executable, "-B", cpu_workloads.__file__], capture_output=True, text=True, check=True).stdout
        self.assertEqual(SUITE.read_text(), printed)

    def test_suite_is_eight_products_eight_convolutions_six_rows(self):
        names = list(harness.workloads_of(SUITE))
        self.assertEqual(sum(name.startswith("gemm_") for name in names), 8)
        self.assertEqual(sum("conv_" in name for name in names), 8)
        self.assertEqual(len(names), 22)

    def test_sets_have_their_types_and_no_name_in_common(self):
        sets = {which: make() for which, make in cpu_workloads.SETS.items()}
        self.assertEqual({which: len(workloads) for which, workloads in sets.items()}, {"f32": 22, "bf16": 13, "i8": 29, "blocked": 8})
        self.assertEqual({which: {one.operands for one in workloads.values()} for which, workloads in sets.items()},
                         {"f32": {"f32"}, "bf16": {"bf16"}, "i8": {"i8", "u8"}, "blocked": {"f32"}})
        names = [name for workloads in [*sets.values(), cpu_workloads.resnet50()] for name in workloads]
        self.assertEqual(len(names), len(set(names)))

    def test_drawn_workloads_repeat_and_cover_what_they_should(self):
        drawn = cpu_drawn_workloads.drawn(280, seed=7)
        self.assertEqual(drawn, cpu_drawn_workloads.drawn(280, seed=7))
        self.assertNotEqual(list(drawn), list(cpu_drawn_workloads.drawn(280, seed=8)))
        specs = [one.spec for one in drawn.values()]
        for part in ("gemm:m=1,", "gemm:m=8,", "bmm:", "kernel=5", "stride=2", "dilation=2", "groups=32", "conv:n=8", "softmax:", "layernorm:",
                     "transpose:", "gelu:", "chain:", "a=bf16", "a=u8", "a=i8", "x=bf16", "x=u8"):
            self.assertTrue(any(part in spec for spec in specs), part)
        types = [one.operands for one in drawn.values()]
        self.assertEqual(types.count("f32"), 220)

    def test_resnet_has_53_convolutions_of_24_kinds(self):
        counts = harness.workloads_of(RESNET)
        convolutions = {name: count for name, count in counts.items() if name.startswith("conv")}
        self.assertEqual(sum(convolutions.values()), 53)
        self.assertEqual(len(convolutions), 24)
        self.assertEqual(set(counts) - set(convolutions), {"pool1_max_3x3_s2", "pool5_avg_7x7", "fc_2048_1000"})

    def test_resnets_layers_are_what_the_libraries_are_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = harness.split_workloads(RESNET, pathlib.Path(folder))
            self.assertEqual({name: path.read_text() for name, path in paths.items()},
                             {name: one.text for name, one in cpu_workloads.resnet50().items()})

    def test_split_writes_whole_workloads(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = harness.split_workloads(SUITE, pathlib.Path(folder))
            self.assertEqual({name: path.read_text() for name, path in paths.items()},
                             {name: one.text for name, one in cpu_workloads.f32().items()})


class PeersTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.data = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, *tensors):
        for index, values in enumerate(tensors):
            with (self.data / str(index)).open("wb") as file:
                array.array("f", values).tofile(file)

    def test_peers_compute_time_and_compare(self):
        self.write([1, 2, 3, 4, 5, 6], [1, 4, 2, 5, 3, 6])
        for library in ("onednn", "loops"):
            lines = harness.measurements([PEERS, library, "transpose:m=2,n=3", self.data, "0.001"])
            self.assertGreater(lines[library], 0)
            self.assertEqual(lines[f"{library}.difference"], 0)

    def test_a_difference_is_relative_to_the_element_or_the_mean_of_all(self):
        self.write([1, 2, 3, 4, 5, 6], [1, 4, 2, 5, 3, 6.6])
        self.assertAlmostEqual(harness.measurements([PEERS, "loops", "transpose:m=2,n=3", self.data, "0.001"])["loops.difference"], 0.1, 3)
        self.write([1, 2, 3, 4, 5, 6], [1 + 0.91**0.5 * 0.4082, 4, 2, 5, 3, 6])
        self.assertAlmostEqual(harness.measurements([PEERS, "loops", "transpose:m=2,n=3", self.data, "0.001"])["loops.difference"], 0.1, 3)
        self.write([1, 2, 3, 4, 5, 6], [1, 4, 2, 5, 3, float("nan")])
        self.assertEqual(harness.measurements([PEERS, "loops", "transpose:m=2,n=3", self.data, "0.001"])["loops.difference"], float("inf"))

    def test_a_library_without_the_computation_prints_nothing(self):
        self.assertEqual(harness.measurements([PEERS, "openblas", "gelu:m=2,n=3", self.data, "0.001"]), {})

    def test_missing_data_are_named(self):
        result = peers("loops", "gelu:m=2,n=3", self.data)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{self.data}/0: cannot be read", result.stderr)

    def test_what_is_no_specification_is_refused_in_words(self):
        for spec, words in (("no_such:m=1", "names no family"), ("gelu", "names no family"), ("gelu:m=2", "`` is no value of `n`"),
                            ("gelu:m=2,n=x", "`x` is no value of `n`"), ("gelu:m=2,n=-3", "`-3` is no value of `n`"),
                            ("gelu:m=2,n=3,k=4", "unknown key `k`"),
                            ("gemm:m=1,n=1,k=1,a=f16,b=f32,transposed=0,bias=0", "`f16` is no value of `a`")):
            result = peers("onednn", spec, self.data)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)

    def test_specifications_of_all_workloads_are_read(self):
        """Each is refused for its data, which are not there: not for itself. Families are enough, since each has one reader."""
        workloads = [one for make in cpu_workloads.SETS.values() for one in make().values()]
        workloads += [*cpu_workloads.resnet50().values(), *cpu_drawn_workloads.drawn(12, 1).values()]
        for spec in {one.spec.partition(":")[0]: one.spec for one in workloads}.values():
            result = peers("loops", spec, self.data)
            self.assertNotEqual(result.returncode, 2, result.stderr)


class HarnessTest(unittest.TestCase):
    def test_a_missing_program_is_one_line(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "is not there"):
            harness.measurements(["/no/such/program"])

    def test_take_turns_gives_the_median_of_each(self):
        say = lambda *numbers: [sys.executable, "-c", f"for n in {numbers}: print('w', f'way{{n}}', n)"]
        self.assertEqual(harness.take_turns([say(1), say(2, 3)], 3), [{"way1": 1.0}, {"way2": 2.0, "way3": 3.0}])

    def test_disturbed_turns_are_repeated(self):
        """A program whose first and third call of five were disturbed, beside one whose noise is of no interest."""
        with tempfile.TemporaryDirectory() as folder:
            calls = pathlib.Path(folder) / "calls"
            program = [sys.executable, "-c", f"calls = open({str(calls)!r}, 'a+'); calls.write('.'); calls.seek(0); n = len(calls.read())\n"
                       "print('w', 'ours', [9, 1, 9, 1.1, 1][min(n, 5) - 1]); print('w', 'ours.difference', n)"]
            of_interest = lambda who: "difference" not in who
            self.assertEqual(harness.take_turns([program], 3, 9, of_interest), [{"ours": 1.1, "ours.difference": 3}])
            self.assertEqual(calls.read_text(), "." * 5)
            self.assertEqual(harness.take_turns([program], 3, 9, of_interest)[0]["ours"], 1)
            self.assertEqual(calls.read_text(), "." * 8)
            self.assertEqual(harness.take_turns([[sys.executable, "-c", "pass"]], 1, 3), [{}])

    def test_figures_are_numbers_or_words(self):
        say = [sys.executable, "-c", "print('a: 1.5'); print('b: avx2')"]
        self.assertEqual(harness.figures(say), {"a": 1.5, "b": "avx2"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", required=True)
    known, rest = parser.parse_known_args()
    PEERS = known.peers
    unittest.main(argv=[sys.argv[0], *rest])

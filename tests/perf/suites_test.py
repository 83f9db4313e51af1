"""The benchmark suites and the libraries' table name the same workloads, and the harness reads both as it should."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

import harness

SUITE = harness.ROOT / "tests/perf/suite_cpu_f32.te"
RESNET = harness.ROOT / "examples/resnet50_b1_f32.te"
PEERS = None


def peers(*words):
    return subprocess.run([PEERS, *words], capture_output=True, text=True, check=False)


class SuitesTest(unittest.TestCase):
    def test_every_workload_has_a_peer_under_its_name(self):
        expected = list(harness.workloads_of(SUITE)) + list(harness.workloads_of(RESNET))
        self.assertEqual(peers("--list").stdout.split(), expected)

    def test_suite_is_eight_products_eight_convolutions_six_rows(self):
        names = list(harness.workloads_of(SUITE))
        self.assertEqual(sum(name.startswith("gemm_") for name in names), 8)
        self.assertEqual(sum("conv_" in name for name in names), 8)
        self.assertEqual(len(names), 22)

    def test_resnet_has_53_convolutions_of_24_kinds(self):
        counts = harness.workloads_of(RESNET)
        convolutions = {name: count for name, count in counts.items() if name.startswith("conv")}
        self.assertEqual(sum(convolutions.values()), 53)
        self.assertEqual(len(convolutions), 24)
        self.assertEqual(set(counts) - set(convolutions), {"pool1_max_3x3_s2", "pool5_avg_7x7", "fc_2048_1000"})

    def test_split_writes_whole_workloads(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = harness.split_workloads(SUITE, pathlib.Path(folder))
            self.assertEqual(list(paths), list(harness.workloads_of(SUITE)))
            texts = [path.read_text() for path in paths.values()]
        self.assertTrue(all(text.startswith("workload ") and text.endswith("\n}\n") for text in texts))
        self.assertTrue(all(text.count("workload ") == 1 for text in texts))

    def test_peers_time_a_workload(self):
        command = [PEERS, "onednn", "pool5_avg_7x7", "0.001"]
        self.assertGreater(harness.measurements(command)["onednn"], 0)

    def test_a_library_without_the_computation_prints_nothing(self):
        self.assertEqual(harness.measurements([PEERS, "openblas", "gelu_1024x4096", "0.001"]), {})

    def test_an_unknown_workload_is_refused_by_name(self):
        result = peers("onednn", "no_such_workload")
        self.assertEqual(result.returncode, 2)
        self.assertIn("no_such_workload", result.stderr)

    def test_a_missing_program_is_one_line(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "is not there"):
            harness.measurements(["/no/such/program"])

    def test_take_turns_gives_the_median_of_each(self):
        say = lambda *numbers: [sys.executable, "-c", f"for n in {numbers}: print('w', f'way{{n}}', n)"]
        self.assertEqual(harness.take_turns([say(1), say(2, 3)], 3), [{"way1": 1.0}, {"way2": 2.0, "way3": 3.0}])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", required=True)
    known, rest = parser.parse_known_args()
    PEERS = known.peers
    unittest.main(argv=[sys.argv[0], *rest])

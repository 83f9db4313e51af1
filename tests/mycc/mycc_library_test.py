"""Libraries run and timed by the mycc command, on a CPU and on a pretended GPU. python3 mycc_library_test.py MYCC"""

import json
import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402
from npy_files import read_npy, write_npy  # noqa: E402


class MyccLibraryTest(mycc_case.MyccCase):
    # With a driver that notes what it is asked for, and whose events are 0.25 ms apart.

    def on_fake_gpu(self, *words):
        return self.succeeds(*words, env={**os.environ, "LD_LIBRARY_PATH": os.environ["FAKE_CUDA_FOLDER"]})

    def test_a_gpu_by_its_number(self):
        self.on_fake_gpu("compile", self.te, "--target", "cuda:1", "-o", self.folder)
        description = json.loads((self.folder / "two_layers.json").read_text())
        self.assertEqual(description["target"], 'v1 cuda arch=sm_90a model="Fake GPU" sms=132 smem=232448 l2=60M')
        self.assertIn('arch=sm_90a model="Fake GPU"', self.on_fake_gpu("explain", self.te, "--target", "cuda"))

    def test_run_and_bench_on_a_gpu(self):
        self.on_fake_gpu("compile", self.te, "--target", "cuda", "-o", self.folder)
        library = self.folder / "two_layers.so"
        self.assertRegex(self.on_fake_gpu("run", library, "--function", "scale", "--device", "1"), r"^y: f32\[4,8\] ")
        for words in ([], ["--cold"]):
            report = json.loads(self.on_fake_gpu("bench", library, "--json", "--repeat", "5", *words))
            self.assertEqual(report["protocol"], "cold" if words else "warm")
            self.assertEqual([row["seconds"] for row in report["functions"]], [0.00025] * 3)

    def test_run_on_files(self):
        library = self.compiled()
        values = [0.5, 1, -2, 3, 4, 8]
        write_npy(self.folder / "v.npy", "<f4", (6,), struct.pack("<6f", *values))
        out = self.succeeds("run", library, "--function", "total", "--input", f"v={self.folder / 'v.npy'}", "--output-dir", self.folder / "r")
        self.assertRegex(out, r"^s: f32\[\]  min 14.5  max 14.5  mean 14.5\n$")
        self.assertEqual(read_npy(self.folder / "r/s.npy"), struct.pack("<f", sum(values)))

    def test_run_on_random_inputs_is_repeatable(self):
        library = self.compiled()
        first, again, other = (self.succeeds("run", library, "--function", "two_layers_scale", "--seed", seed) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_run_refusals(self):
        library = self.compiled()
        self.fails(2, "name one with --function: two_layers_scale", "run", library)
        self.fails(2, "no function `nothing`", "run", library, "--function", "nothing")
        self.fails(2, "expected NAME=FILE.npy", "run", library, "--function", "total", "--input", "v")
        self.fails(2, "has no input `s`; expected v", "run", library, "--function", "total", "--input", "s=x.npy")
        write_npy(self.folder / "v.npy", "<f4", (6,), bytes(24))
        twice = ("--input", f"v={self.folder / 'v.npy'}") * 2
        self.fails(2, "--input: `v` is given twice", "run", library, "--function", "total", *twice)
        write_npy(self.folder / "v.npy", "<f8", (6,), bytes(48))
        self.fails(1, "holds <f8 [6]; argument `v` expects <f4 (f32) [6]", "run", library, "--function", "total", "--input",
                   f"v={self.folder / 'v.npy'}")

    def test_bench(self):
        library = self.compiled()
        report = json.loads(self.succeeds("bench", library, "--json", "--repeat", 6, "--threads", 1))
        self.assertEqual([row["name"] for row in report["functions"]], ["two_layers_scale", "two_layers_total", "two_layers_scale_again"])
        for row in report["functions"]:
            self.assertEqual(row["samples"], 6)
            self.assertLessEqual(row["ci_low_seconds"], row["seconds"])
            self.assertLess(0, row["seconds"])
        self.assertEqual((report["protocol"], report["threads"]), ("warm", 1))
        self.assertIn("two_layers_total", self.succeeds("bench", library, "--function", "total", "--cold", "--repeat", 3))

    def test_bench_of_few_samples_claims_no_interval(self):
        library = self.compiled()
        words = ("bench", library, "--function", "total", "--repeat", 5)
        (row,) = json.loads(self.succeeds(*words, "--json"))["functions"]
        self.assertLess(0, row["seconds"])
        self.assertEqual((row["ci_low_seconds"], row["ci_high_seconds"]), (None, None))
        self.assertRegex(self.succeeds(*words), r"(?m)^two_layers_total +\S+ .s +- .* 5  of 5 samples$")
        (row,) = json.loads(self.succeeds("bench", library, library, "--function", "total", "--repeat", 5, "--json"))["functions"]
        self.assertEqual((row["turns"], row["placements"], row["ci_low_ratio"], row["ci_high_ratio"]), (5, 5, None, None))
        self.assertRegex(self.succeeds("bench", library, library, "--function", "total", "--repeat", 1), r"of 1 placement$")

    def test_bench_compares_two_libraries(self):
        first = self.compiled()
        self.te.write_text("workload total(v: f32[6]) -> (s: f32[]) {\n  s[] = sum[i:6](v[i])\n}\n")
        self.succeeds("compile", self.te, "-o", self.folder / "other", "--name", "other")
        second = self.folder / "other/other.so"
        words = ("bench", first, second, "--repeat", 6, "--threads", 1)
        report = json.loads(self.succeeds(*words, "--json"))
        (row,) = report["functions"]
        self.assertEqual((row["name"], row["other_name"], row["turns"], row["same_bits"]), ("two_layers_total", "other_total", 6, True))
        self.assertEqual((report["protocol"], report["threads"]), ("warm", 1))
        self.assertEqual((report["unmatched"], report["other_unmatched"]), (["two_layers_scale", "two_layers_scale_again"], []))
        self.assertEqual(row["placements"], 6)
        self.assertLess(0, row["ci_low_ratio"])
        self.assertLessEqual(row["ci_low_ratio"], row["ratio"])
        self.assertLessEqual(row["ratio"], row["ci_high_ratio"])
        text = self.succeeds(*words)
        self.assertRegex(text, r"(?m)^two_layers_total .* 6 +same bits")
        self.assertIn(f"\nonly in {first}: two_layers_scale, two_layers_scale_again\n", text)
        (row,) = json.loads(self.succeeds("bench", first, second, "--repeat", 40, "--json"))["functions"]
        self.assertEqual((row["placements"], row["turns"]), (16, 40))
        swapped = self.succeeds("bench", second, first, "--repeat", 6)
        self.assertIn(f"\nonly in {first}: two_layers_scale, two_layers_scale_again\n", swapped)
        self.assertNotIn("only in", self.succeeds("bench", first, second, "--function", "total", "--repeat", 6))
        self.fails(1, f"--function: {second} has no function with the workload of two_layers_scale", "bench", first, second, "--function", "scale")

    def test_bench_refuses_libraries_that_differ(self):
        for name, number in (("a", "1.5"), ("b", "2.5")):
            self.te.write_text(f"workload f(x: f32[64]) -> (y: f32[64]) {{\n  y[i] = x[i] + {number}\n}}\n")
            self.succeeds("compile", self.te, "-o", self.folder, "--name", name)
        a, b = self.folder / "a.so", self.folder / "b.so"
        self.fails(1, "no workload in common", "bench", a, b)
        b.write_bytes(b.read_bytes().replace(b"x[i] + 2.5", b"x[i] + 1.5"))  # it claims to be the other
        self.assertIn("differ", self.fails(1, "a_f: the libraries differ: output y: element ", "bench", a, b, "--repeat", 3))


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

"""mycc run, bench and their refusals on a GPU, without any Python package. python3 gpu_cli_test.py BIN. Ends with status 77 where there is no
GPU."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # where the sources are; an archive has all in one folder
from npy_files import read_npy, write_npy  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None

WORKLOADS = """workload scale(x: f32[4,8], w: const f32[8]) -> (y: f32[4,8]) {
  y[i,j] = x[i,j] * w[j]
}
workload best(v: i32[1000]) -> (at: i32[]) {
  at[] = argmax[i:1000](v[i])
}
workload softmax(x: bf16[512,1024]) -> (y: bf16[512,1024]) {
  m[i]: f32[512] = max[j:1024](f32(x[i,j]))
  e[i,j]: f32[512,1024] = exp(f32(x[i,j]) - m[i])
  s[i]: f32[512] = sum[j:1024](e[i,j])
  y[i,j] = bf16(e[i,j] / s[i])
}
"""


def mycc(*words):
    return subprocess.run([BIN / "mycc", *map(str, words)], capture_output=True, text=True, check=False)


class GpuCliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "layers.te").write_text(WORKLOADS)
        compiled = mycc("compile", cls.folder / "layers.te", "--target", "cuda", "-o", cls.folder)
        if compiled.returncode != 0:
            raise AssertionError(compiled.stderr)
        cls.library = cls.folder / "layers.so"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def succeeds(self, *words):
        result = mycc(*words)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return result.stdout

    def test_run_on_given_inputs(self):
        x, w = [float(i) for i in range(32)], [0.5, 1.0, -2.0, 3.0, 4.0, 8.0, -1.0, 0.25]
        write_npy(self.folder / "x.npy", "<f4", (4, 8), struct.pack("<32f", *x))
        write_npy(self.folder / "w.npy", "<f4", (8,), struct.pack("<8f", *w))
        self.succeeds("run", self.library, "--function", "scale", "--input", f"x={self.folder / 'x.npy'}", "--input", f"w={self.folder / 'w.npy'}",
                      "--output-dir", self.folder / "out")
        self.assertEqual(read_npy(self.folder / "out/y.npy"), struct.pack("<32f", *(x[i] * w[i % 8] for i in range(32))))

    def test_run_reduces(self):
        values = [(i * 7919) % 1000 for i in range(1000)]
        write_npy(self.folder / "v.npy", "<i4", (1000,), struct.pack("<1000i", *values))
        self.succeeds("run", self.library, "--function", "best", "--input", f"v={self.folder / 'v.npy'}", "--output-dir", self.folder / "out")
        self.assertEqual(read_npy(self.folder / "out/at.npy"), struct.pack("<i", values.index(max(values))))

    def test_bench_times_warm_and_cold(self):
        seconds = {}
        for protocol, words in (("warm", []), ("cold", ["--cold"])):
            report = json.loads(self.succeeds("bench", self.library, "--function", "softmax", "--json", *words))
            self.assertEqual(report["protocol"], protocol)
            (row,) = report["functions"]
            seconds[protocol] = row["seconds"]
            self.assertGreaterEqual(row["samples"], 3)
            self.assertLess(row["ci_low_seconds"], 1e-3)
        # 2 MB: microseconds of an L2 or of memory, and no launch from the host in them.
        self.assertGreater(seconds["warm"], 5e-7)
        self.assertLess(seconds["warm"], 1e-3)
        self.assertGreater(seconds["cold"], seconds["warm"] * 0.9)

    def test_device_that_is_not_there(self):
        result = mycc("run", self.library, "--function", "best", "--device", "63")
        self.assertEqual(result.returncode, 1)
        self.assertIn("device 63", result.stderr)

    def test_library_for_another_device(self):
        other = "a100" if "arch=sm_9" in (self.folder / "layers.json").read_text() else "h200"
        compiled = mycc("compile", self.folder / "layers.te", "--target", other, "-o", self.folder / "other")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        result = mycc("run", self.folder / "other/layers.so", "--function", "best")
        if result.returncode != 0:
            self.assertRegex(result.stderr, r"compiled for `v1 cuda .*`, but device 0 \(.*\) is sm_\d+")


if __name__ == "__main__":
    found = mycc("explain", "/dev/null", "--target", "cuda")
    if "no NVIDIA driver" in found.stderr or "no CUDA" in found.stderr or "no device" in found.stderr:
        print(f"skipped: {found.stderr.strip()}")
        sys.exit(77)
    sys.argv.pop(1)
    unittest.main()

"""Compiles artifact.te and calls every function from Python: python3 artifact_ctypes_test.py MYCC. Ends with status 77 without NumPy."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import artifact_ctypes
from artifact_ctypes import Error, tensor

HERE = pathlib.Path(__file__).resolve().parent
MYCC = None


def compile_artifact(module, folder, *options):
    """Runs where there is no compiler, linker or any other program to be found."""
    environment = {name: value for name, value in os.environ.items() if name != "PATH"}
    subprocess.run([MYCC, "compile", HERE / "artifact.te", "--name", module, "-o", folder, *options], check=True, env=environment,
                   stdout=subprocess.DEVNULL)
    return pathlib.Path(folder) / f"{module}.so"


class ArtifactTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.library = artifact_ctypes.Library(compile_artifact("m", cls.folder.name))
        cls.random = numpy.random.default_rng(1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def uniform(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(numpy.float32)

    def refused(self, words, symbol, tensors):
        with self.assertRaises(Error) as context:
            self.library.call_tensors(symbol, tensors)
        self.assertIn(words, str(context.exception))

    def test_constant_is_packed(self):
        x, w = self.uniform(3, 5), self.uniform(5)
        numpy.testing.assert_array_equal(self.library.call("scale", x, w), x * w)

    def test_dense_with_bias_and_relu(self):
        x, w, b = self.uniform(33, 70), self.uniform(70, 50), self.uniform(50)
        numpy.testing.assert_allclose(self.library.call("dense", x, w, b), numpy.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-5)

    def test_threads(self):
        x, w = self.uniform(512, 300), self.uniform(300, 256)
        numpy.testing.assert_allclose(self.library.call("large", x, w), x @ w, rtol=1e-4, atol=1e-4)

    def test_two_outputs_and_f64(self):
        x = self.random.normal(0, 5, (4, 9))
        y, m = self.library.call("softmax", x)
        e = numpy.exp(x - x.max(axis=1, keepdims=True))
        numpy.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
        numpy.testing.assert_array_equal(m, x.max(axis=1))

    def test_numpy_bool(self):
        x = numpy.arange(6, dtype=numpy.int32)
        on = numpy.array([True, False, True, True, False, False])
        y, off = self.library.call("masked", x, on)
        numpy.testing.assert_array_equal(y, numpy.where(on, x, -1))
        numpy.testing.assert_array_equal(off, ~on)

    def test_bool_as_u8(self):
        x, on = numpy.arange(6, dtype=numpy.int32), numpy.array([1, 0, 1, 0, 1, 0], numpy.uint8)
        y, off = numpy.zeros(6, numpy.int32), numpy.zeros(6, numpy.uint8)
        self.library.call_tensors("m_masked", [tensor(x), tensor(on), tensor(y), tensor(off)])
        numpy.testing.assert_array_equal(off, 1 - on)

    def test_integers_wrap(self):
        a, b = numpy.array([100, -100, 12, 3], numpy.int8), numpy.array([200, 16, 15, 1], numpy.uint8)
        c = numpy.array([2**62, -3, 2**40, 5], numpy.int64)
        with numpy.errstate(over="ignore"):
            for got, want in zip(self.library.call("wrap", a, b, c), (a * a, b * b, c * c)):
                numpy.testing.assert_array_equal(got, want)

    def test_sixteen_bit_floats(self):
        x = numpy.array([0, 1, -2.5, 65504, 1e-7, 1 + 2.0**-11, 3.14159, -1e9], numpy.float32)
        h = numpy.array([0.5, -1, 65504, 6e-8, numpy.inf, 0, 2, 3], numpy.float16)
        y, z, w = self.library.call("narrow", x, h)
        with numpy.errstate(over="ignore"):
            numpy.testing.assert_array_equal(y, x.astype(numpy.float16))
        bits = x.view(numpy.uint32)
        numpy.testing.assert_array_equal(z, ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(numpy.uint16))
        numpy.testing.assert_array_equal(w, h.astype(numpy.float32))

    def test_rank_zero(self):
        x = self.uniform(7, 11)
        self.assertAlmostEqual(float(self.library.call("total", x)), float(x.sum()), places=4)

    def test_empty(self):
        y, z = self.library.call("nothing", numpy.zeros((0, 4), numpy.float32))
        numpy.testing.assert_array_equal(y, numpy.zeros(4))
        self.assertEqual(z.shape, (0, 4))

    def test_gather(self):
        table, rows = self.uniform(10, 3), numpy.array([3, 0, 99, -5], numpy.int32)
        numpy.testing.assert_array_equal(self.library.call("take", table, rows), table[numpy.clip(rows, 0, 9)])

    def test_arrays_of_one_element_alignment(self):
        raw = numpy.zeros(4 * 64 + 4, numpy.uint8)
        x = raw[4 - raw.ctypes.data % 4:][:4 * 64].view(numpy.float32).reshape(1, 64, 1)
        numpy.testing.assert_array_equal(self.library.call("row", x), x + 1)

    def test_strides_of_extent_one_are_free(self):
        x = numpy.lib.stride_tricks.as_strided(self.uniform(64), (1, 64, 1), (400, 4, 28))
        numpy.testing.assert_array_equal(self.library.call("row", x), x + 1)

    def test_transposed_array_is_refused(self):
        x, y = numpy.zeros((11, 7), numpy.float32).T, numpy.zeros((), numpy.float32)
        self.refused("args[0] `x`: has strides [1,7], expected NULL or the compact row-major strides of shape [7,11]", "m_total",
                     [tensor(x), tensor(y)])

    def test_wrong_type_is_refused(self):
        x, y = numpy.zeros((7, 11)), numpy.zeros((), numpy.float32)
        self.refused("args[0] `x`: is of type f64, expected f32", "m_total", [tensor(x), tensor(y)])

    def test_overlap_is_refused(self):
        x = numpy.zeros((1, 64, 1), numpy.float32)
        self.refused("args[1] `y`: is an output and overlaps args[0] `x`", "m_row", [tensor(x), tensor(x)])

    def test_packed_buffer_of_another_function_is_refused(self):
        buffers = self.library.pack("m_large", [self.uniform(300, 256)])
        small = self.library.pack("m_scale", [self.uniform(5)])[0]
        buffers[0][:64] = small[:64]
        x, y = self.uniform(512, 300), numpy.zeros((512, 256), numpy.float32)
        self.refused("args[1] `w`: was not packed for this build of this argument", "m_large", [tensor(x), tensor(buffers[0]), tensor(y)])

    def test_two_libraries_in_one_process(self):
        with tempfile.TemporaryDirectory() as folder:
            other = artifact_ctypes.Library(compile_artifact("other", folder))
        x, w = self.uniform(3, 5), self.uniform(5)
        numpy.testing.assert_array_equal(other.call("scale", x, w), self.library.call("scale", x, w))
        with self.assertRaises(Error):
            other.call_tensors("other_total", [])
        self.assertIn("other_total", other.symbol("last_error")().decode())

    def test_concurrent_calls(self):
        x, w = self.uniform(512, 300), self.uniform(300, 256)
        packed, want = self.library.pack("m_large", [w]), self.library.call("large", x, w)
        wrong = []

        def work():
            y = numpy.zeros((512, 256), numpy.float32)
            for _ in range(5):
                y[:] = -1
                self.library.call_tensors("m_large", [tensor(x), tensor(packed[0]), tensor(y)])
                if not numpy.allclose(y, want, rtol=1e-4, atol=1e-4):
                    wrong.append(y)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_any_team(self):
        for variables in ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}, {"OMP_NUM_THREADS": "3"}, {"OMP_NUM_THREADS": "8"},
                          {"OMP_NUM_THREADS": "8", "OMP_THREAD_LIMIT": "3"}, {"OMP_NUM_THREADS": "8", "OMP_DYNAMIC": "true"}):
            result = subprocess.run([sys.executable, "-B", __file__, MYCC, "ArtifactTest.test_threads", "ArtifactTest.test_concurrent_calls",
                                     "ArtifactTest.test_dense_with_bias_and_relu"], env={**os.environ, **variables}, capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 0, (variables, result.stderr))

    def test_json_describes_the_interface(self):
        description = self.library.description
        self.assertEqual(description["module"], "m")
        self.assertTrue(description["target"].startswith("v1 cpu "))
        dense = self.library.functions["m_dense"]
        self.assertEqual([(arg["name"], arg["kind"], arg["dtype"], arg["shape"]) for arg in dense["args"]],
                         [("x", "input", "f32", [33, 70]), ("w", "const", "f32", [70, 50]), ("b", "const", "f32", [50]),
                          ("y", "output", "f32", [33, 50])])
        self.assertEqual(dense["reason"], "miss")
        self.assertIsNone(dense["record"])
        self.assertGreaterEqual(dense["workspace_bytes"], 0)
        self.assertTrue(dense["workload"].startswith("v1 workload dense("))
        self.assertTrue(dense["trace"].startswith("v1\n"))
        text = (pathlib.Path(self.folder.name) / "m.json").read_text()
        self.assertEqual(text, self.library.symbol("json")().decode())

    def test_exports_and_needs(self):
        try:
            dynamic = subprocess.run(["readelf", "-dW", "--dyn-syms", pathlib.Path(self.folder.name) / "m.so"], check=True,
                                     capture_output=True, text=True).stdout
        except FileNotFoundError:
            self.skipTest("no readelf")
        needed = {line.split("[")[1].split("]")[0] for line in dynamic.splitlines() if "(NEEDED)" in line}
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "libgomp.so.1", "ld-linux-x86-64.so.2"})
        exported = {line.split()[-1] for line in dynamic.splitlines() if " GLOBAL " in line and " UND " not in line}
        self.assertEqual({name for name in exported if not name.startswith("m_")}, set())
        self.assertIn("m_dense_pack", exported)
        self.assertNotIn("m_softmax_pack", exported)

    def test_foreign_machine_is_refused(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = file.read().split("flags", 1)[-1].split("\n", 1)[0].split()
        # A CPU that lacks one of these cannot run what is compiled for the other.
        forest = "cpu mcpu=sierraforest l1d=32K l2=1M threads=1"
        target = "sapphirerapids" if "avx512_fp16" not in flags else forest if "avx_ne_convert" not in flags else None
        if target is None:
            self.skipTest("this machine runs everything")
        with tempfile.TemporaryDirectory() as folder:
            foreign = artifact_ctypes.Library(compile_artifact("foreign", folder, "--target", target))
            with self.assertRaises(Error) as context:
                foreign.call("total", self.uniform(7, 11))
            self.assertIn("but this machine lacks", str(context.exception))
            self.assertNotEqual(foreign.symbol("prepare")(0), 0)


if __name__ == "__main__":
    MYCC = sys.argv.pop(1)
    unittest.main()

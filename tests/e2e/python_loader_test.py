"""python/mycc.py calls the functions of artifact.te: python3 python_loader_test.py MYCC. Ends with status 77 without NumPy; what needs PyTorch is
skipped where there is none."""

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
try:
    import torch
except ImportError:
    torch = None

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import mycc  # noqa: E402

MYCC = None


class PythonLoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([MYCC, "compile", HERE / "artifact.te", "--name", "m", "-o", cls.folder.name], check=True, stdout=subprocess.DEVNULL)
        cls.library = mycc.Library(pathlib.Path(cls.folder.name) / "m.so")
        cls.random = numpy.random.default_rng(1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def uniform(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(numpy.float32)

    def test_constants_are_packed_once(self):
        w = self.uniform(5)
        (packed,) = self.library.scale.pack(w)
        self.assertEqual(packed.ctypes.data % 64, 0)
        for x in (self.uniform(3, 5), self.uniform(3, 5)):
            numpy.testing.assert_array_equal(self.library.scale(x, packed), x * w)

    def test_several_outputs_are_a_tuple(self):
        x = self.random.normal(0, 5, (4, 9))
        y, m = self.library.softmax(x)
        numpy.testing.assert_array_equal(m, x.max(axis=1))
        numpy.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-12)

    def test_outputs_of_the_caller(self):
        x, y = self.uniform(1, 64, 1), numpy.empty((1, 64, 1), numpy.float32)
        self.assertIs(self.library.row(x, out=y), y)
        numpy.testing.assert_array_equal(y, x + 1)

    def test_every_type_that_numpy_has(self):
        x, on = numpy.arange(6, dtype=numpy.int32), numpy.array([True, False, True, True, False, False])
        y, off = self.library.masked(x, on)
        numpy.testing.assert_array_equal(y, numpy.where(on, x, -1))
        numpy.testing.assert_array_equal(off, ~on)
        a, b, c = numpy.array([100, -100, 12, 3], numpy.int8), numpy.array([200, 16, 15, 1], numpy.uint8), numpy.array([2**62, -3, 4, 5])
        with numpy.errstate(over="ignore"):
            for got, want in zip(self.library.wrap(a, b, c), (a * a, b * b, c * c)):
                numpy.testing.assert_array_equal(got, want)

    def test_rank_zero_and_empty(self):
        x = self.uniform(7, 11)
        self.assertAlmostEqual(float(self.library.total(x)), float(x.sum()), places=4)
        y, z = self.library.nothing(numpy.zeros((0, 4), numpy.float32))
        numpy.testing.assert_array_equal(y, numpy.zeros(4))
        self.assertEqual(z.shape, (0, 4))

    def test_refusals_are_the_librarys_own(self):
        with self.assertRaisesRegex(mycc.Error, "args\\[0\\] `x`: is of type f64, expected f32"):
            self.library.total(numpy.zeros((7, 11)))
        with self.assertRaisesRegex(mycc.Error, "has strides"):
            self.library.total(numpy.zeros((11, 7), numpy.float32).T)
        (packed,) = self.library.scale.pack(self.uniform(5))
        packed[:64] = 0  # its header
        with self.assertRaisesRegex(mycc.Error, "was not packed for this build"):
            self.library.scale(self.uniform(3, 5), packed)

    def test_misuse_says_what_is_expected(self):
        with self.assertRaisesRegex(TypeError, "scale: 1 inputs; expected \\['x', 'w'\\]"):
            self.library.scale(self.uniform(3, 5))
        with self.assertRaisesRegex(TypeError, "scale.pack: 0 inputs; expected \\['w'\\]"):
            self.library.scale.pack()
        with self.assertRaisesRegex(TypeError, "an array of datetime64\\[s\\] does not speak DLPack"):
            self.library.total(numpy.zeros((7, 11), "datetime64[s]"))
        with self.assertRaisesRegex(AttributeError, "no workload absent; expected one of .*dense"):
            self.library.absent  # pylint: disable=pointless-statement
        with self.assertRaisesRegex(mycc.Error, "expected a library that mycc compiled"):
            mycc.Library("/lib/x86_64-linux-gnu/libc.so.6")

    def test_threads(self):
        x, w = self.uniform(512, 300), self.uniform(300, 256)
        packed = self.library.large.pack(w)
        want, results = self.library.large(x, *packed), []
        threads = [threading.Thread(target=lambda: results.append(self.library.large(x, *packed))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for result in results:
            numpy.testing.assert_array_equal(result, want)

    @unittest.skipIf(torch is None, "this Python has no PyTorch")
    def test_tensors_of_pytorch(self):
        x, h = torch.linspace(-3, 3, 8), torch.linspace(-3, 3, 8, dtype=torch.float16)
        y, z, w = self.library.narrow(x, h)
        for got, want in ((y, x.half()), (z, x.bfloat16()), (w, h.float())):
            self.assertEqual(got.dtype, want.dtype)
            self.assertTrue(torch.equal(got, want))
        weights = torch.rand(5)
        x = torch.rand(3, 5)
        self.assertTrue(torch.equal(self.library.scale(x, *self.library.scale.pack(weights)), x * weights))


if __name__ == "__main__":
    MYCC = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

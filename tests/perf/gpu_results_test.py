"""The differences that gpu_results.py takes for roundings, on arrays of NumPy in place of PyTorch's tensors. Ends with status 77 without NumPy."""

import sys
import unittest
import warnings

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import gpu_results
import harness


class Tensor(numpy.ndarray):
    """With the one thing that a tensor is asked for and an array has not."""

    def double(self):
        return numpy.asarray(self, numpy.float64)


def check(ours, peer, dtype, **options):
    gpu_results.check("w", numpy.asarray(ours).view(Tensor), numpy.asarray(peer).view(Tensor), dtype, **options)


class GpuResultsTest(unittest.TestCase):
    def expect_refused(self, ours, peer, dtype, message=""):
        with self.assertRaisesRegex(harness.BenchmarkError, message):
            check(ours, peer, dtype)

    def test_neighbours_among_subnormal_numbers_are_roundings(self):
        """Rows of softmax over 131072 numbers in f16 lie about 1/131072, where f16's numbers are 1/128 of them apart."""
        peer = numpy.full(1000, 2**-17, numpy.float16)
        above = numpy.nextafter(peer, numpy.float16(1))
        check(above, peer, "f16")
        self.expect_refused(numpy.nextafter(above, numpy.float16(1)), peer, "f16")

    def test_steps_near_zero_are_those_of_the_type(self):
        for dtype, zero in (("f8e4m3", 2.0**-9), ("f8e5m2", 2.0**-16), ("f16", 2.0**-24)):
            check([zero, 0], [0, 0], dtype)
            self.expect_refused([2 * zero, 0], [0, 0], dtype)
        self.expect_refused([2.0**-24, 0], [0, 0], "f32")

    def test_a_difference_is_a_share_of_an_element_or_of_the_mean(self):
        peer = numpy.array([100.0, 1.0, 0.0, 1.0])  # of root mean square 50
        check([100.3, 1.15, 0.15, 0.85], peer, "f16")
        self.expect_refused([100.5, 1.0, 0.0, 1.0], peer, "f16", "w: 1 elements .* up to 0.5, where their root mean square is 50; .* 0.0039")
        self.expect_refused([100.0, 1.0, 0.25, 0.75], peer, "f16", "w: 2 elements .* up to 0.25")
        check([100.5, 1.0, 0.0, 1.0], peer, "tf32")

    def test_a_row_may_have_a_mean_of_its_own(self):
        """Two rows, the first a hundred times as large as the second: a difference in the large one is too large for the mean of both, and one in the
        small one too small to see beside it."""
        peer = numpy.array([[100.0, 0.0, 100.0, 0.0], [1.0, 0.0, 1.0, 0.0]])
        large, small = peer + [[0, 0.27, 0, 0], [0] * 4], peer + [[0] * 4, [0, 0.19, 0, 0]]
        check(large, peer, "f16", by_row=True)
        self.expect_refused(large, peer, "f16")
        check(small, peer, "f16")
        with self.assertRaisesRegex(harness.BenchmarkError, "w: 1 elements .* expected at most 0.0078 of a row's or of an element"):
            check(small, peer, "f16", by_row=True)

    def test_integers_are_the_same(self):
        check([3, -7], [3, -7], "i32")
        self.expect_refused([3, -7], [3, -8], "i32", "w: 1 elements .* up to 1")

    def test_what_is_no_number_is_refused(self):
        for wrong in (numpy.nan, numpy.inf):
            self.expect_refused([1.0, wrong], [1.0, 1.0], "f32")
            self.expect_refused([1.0, 1.0], [1.0, numpy.nan], "f32")

    def test_shapes_are_the_same_and_may_be_empty(self):
        self.expect_refused([1.0], [[1.0]], "f32", r"shape \[1\], the peer's \[1, 1\]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of the mean of nothing
            check(numpy.zeros((0, 3)), numpy.zeros((0, 3)), "f32")


if __name__ == "__main__":
    unittest.main()

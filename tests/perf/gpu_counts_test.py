"""The counts that gpu_counts.py reads of `mycc explain`."""

import unittest

import gpu_counts

EXPLAINED = """# gemm: miss, default of rule `warp_specialized` (no tuning log was named)
# kernel 1: 19 registers, 0 B spilled, 0 of 232448 B shared, 256 threads x 8 blocks
# counts 1: 1.5e+02 us: DRAM 67.18 MB in 15.6 us, L2 67.24 MB in 11.2 us; 7.77 waves of 8 blocks; limited by DRAM
# counts 2: 0.7 us: DRAM 1 MB in 0.1 us, products 0.2 us; 0.1 waves of 9 tiles; limited by operands to shared memory
# sketch warp_specialized t2.bm=128
"""


class GpuCountsTest(unittest.TestCase):
    def test_launches_and_rule_are_read(self):
        self.assertEqual(gpu_counts.read(EXPLAINED), ([(150.0, "DRAM"), (0.7, "operands to shared memory")], "warp_specialized"))
        self.assertEqual(gpu_counts.read("# code: not known: no NVRTC\n"), ([], "naive"))


if __name__ == "__main__":
    unittest.main()

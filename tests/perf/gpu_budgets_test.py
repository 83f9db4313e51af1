"""The parts of gpu_budgets.py that need no GPU: what it is asked for, and how the work is shared."""

import argparse
import unittest

import gpu_budgets


class GpuBudgetsTest(unittest.TestCase):
    def test_the_smaller_budget_comes_first(self):
        self.assertEqual(gpu_budgets.budgets_of("16,512"), [16, 512])
        for wrong in ("512,16", "16", "16,16", "0,16", "a,b", "16,512,1024"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "expected two numbers of trials"):
                gpu_budgets.budgets_of(wrong)

    def test_a_share_is_one_of_its_parts(self):
        self.assertEqual(gpu_budgets.share_of("8/8"), [8, 8])
        for wrong in ("0/8", "9/8", "1", "1/", "-1/8"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "expected a part"):
                gpu_budgets.share_of(wrong)

    def test_the_shares_are_all_workloads_once(self):
        whole = gpu_budgets.workloads_of(gpu_budgets.parse_arguments([]))
        self.assertEqual(len(whole), 24 + 12)
        shared = []
        for part in range(1, 6):
            shared += gpu_budgets.workloads_of(gpu_budgets.parse_arguments(["--share", f"{part}/5"]))
        self.assertEqual(sorted(shared), sorted(whole))


if __name__ == "__main__":
    unittest.main()

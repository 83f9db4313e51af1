"""The figures that agreement.py makes of comparisons, and, with a folder of programs as argument, that it runs (--quick)."""

import math
import pathlib
import re
import subprocess
import sys
import unittest

import agreement

BIN = None


def compared(ratio, low, high, tie=0.01, same=False):
    return agreement.Compared("w", same, ratio, low, high, tie)


class FiguresTest(unittest.TestCase):
    def test_only_differences_outside_of_ties_are_disagreements(self):
        self.assertTrue(compared(1.05, 1.04, 1.06).disagrees())
        self.assertTrue(compared(0.95, 0.94, 0.96).disagrees())
        self.assertFalse(compared(1.009, 1.008, 1.010).disagrees(), "a tie")
        self.assertFalse(compared(1.05, 0.99, 1.12).disagrees(), "chance")
        self.assertFalse(compared(1.05, 1.04, 1.06, same=True).disagrees(), "the same code")

    def test_are_over_all_workloads(self):
        figures = agreement.figures([compared(1.04, 1.03, 1.05), compared(1 / 1.04, 0.95, 0.97), compared(1.0, 0.9, 1.1), compared(1.3, 1.2, 1.4, same=True)])
        self.assertAlmostEqual(figures["disagreement_outside_ties"], 0.5)
        self.assertAlmostEqual(figures["runtime_difference"], math.sqrt(1.04) - 1)

    def test_tie_is_what_a_final_round_cannot_tell(self):
        choice = agreement.Choice
        self.assertAlmostEqual(agreement.tie_of(choice("a", "1", 0.004), choice("b", "2", 0.011)), 0.015)
        self.assertEqual(agreement.tie_of(choice("a", "1", 0.001), choice("b", "2", 0.001)), 0.01, "comparisons differ by more than their intervals")
        self.assertEqual(agreement.tie_of(choice("a", "1", 0.1), choice("b", "2", 0.1)), 0.02)
        self.assertEqual(agreement.choice_of({"trace": "t", "result": {"timing": {"seconds": 2.0}}}), choice("t", "", 0))

    def test_same_code_is_told_by_the_trace_or_the_digest(self):
        choice = agreement.Choice
        self.assertTrue(choice("a", "1", 0).is_same_code(choice("b", "1", 0)))
        self.assertTrue(choice("a", "", 0).is_same_code(choice("a", "", 0)))
        self.assertFalse(choice("a", "", 0).is_same_code(choice("b", "", 0)), "unknown digests are no digests")
        self.assertFalse(choice("a", "1", 0).is_same_code(choice("b", "2", 0)))

    def test_there_are_forty_workloads(self):
        self.assertGreaterEqual(len(agreement.small_workloads.made()), 40)


class QuickRunTest(unittest.TestCase):
    def test_ends_with_the_figures(self):
        if BIN is None:
            self.skipTest("no programs were named")
        script = pathlib.Path(__file__).with_name("agreement.py")
        result = subprocess.run([sys.executable, "-B", script, "--quick", "--bin", BIN], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertRegex(result.stdout, r"workloads: 4, .*\ndisagreement_outside_ties: \d\.\d{4}\nruntime_difference: \d\.\d{4}\n\Z")
        self.assertEqual(len(re.findall(r" (?:same code|tie|differs)$", result.stdout, re.M)), 4)


if __name__ == "__main__":
    BIN = sys.argv.pop() if len(sys.argv) > 1 else None
    unittest.main()

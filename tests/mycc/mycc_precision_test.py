"""Mixed precision of models: the option, and the comparison with f32. python3 mycc_precision_test.py MYCC"""

import json
import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402
from npy_files import write_npy  # noqa: E402
from onnx_files import write_model  # noqa: E402

# Numbers whose squares are halfway between others of bf16, or beyond f16.
ABOVE_ONE, LARGE = 257 / 256, 300.0


class MyccPrecisionTest(mycc_case.MyccCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "squares.onnx"
        # x * x is between two kernels: the second one's result is larger.
        write_model(self.model, [("Mul", ["x", "x"], "u"), ("Add", ["u", "t"], "y")], {"x": (64, 64), "t": (3, 64, 64)}, {"y": (3, 64, 64)})
        self.zeros = self.folder / "zeros.npy"
        write_npy(self.zeros, "<f4", (3, 64, 64), bytes(3 * 64 * 64 * 4))

    def compiled(self, dtype, *words):
        return self.succeeds("compile", self.model, "--dtype", dtype, "-o", self.folder / dtype, *words)

    def full_of(self, value):
        path = self.folder / f"x{value}.npy"
        write_npy(path, "<f4", (64, 64), struct.pack("<f", value) * 64 * 64)
        return f"x={path}"

    def deviation(self, dtype, value):
        report = json.loads(self.compiled(dtype, "--json", "--check", self.full_of(value), "--check", f"t={self.zeros}"))
        return report["deviations"]

    def test_tensors_between_kernels_are_narrow(self):
        self.assertNotIn("bf16", self.succeeds("tasks", self.model, "-o", "-"))
        tasks = self.succeeds("tasks", self.model, "--dtype", "bf16", "-o", "-")
        self.assertEqual((tasks.count("bf16[4096]"), tasks.count("f32[3,4096]")), (2, 2), tasks)
        self.assertIn("f16[64,64]", self.succeeds("explain", self.model, "--dtype", "f16"))

    def test_the_largest_deviation(self):
        # 129 / 128 is bf16's next number.
        square = ABOVE_ONE**2
        expected = {"output": "y", "largest_magnitude": square, "max_abs_error": square - 129 / 128,
                    "max_rel_error": (square - 129 / 128) / square, "not_finite": 0}
        self.assertEqual(self.deviation("bf16", ABOVE_ONE), [expected])

    def test_overflow(self):
        (row,) = self.deviation("f16", LARGE)
        self.assertEqual((row["not_finite"], row["max_abs_error"]), (3 * 64 * 64, 0))
        (row,) = self.deviation("bf16", LARGE)
        self.assertEqual(row["not_finite"], 0)

    def test_the_table(self):
        lines = self.compiled("bf16", "--check-random").splitlines()
        self.assertRegex(lines[-3], r"^output +largest in f32 +largest deviation +relative to the largest +no longer finite$")
        self.assertRegex(lines[-1], r"^y +\S+ +\d\S+ +\S+ +0$")
        # It is a result, which --quiet keeps.
        self.assertEqual(self.compiled("bf16", "--check-random", "--quiet").splitlines(), lines[-3:])
        self.assertNotIn("deviation", self.compiled("bf16"))

    def test_a_locked_build_has_its_precision(self):
        lock = self.folder / "squares.lock"
        self.compiled("bf16", "--write-lock", lock)
        self.succeeds("compile", self.model, "--dtype", "bf16", "--lock", lock, "-o", self.folder / "again")
        self.assertEqual((self.folder / "again" / "squares.so").read_bytes(), (self.folder / "bf16" / "squares.so").read_bytes())
        self.fails(1, "in the lock file", "compile", self.model, "--lock", lock, "-o", self.folder / "plain")

    def test_types_of_the_caller_stay(self):
        self.compiled("bf16")
        (function,) = json.loads((self.folder / "bf16" / "squares.json").read_text())["functions"]
        self.assertEqual({arg["dtype"] for arg in function["args"]}, {"f32"})

    def test_refusals(self):
        self.fails(2, "--dtype is for models (.onnx)", "compile", self.te, "--dtype", "bf16")
        self.fails(2, "--dtype is for models (.onnx)", "tasks", self.te, "--dtype", "bf16")
        self.fails(2, "--dtype: `f8`; expected one of bf16, f16", "explain", self.model, "--dtype", "f8")
        self.fails(2, "--dtype", "compile", self.model, "--check-random")
        out = self.folder / "nothing"
        self.fails(2, "has no input `z`", "compile", self.model, "--dtype", "bf16", "--check", "z=z.npy", "-o", out)
        self.fails(2, "expected NAME=FILE.npy", "compile", self.model, "--dtype", "bf16", "--check", "x.npy", "-o", out)
        self.fails(1, "--check: this machine cannot run code for `v1 cuda arch=", "compile", self.model, "--dtype", "bf16", "--check-random", "-o",
                   out, "--target", "h200", env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertFalse(out.exists())


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

"""Lock files: the same bytes again without the log, or what differs. python3 mycc_lock_test.py MYCC"""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mycc_case  # noqa: E402


class MyccLockTest(mycc_case.MyccCase):
    TARGET = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2"

    def setUp(self):
        super().setUp()
        self.lock = self.folder / "two.lock"
        self.succeeds("compile", self.te, "--target", self.TARGET, "-o", self.folder / "first", "--write-lock", self.lock)

    def contents(self, folder):
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()}

    def change(self, **values):
        lock = json.loads(self.lock.read_text())
        lock.update(values)
        self.lock.write_text(json.dumps(lock))

    def refused(self, message):
        self.fails(1, message, "compile", self.te, "-o", self.folder / "again", "--lock", self.lock)
        self.assertFalse((self.folder / "again").exists())

    def test_the_same_bytes_again(self):
        out = self.succeeds("compile", self.te, "-o", self.folder / "again", "--lock", self.lock)
        self.assertEqual(self.contents("first"), self.contents("again"))
        self.assertIn("from the lock file", out)

    def test_what_differs_is_named(self):
        good = self.lock.read_text()
        self.change(toolchain="llvm-1.0")
        self.refused("the toolchain is llvm-")
        self.lock.write_text(good)
        kernels = json.loads(good)["kernels"]
        self.change(kernels=kernels[:2])
        self.refused("the number of kernels is 3 here, and 2 in the lock file")
        self.change(kernels=[{**kernels[0], "code_digest": "0" * 64}, *kernels[1:]])
        self.refused("the code of workload scale is")
        self.change(kernels=[{**kernels[0], "workload_hash": "0" * 64}, *kernels[1:]])
        self.refused("workload scale is")
        self.lock.write_text(good)
        self.fails(1, "the target is", "compile", self.te, "--target", "znver3", "-o", self.folder / "again", "--lock", self.lock)

    def test_no_lock_file(self):
        self.lock.write_text("{}")
        self.refused("is no lock file that `mycc compile --write-lock` wrote")
        self.lock.write_text(json.dumps({"mycc_lock": 9}))
        self.refused("is a lock file of version 9; expected 1")
        self.lock.unlink()
        self.refused("two.lock")


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

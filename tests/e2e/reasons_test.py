"""The output of mycc compile for each kernel, from a log that mycc-tune made on this machine: the table, the JSON and --strict.
python3 reasons_test.py MYCC MYCC_TUNE"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

MYCC = MYCC_TUNE = None

# Runs on every x86-64 processor: what look-up expects of schedules is the same on all of them.
TARGET = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1"

GEMM = """workload gemm(a: f32[64,64], b: const f32[64,64]) -> (c: f32[64,64]) {
  c[i,j] = sum[k:64](a[i,k] * b[k,j])
}
"""
OTHER = """
workload other(x: f32[65]) -> (y: f32[65]) {
  y[i] = exp(x[i])
}
"""


class ReasonsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.log = cls.folder / "tuning.db"
        (cls.folder / "gemm.te").write_text(GEMM)
        (cls.folder / "both.te").write_text(GEMM + OTHER)
        cls.run_program(MYCC_TUNE, "tune", cls.folder / "gemm.te", "--log", cls.log, "--trials", 4, "--target", TARGET)
        cls.records = [json.loads(line) for line in cls.run_program(MYCC_TUNE, "log", "export", "--log", cls.log).stdout.splitlines()]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @staticmethod
    def run_program(*words, check=True, **options):
        return subprocess.run([*map(str, words)], capture_output=True, text=True, check=check, **options)

    def compiled(self, file, log, *options, target=TARGET):
        """Each function's row of the table, and its entry in the JSON."""
        result = self.run_program(MYCC, "compile", self.folder / file, "--tuning-log", log, "--target", target, "--name", "m", "-o",
                                  self.folder / "out", *options)
        self.assertEqual(result.stderr, "")
        rows = {line.split()[0]: line for line in result.stdout.splitlines()[2:]}
        functions = json.loads((self.folder / "out/m.json").read_text())["functions"]
        return rows, {function["name"]: function for function in functions}

    def changed_log(self, name, change):
        """A log with every record as `change` leaves it."""
        records = json.loads(json.dumps(self.records))
        for record in records[1:]:
            change(record["record"])
        lines = self.folder / f"{name}.jsonl"
        lines.write_text("".join(json.dumps(record) + "\n" for record in records))
        log = self.folder / f"{name}.db"
        self.run_program(MYCC_TUNE, "log", "import", lines, "--log", log)
        return log

    def test_hit_and_miss(self):
        rows, functions = self.compiled("both.te", self.log)
        self.assertRegex(rows["gemm"], r"^gemm +hit +\d+ +\d+\.\d+ us +same workload, target and code$")
        self.assertRegex(rows["other"], r"^other +miss +- +- +the log has no record of this computation, at any shape or target$")
        gemm, other = functions["m_gemm"], functions["m_other"]
        self.assertEqual(gemm["reason"], "hit")
        self.assertGreater(gemm["expected_seconds"], 0)
        traces = {record["record"]["trace"] for record in self.records[1:] if record["record"]["result"]["status"] == "ok"}
        self.assertIn(gemm["trace"], traces)
        self.assertEqual((other["reason"], other["record"]), ("miss", None))
        self.assertNotIn("expected_seconds", other)

    def test_only_hits_are_strict(self):
        self.compiled("gemm.te", self.log, "--strict")
        out = self.folder / "strict"
        result = self.run_program(MYCC, "compile", self.folder / "both.te", "--tuning-log", self.log, "--target", TARGET, "--strict",
                                  "-o", out, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "mycc: --strict: expected a hit for every kernel, but not for other (miss)\n")
        self.assertFalse(out.exists())

    def test_other_code_is_stale_until_it_is_verified(self):
        def change(record):
            record["result"]["code_digest"] = "0" * 64

        log = self.changed_log("stale", change)
        rows, functions = self.compiled("gemm.te", log)
        self.assertRegex(rows["gemm"], r"^gemm +stale .* differs from 00000000 that was measured; unverified until `mycc-tune log verify`$")
        self.assertEqual(functions["m_gemm"]["reason"], "stale")
        self.run_program(MYCC_TUNE, "log", "verify", "--log", log)
        self.assertEqual(self.compiled("gemm.te", log)[1]["m_gemm"]["reason"], "hit")

    def test_trace_of_another_build_is_not_used(self):
        def change(record):
            record["trace"] = "v1\nsplit(t2.a9, [2])\n"

        rows, functions = self.compiled("gemm.te", self.changed_log("broken", change))
        self.assertRegex(rows["gemm"], r"^gemm +miss .*record \d+ no longer replays: .*t2\.a9")
        self.assertEqual(functions["m_gemm"]["record"], None)

    def test_near_record_is_used_only_when_it_is_predicted_to_be_faster(self):
        rows, functions = self.compiled("gemm.te", self.log, target=TARGET.replace("threads=1", "threads=2"))
        self.assertRegex(rows["gemm"], r"same workload, tuned for `v1 cpu [^`]* threads=1`")
        gemm = functions["m_gemm"]
        if gemm["reason"] == "near":
            self.assertIn("checked on random inputs", rows["gemm"])
            self.assertNotIn("expected_seconds", gemm)
        else:
            self.assertEqual((gemm["reason"], gemm["record"]), ("miss", None))
            self.assertIn("is predicted no faster than the default schedule", rows["gemm"])


if __name__ == "__main__":
    MYCC, MYCC_TUNE = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()

"""mycc-tune doctor on a GPU says the same as nvidia-smi. python3 gpu_doctor_test.py BIN. Ends with status 77 where there is no GPU, or no
nvidia-smi."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None


def nvidia_smi(*fields):
    """The values of the first GPU, as texts."""
    result = subprocess.run(["nvidia-smi", "--id=0", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], capture_output=True,
                            text=True, timeout=60, check=True)
    return [value.strip() for value in result.stdout.split(",")]


class GpuDoctorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = subprocess.run([BIN / "mycc-tune", "doctor", "--device", "cuda:0", "--json"], capture_output=True, text=True, timeout=120,
                                check=False)
        cls.findings = [json.loads(line) for line in result.stdout.splitlines()]

    def found(self, check, words=""):
        return [(each["verdict"], each["found"]) for each in self.findings if each["check"] == check and words in each["found"]]

    def test_driver(self):
        (version,) = nvidia_smi("driver_version")
        (finding,) = self.found("GPU driver")
        self.assertIn(f"cuda:0: {version} for CUDA ", finding[1])
        self.assertEqual(finding[0], "ok" if int(version.split(".")[0]) >= 580 else "fault")

    def test_settings(self):
        persistence, compute_mode = nvidia_smi("persistence_mode", "compute_mode")
        self.assertEqual(bool(self.found("GPU", "persistence mode is off")), persistence == "Disabled")
        self.assertEqual(bool(self.found("GPU", "compute mode")), compute_mode in ("Exclusive_Process", "Prohibited"))

    def test_application_clock(self):
        application, most = nvidia_smi("clocks.applications.graphics", "clocks.max.sm")
        if application.isdigit() and most.isdigit():
            expected = [("ok", f"cuda:0: application clock {application} of {most} MHz; times are those of this clock")]
            self.assertEqual(self.found("GPU", "application clock"), expected if int(application) < int(most) else [])

    def test_errors(self):
        (errors,) = nvidia_smi("ecc.errors.uncorrected.volatile.total")
        self.assertEqual(bool(self.found("GPU", "could not be corrected")), errors.isdigit() and int(errors) > 0)


if __name__ == "__main__":
    if shutil.which("nvidia-smi") is None or subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode != 0:
        print("skipped: no GPU, or no nvidia-smi")
        sys.exit(77)
    sys.argv[1:] = []
    unittest.main()

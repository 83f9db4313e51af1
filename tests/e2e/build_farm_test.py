"""A compile farm beside a measuring device, with the programs as a user runs them: a server, a build worker, and a worker that measures. The
device is a driver that carries kernels out on the host (tests/worker/fake_gpu.cc), or with --device a real one. In the middle the build worker and
the server are killed and started again. python3 build_farm_test.py BIN [FAKE_DRIVER_FOLDER]."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = None
FAKE_DRIVER = None
TRIALS = 48

# The fake driver computes this, whatever the kernel.
WORKLOADS = """workload doubling(x: f32[64,1000]) -> (y: f32[64,1000]) {
  y[i,j] = x[i,j] * 2.0
}
"""
# Tensor cores, TMA, and a packed weight, on a real device.
REAL_WORKLOADS = WORKLOADS + """
workload gemm(a: bf16[512,256], b: const bf16[384,256]) -> (c: bf16[512,384]) {
  s[i,j]: f32[512,384] = sum[k:256](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(max(s[i,j], 0.0))
}

workload softmax(x: f32[300,1000]) -> (y: f32[300,1000]) {
  h[i]: f32[300] = max[j:1000](x[i,j])
  e[i,j]: f32[300,1000] = exp(x[i,j] - h[i])
  s[i]: f32[300] = sum[j:1000](e[i,j])
  y[i,j] = e[i,j] / s[i]
}
"""


def has_gpu():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


class Farm:
    """A server and its workers, which end with it."""

    def __init__(self, folder):
        self.folder, self.processes = folder, {}
        self.address, self.log = f"unix:{folder}/farm.sock", folder / "farm.db"
        (folder / "work.te").write_text(WORKLOADS if FAKE_DRIVER else REAL_WORKLOADS)

    def start(self, name, *words, driver=None):
        environment = dict(os.environ)
        if driver:
            environment["LD_LIBRARY_PATH"] = f"{driver}:{environment.get('LD_LIBRARY_PATH', '')}"
        with (self.folder / f"{name}.txt").open("a") as output:
            self.processes[name] = subprocess.Popen([BIN / "mycc-tune", *words], stdout=output, stderr=subprocess.STDOUT, env=environment)

    def start_server(self):
        self.start("server", "serve", "--listen", self.address, "--log", self.log, "--lease-seconds", "5")

    def start_builder(self, name="builder"):
        self.start(name, "worker", "--server", self.address, "--role", "build", "--name", name, "--builders", "2")

    def start_device(self, role):
        words = ("worker", "--server", self.address, "--device", "cuda:0", "--role", role, "--name", "device", "--builders", "2")
        self.start("device", *words, driver=FAKE_DRIVER)

    def end(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(60)

    def close(self):
        for name in reversed(list(self.processes)):
            self.end(name, signal.SIGTERM)

    def tool(self, *words):
        asked = subprocess.run([BIN / "mycc-tune", *words], capture_output=True, text=True, timeout=120, check=False)
        return asked.stdout

    def rows(self):
        """The rows of `devices`, by worker."""
        rows = map(json.loads, self.tool("devices", "--server", self.address, "--json").splitlines())
        return {row["worker"]: row for row in rows}

    def wait_for(self, what, holds):
        for _ in range(600):
            found = holds(self.rows())
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"after 60 s: no {what}\n{self.said()}")

    def said(self):
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.txt")))

    def tune(self, target):
        words = ("tune", self.folder / "work.te", "--server", self.address, "--target", target, "--trials", str(TRIALS), "--json")
        return subprocess.Popen([BIN / "mycc-tune", *words], stdout=subprocess.PIPE, text=True)

    def records(self):
        _, *lines = self.tool("log", "export", "--log", str(self.log)).splitlines()
        return [json.loads(line)["record"] for line in lines]


class BuildFarmTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.farm = Farm(pathlib.Path(temporary.name))
        self.addCleanup(self.farm.close)
        self.farm.start_server()

    def target(self):
        return self.farm.wait_for("device", lambda rows: rows.get("device", {}).get("target"))

    def expect_whole(self, job):
        """The job is done, and every trial has one record."""
        *_, last = job.stdout
        self.assertEqual(job.wait(60), 0, self.farm.said())
        self.assertEqual(json.loads(last)["state"], "done")
        self.farm.end("server", signal.SIGTERM)
        records = [record for record in self.farm.records() if "@" not in record["trial"]]
        self.assertEqual(len({record["trial"] for record in records}), len(records))
        self.assertGreaterEqual(len(records), TRIALS)
        return records

    def built(self):
        """The number of kernels that the server has been given."""
        folder = pathlib.Path(f"{self.farm.log}.artifacts")
        return len([path for path in folder.glob("*") if path.name != "index"]) if folder.exists() else 0

    def test_a_device_measures_what_others_build(self):
        self.farm.start_builder()
        self.farm.start_device("measure")
        self.farm.wait_for("builder", lambda rows: "builder" in rows)
        with self.farm.tune(self.target()) as job:
            job.stdout.readline()
            self.farm.wait_for("build", lambda rows: int(rows["builder"].get("builds", 0)) >= 4)
            records = self.expect_whole(job)
        for record in records:
            # The server doubts a builder whose builds fail often. Then the device builds.
            failed_build = record["result"]["status"] == "build_error"
            self.assertIn(record["result"]["device"]["worker"], ("builder", "device") if failed_build else ("device",), record)
        self.assertTrue(any(record["result"]["status"] == "ok" for record in records))
        self.assertGreater(self.built(), 0)
        self.assertNotIn("builds a candidate", self.farm.said())

    def test_builder_and_server_are_killed_in_the_middle(self):
        self.farm.start_builder()
        self.farm.start_device("both")
        self.farm.wait_for("builder", lambda rows: "builder" in rows)
        with self.farm.tune(self.target()) as job:
            job.stdout.readline()
            self.farm.wait_for("build", lambda rows: int(rows["builder"].get("builds", 0)) >= 2)
            self.farm.end("builder", signal.SIGKILL)
            self.farm.start_builder()
            self.farm.end("server", signal.SIGKILL)
            self.farm.start_server()
            self.expect_whole(job)

    def test_misuse_is_refused(self):
        for words in (("--role", "build", "--device", "cuda:0"), ("--target", "h200"), ("--role", "compile")):
            command = [BIN / "mycc-tune", "worker", "--server", self.farm.address, *words]
            asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(asked.returncode, 2, asked.stderr)
            self.assertIn("build", asked.stderr)

    def test_without_builders_a_measuring_worker_builds_itself(self):
        self.farm.start_device("measure")
        with self.farm.tune(self.target()) as job:
            self.expect_whole(job)
        self.assertEqual(self.built(), 0)


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    if len(sys.argv) > 1:
        FAKE_DRIVER = pathlib.Path(sys.argv.pop(1)).resolve()
    elif not has_gpu():
        print("skipped: no NVIDIA GPU, or no driver, here")
        sys.exit(77)
    unittest.main()

"""A farm of a CPU and a GPU: one server, a worker for each, and one job with tasks for both; then the same with the GPU's worker killed and
started again in the middle. python3 mixed_farm_test.py BIN. Ends with status 77 where there is no GPU."""

import collections
import ctypes
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = None
TRIALS = 128  # of two workloads for two targets

WORKLOADS = """workload gemm(a: f32[256,128], b: f32[192,128]) -> (c: f32[256,192]) {
  s[i,j]: f32[256,192] = sum[k:128](a[i,k] * b[j,k])
  c[i,j] = max(s[i,j], 0.0)
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
        (folder / "work.te").write_text(WORKLOADS)
        self.start("server", "serve", "--listen", self.address, "--log", self.log)

    def start(self, name, *words):
        with (self.folder / f"{name}.txt").open("a") as output:
            self.processes[name] = subprocess.Popen([BIN / "mycc-tune", *words], stdout=output, stderr=subprocess.STDOUT)

    def start_worker(self, device):
        self.start(device, "worker", "--server", self.address, "--device", device, "--name", device, "--builders", "2")

    def end(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(60)

    def close(self):
        for name in reversed(list(self.processes)):
            self.end(name, signal.SIGTERM)

    def tool(self, program, *words):
        return subprocess.run([BIN / program, *words], capture_output=True, text=True, timeout=120, check=True).stdout

    def targets(self, devices):
        """The targets of these devices, once the server knows of them all."""
        for _ in range(300):
            command = [BIN / "mycc-tune", "devices", "--server", self.address, "--json"]
            asked = subprocess.run(command, capture_output=True, text=True, check=False)
            known = {row["device"]: row["target"] for row in map(json.loads, asked.stdout.splitlines())}
            if all(device in known for device in devices):
                return [known[device] for device in devices]
            time.sleep(0.1)
        raise AssertionError(f"after 30 s the server knows of {sorted(known)}; {asked.stderr}\n{self.said()}")

    def said(self):
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.txt")))

    def tune(self, targets):
        """Submits the job; the process that follows it, a line of JSON for each change."""
        words = [word for target in targets for word in ("--target", target)]
        command = [BIN / "mycc-tune", "tune", self.folder / "work.te", "--server", self.address, "--trials", str(TRIALS), "--json", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def trials_for(progress, target):
    return sum(int(task.get("trials", 0)) for task in progress.get("tasks", []) if task["target"] == target)


class MixedFarmTest(unittest.TestCase):
    devices = ("cpu", "cuda:0")

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.farm = Farm(pathlib.Path(temporary.name))
        self.addCleanup(self.farm.close)
        for device in self.devices:
            self.farm.start_worker(device)
        self.targets = self.farm.targets(self.devices)

    def follow(self, job, in_the_middle):
        """Reads the job's progress to its end, and calls `in_the_middle` once, when the GPU has measured a quarter of what it is to."""
        progress = {}
        with job:
            for line in job.stdout:
                progress = json.loads(line)
                if in_the_middle and trials_for(progress, self.targets[1]) >= TRIALS // 8:
                    in_the_middle()
                    in_the_middle = None
        self.assertEqual(job.returncode, 0, self.farm.said())
        self.assertIsNone(in_the_middle, "the job ended before the GPU's worker could be killed")
        return progress

    def expect_whole(self, progress):
        """Every trial has one record besides what final rounds add, of the device that it was for; the log has a best schedule for each task."""
        self.assertEqual(progress["state"], "done")
        self.assertEqual(len(progress["tasks"]), 4)
        self.assertEqual(self.farm.end("server", signal.SIGTERM), 0)
        _, *lines = self.farm.tool("mycc-tune", "log", "export", "--log", self.farm.log).splitlines()
        records = [json.loads(line)["record"] for line in lines]
        self.assertEqual(len({record["trial"] for record in records}), len(records))
        trials = [record for record in records if "final_round" not in record["result"]["timing"]]
        counts = collections.Counter(record["target"] for record in trials)
        for device, target in zip(self.devices, self.targets):
            self.assertEqual(counts[target], trials_for(progress, target))
            # A worker is named as its device.
            measured_on = {record["result"]["device"]["worker"] for record in records if record["target"] == target}
            self.assertEqual(measured_on, {device})
            self.farm.tool("mycc", "compile", self.farm.folder / "work.te", "--target", target, "--tuning-log", self.farm.log, "--strict",
                           "-o", self.farm.folder / "out")
        self.assertNotIn("worker_lost", {record["result"]["status"] for record in records})

    def test_one_job_for_both(self):
        self.expect_whole(self.follow(self.farm.tune(self.targets), None))

    def test_gpu_worker_is_killed_and_comes_back(self):
        gpu = self.devices[1]

        def kill_and_restart():
            self.assertEqual(self.farm.end(gpu, signal.SIGKILL), -signal.SIGKILL)
            time.sleep(1)
            self.farm.start_worker(gpu)

        self.expect_whole(self.follow(self.farm.tune(self.targets), kill_and_restart))


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    if not has_gpu():
        print("skipped: no NVIDIA GPU, or no driver, here")
        sys.exit(77)
    unittest.main()

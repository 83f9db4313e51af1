"""deploy/slurm/workers.sbatch without Slurm: which devices, builders and name a worker gets of an allocation, and how signals and statuses
pass through. The programs that it calls are scripts of this test: python3 slurm_script_test.py"""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/slurm/workers.sbatch"


class SlurmScriptTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.program("nproc", "echo 8")
        self.program("squeue", 'echo "$STATE"')
        self.program("scontrol", 'echo "scontrol $*"')
        self.program("mycc-tune", 'echo "called: $*"')

    def program(self, name, body):
        path = self.folder / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def start(self, *options, **variables):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "MYCC"))}
        environment = {**plain, "PATH": f"{self.folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "12", "SLURM_CLUSTER_NAME": "farm", **variables}
        return subprocess.Popen(["bash", SCRIPT, *options], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def run_to_end(self, *options, **variables):
        process = self.start(*options, **variables)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output

    def test_cpu_worker(self):
        status, output = self.run_to_end("--server", "host:1", SLURM_CPUS_ON_NODE="4")
        self.assertEqual(status, 0, output)
        self.assertIn("called: worker --name farm-12 --device cpu --builders 4 --server host:1\n", output)

    def test_gpus_of_an_array_task(self):
        _, output = self.run_to_end(SLURM_GPUS_ON_NODE="2", SLURM_CPUS_ON_NODE="64", SLURM_ARRAY_JOB_ID="9", SLURM_ARRAY_TASK_ID="3")
        # No more builders than the process has CPUs.
        self.assertIn("called: worker --name farm-9_3 --device cuda:0 --device cuda:1 --builders 8\n", output)

    def test_status_of_the_worker(self):
        self.program("mycc-tune", "exit 7")
        self.assertEqual(self.run_to_end()[0], 7)

    def drained(self, state, signal_worker_too):
        """The script's status and output after Slurm's signal. The worker counts signals until it is told that there are no more."""
        self.program("mycc-tune", "signals=0\ntrap 'signals=$((signals + 1))' TERM\necho ready\n"
                     f"while [[ ! -e {self.folder}/end ]]; do sleep 0.02; done\necho \"signals: $signals\"\nexit 130")
        process = self.start(STATE=state, SLURM_ARRAY_JOB_ID="9", SLURM_ARRAY_TASK_ID="3")
        lines = []
        while "ready\n" not in lines:
            lines.append(process.stdout.readline())
            self.assertNotEqual(lines[-1], "")
        if signal_worker_too:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.send_signal(signal.SIGTERM)
        while not lines[-1].startswith("workers.sbatch: farm-9_3 drains"):
            lines.append(process.stdout.readline())
            self.assertNotEqual(lines[-1], "")
        # The last thing that the script does before it waits again is to signal the worker, or not to.
        time.sleep(0.3)
        (self.folder / "end").touch()
        output, _ = process.communicate(timeout=30)
        self.assertIn("signals: 1\n", output)
        return process.returncode, output

    def test_taken_node(self):
        status, output = self.drained("RUNNING", signal_worker_too=False)
        self.assertEqual(status, 0, output)
        self.assertIn("scontrol requeue 9_3\n", output)

    def test_taken_node_while_slurm_still_signals(self):
        status, output = self.drained("SIGNALING", signal_worker_too=False)
        self.assertEqual(status, 0, output)
        self.assertIn("scontrol requeue 9_3\n", output)

    def test_cancelled(self):
        status, output = self.drained("COMPLETING", signal_worker_too=True)
        self.assertEqual(status, 0, output)
        self.assertNotIn("requeue", output)

    def test_build_worker_has_no_device(self):
        for option in (["--role", "build"], ["--role=build"]):
            _, output = self.run_to_end(*option, SLURM_CPUS_ON_NODE="4")
            self.assertIn(f"called: worker --name farm-12 --builders 4 {' '.join(option)}\n", output)

    def test_wrong_calls(self):
        status, output = self.run_to_end(MYCC_TUNE="no-such-program")
        self.assertEqual(status, 2)
        self.assertIn("no program no-such-program; expected mycc-tune in PATH", output)
        status, output = self.run_to_end(SLURM_JOB_ID="")
        self.assertEqual(status, 2)
        self.assertIn("no job of Slurm", output)


if __name__ == "__main__":
    unittest.main()

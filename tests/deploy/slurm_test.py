"""Workers under Slurm: a job array joins a server, is preempted, drains, and joins again, and the tuning job ends with every trial measured
once. A slurmctld and a slurmd of this test's own run on this host, on free ports and in a temporary folder: python3 slurm_test.py MYCC_TUNE.

Slurm's daemons need root. Ends with 77 where that or a program is missing.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/slurm/workers.sbatch"
MYCC_TUNE = None
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")

# Runs on every x86-64 processor.
TARGET = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1"
WORKLOAD = """workload dense(x: f32[32,64], w: f32[48,64]) -> (y: f32[32,48]) {
  y[i,j]: f32[32,48] = sum[k:64](x[i,k] * w[j,k])
}
"""
TRIALS = 64

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=farm Nodes=node PriorityTier=1 GraceTime=30 Default=YES
PartitionName=urgent Nodes=node PriorityTier=10 PreemptMode=OFF
"""


def missing():
    """Why the test cannot run here, or nothing."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"not installed: {', '.join(absent)}; deploy/packages.sh installs them" if absent else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(what, condition, seconds=60):
    """The first true value of `condition`, asked for again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


class Cluster:
    """munged, slurmctld and slurmd, and the commands of Slurm's users."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "MYCC_TUNE": str(MYCC_TUNE)}
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(128))
        (folder / "munge" / "key").chmod(0o400)
        controller_port, node_port = free_ports(2)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=folder, controller_port=controller_port, node_port=node_port))
        # Slurm reads cgroup.conf beside slurm.conf, also where no plugin uses cgroups.
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def start(self):
        munge = self.folder / "munge"
        self.begin("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={self.folder}/munge.socket",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        wait_for("munged's socket", (self.folder / "munge.socket").exists)
        self.begin("slurmctld", "-D")
        self.begin("slurmd", "-D", "-N", "node")
        wait_for("an idle node", lambda: any(daemon.poll() is not None for daemon in self.daemons) or
                 "idle" in self.run("sinfo", "--noheader", "--format=%t", check=False))
        ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
        if ended:
            raise AssertionError(f"ended at once: {ended}")

    def begin(self, *command):
        with open(self.folder / f"{command[0]}.out", "wb") as log:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def stop(self):
        # Jobs outlive Slurm's daemons, so they end first.
        self.run("scancel", "--user=root", check=False)
        try:
            wait_for("the end of all jobs", lambda: not self.run("squeue", "--noheader", check=False))
        except AssertionError:
            self.run("scancel", "--full", "--signal=KILL", "--user=root", check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, *command, check=True):
        result = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if check and result.returncode != 0:
            raise AssertionError(f"{command}: {result.stdout}{result.stderr}")
        return result.stdout.strip()

    def submit(self, *options):
        return self.run("sbatch", "--parsable", *options)

    def states(self, job):
        """The states of a job's tasks that Slurm still knows."""
        return self.run("squeue", "--noheader", "--array", f"--jobs={job}", "--states=all", "--format=%T", check=False).split()

    def log_of(self, job, task):
        path = self.folder / f"mycc-tune-{job}_{task}.log"
        return path.read_text() if path.exists() else ""

    def told(self):
        """The last words of the daemons and the workers, for a failure."""
        files = [*self.folder.glob("slurm*.log"), *self.folder.glob("*.out"), *self.folder.glob("mycc-tune-*.log")]
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in files)


class SlurmTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="slurm-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.cluster = Cluster(self.folder)
        self.addCleanup(self.cluster.stop)
        try:
            self.cluster.start()
        except AssertionError as error:
            self.fail(f"{error}\n{self.cluster.told()}")
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.log = self.folder / "farm.db"
        server = subprocess.Popen([MYCC_TUNE, "serve", "--log", self.log, "--listen", self.address], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.assertIn("serving", server.stdout.readline())

    def tune(self, *options):
        (self.folder / "dense.te").write_text(WORKLOAD)
        result = subprocess.run([MYCC_TUNE, "tune", self.folder / "dense.te", "--server", self.address, "--target", TARGET,
                                 "--trials", str(TRIALS), "--strategy", "random", "--seed", "1", *options],
                                capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def ask(self, command, *options):
        result = subprocess.run([MYCC_TUNE, command, *options, "--server", self.address, "--json"], capture_output=True, text=True, timeout=60,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def connected(self):
        """The names of the workers that the server has."""
        return sorted(device["worker"] for device in self.ask("devices"))

    def test_an_array_is_preempted_and_joins_again(self):
        try:
            self.preempt()
        except AssertionError:
            print(self.cluster.told(), self.ask("devices"), self.ask("jobs"))
            raise

    def preempt(self):
        cluster = self.cluster
        array = cluster.submit("--array=0-1", SCRIPT, "--server", self.address)
        names = [f"test-{array}_{task}" for task in (0, 1)]
        wait_for("both workers", lambda: self.connected() == names)
        self.tune("--detach")
        job = self.ask("jobs")[0]["job"]
        wait_for("the first results", lambda: self.ask("jobs")[0].get("trials", 0) > 10)

        # A job of a partition with a higher priority takes the whole node.
        urgent = cluster.submit("--partition=urgent", "--ntasks=2", "--wrap=sleep 3")
        wait_for("the urgent job runs", lambda: "RUNNING" in cluster.states(urgent))
        before = self.ask("jobs")[0]["trials"]
        self.assertLess(before, TRIALS, "the job was over before the workers were preempted")
        for task in (0, 1):
            self.assertIn("drains", cluster.log_of(array, task))
            self.assertIn("finishing the candidate", cluster.log_of(array, task))
        self.assertEqual(self.connected(), [])
        self.assertEqual(set(cluster.states(array)), {"PENDING"})

        # Slurm gives the node back: the same workers go on.
        wait_for("both workers again", lambda: self.connected() == names)
        for task in (0, 1):
            self.assertIn("restart 1", cluster.log_of(array, task))
        ended = subprocess.run([MYCC_TUNE, "watch", job, "--server", self.address], capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.nothing_was_lost()

        # `scancel` ends the workers for good.
        cluster.run("scancel", array)
        wait_for("the array has ended", lambda: set(cluster.states(array)) <= {"CANCELLED"})
        self.assertEqual(self.connected(), [])

    def nothing_was_lost(self):
        job = self.ask("jobs")[0]
        self.assertEqual((job["state"].lower(), job["trials"]), ("done", TRIALS))
        listed = subprocess.run([MYCC_TUNE, "log", "list", "--log", self.log, "--json", "--limit", "100000"], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        records = [json.loads(line) for line in listed.stdout.splitlines()]
        # A final round's records have the trial's name and a time.
        trials = [record["trial"] for record in records if "@" not in record["trial"]]
        self.assertEqual(len(trials), TRIALS)
        self.assertEqual(len(set(trials)), TRIALS)
        lost = [record for record in records if "lost" in json.dumps(record.get("status", "")).lower()]
        self.assertEqual(lost, [])


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    MYCC_TUNE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

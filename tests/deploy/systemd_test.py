"""The units of deploy/systemd, as install.sh puts them in place: systemd reads every line of them, finds them hardened, and the programs know
the options that they are given: python3 systemd_test.py MYCC_TUNE

Ends with 77 where systemd-analyze is missing.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy/systemd"
MYCC_TUNE = None
# The exposure that systemd computes, from 0 to 10. A worker makes namespaces, which counts against it.
MOST_EXPOSED = {"mycc-tune.service": 1.7, "mycc-tune-worker@.service": 3.3, "mycc-tune-backup.service": 1.7}
SERVICES = ("mycc-tune.service", "mycc-tune-worker@.service")


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)


class SystemdTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name) / "root"
        self.archive = pathlib.Path(temporary.name) / "archive"
        (self.archive / "bin").mkdir(parents=True)
        for program in ("mycc", "mycc-tune"):
            (self.archive / "bin" / program).write_text("#!/bin/sh\n")
            (self.archive / "bin" / program).chmod(0o755)
        (self.archive / "docs").mkdir()
        self.install()

    def install(self):
        result = run("bash", UNITS / "install.sh", self.archive, self.root)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def unit(self, name):
        return self.root / "etc/systemd/system" / name

    def settings(self, name):
        """A unit's settings: the values of each key, in order."""
        values = {}
        for line in self.unit(name).read_text().splitlines():
            if line and line[0] not in "#[":
                key, _, value = line.partition("=")
                values.setdefault(key, []).append(value)
        return values

    def test_systemd_reads_every_line(self):
        # verify looks for the programs of this host, so the units name the one that was built.
        for name in MOST_EXPOSED:
            text = self.unit(name).read_text().replace("/usr/bin/mycc-tune", str(MYCC_TUNE))
            instance = self.unit(name.replace("@.", "@cpu."))
            instance.write_text(text)
            with self.subTest(unit=name):
                result = run("systemd-analyze", "verify", "--man=no", instance)
                self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def test_backups_of_a_served_log(self):
        unit = self.settings("mycc-tune-backup.service")
        state = self.root / "var/lib"
        (state / "mycc-tune").mkdir(parents=True)
        (state / "mycc-tune-backup").mkdir()
        log = state / "mycc-tune/farm.db"
        server = subprocess.Popen([MYCC_TUNE, "serve", "--log", log, "--listen", f"unix:{state}/socket"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.assertIn("serving", server.stdout.readline())
        old = state / "mycc-tune-backup/farm-20200101T000000.db"
        old.touch()
        os.utime(old, (0, 0))
        # The commands as systemd gives them: its own signs replaced, words split, no shell.
        for command in unit["ExecStart"]:
            command = re.sub("%[S%]", lambda sign: str(state) if sign[0] == "%S" else "%", command)
            command = command.replace("$$", "$").replace("/usr/bin/mycc-tune", str(MYCC_TUNE))
            result = run(*shlex.split(command))
            self.assertEqual(result.returncode, 0, result.stderr)
        (made,) = (state / "mycc-tune-backup").iterdir()
        self.assertRegex(made.name, r"^farm-20\d{6}T\d{6}\.db$")
        self.assertEqual(run(MYCC_TUNE, "log", "stats", "--log", made).returncode, 0)

    def test_a_wrong_line_is_noticed(self):
        wrong = self.unit("wrong.service")
        wrong.write_text(f"[Service]\nExecStart={MYCC_TUNE} serve\nProtectSystm=strict\n")
        self.assertIn("ProtectSystm", run("systemd-analyze", "verify", "--man=no", wrong).stderr)

    def test_hardening(self):
        for name, most in MOST_EXPOSED.items():
            with self.subTest(unit=name):
                result = run("systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={most * 10:.0f}", self.unit(name))
                self.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr)

    def test_worker_can_confine_its_candidates(self):
        worker = self.settings("mycc-tune-worker@.service")
        for key in ("RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "PrivateDevices", "MemoryDenyWriteExecute",
                    "PrivateUsers", "PrivateNetwork"):
            self.assertNotIn(key, worker)
        self.assertIn("@mount", worker["SystemCallFilter"][0])
        # Its lock files are where its neighbours look for them.
        self.assertIn("XDG_RUNTIME_DIR=%t/mycc-tune-worker", worker["Environment"][0])

    def test_ends(self):
        for name in SERVICES:
            unit = self.settings(name)
            # Children of the service get no signal of systemd's before they are to be killed.
            self.assertEqual((unit["KillMode"], unit["KillSignal"], unit["OOMPolicy"]), (["mixed"], ["SIGTERM"], ["continue"]))
            self.assertEqual((unit["SuccessExitStatus"], unit["Restart"]), (["130"], ["always"]))
        # A candidate is built, verified and timed within a minute.
        self.assertGreaterEqual(int(self.settings("mycc-tune-worker@.service")["TimeoutStopSec"][0]), 60)

    def test_programs_know_their_options(self):
        for name in SERVICES:
            _, command, *options = shlex.split(self.settings(name)["ExecStart"][0])
            known = set(re.findall(r"--[a-z0-9-]+", run(MYCC_TUNE, command, "--help").stdout))
            for option in options:
                with self.subTest(unit=name, option=option):
                    self.assertTrue(option.startswith("$") or option.split("=")[0] in known)

    def test_settings_have_a_source(self):
        for name in SERVICES:
            unit = self.settings(name)
            settings = (self.root / unit["EnvironmentFile"][0].lstrip("/")).read_text()
            for variable in re.findall(r"\$\{?(\w+)\}?", unit["ExecStart"][0]):
                self.assertRegex(settings, rf"(?m)^{variable}=")

    def test_credentials(self):
        worker = self.settings("mycc-tune-worker@.service")
        # The files of a folder that `mycc-tune auth` makes for a caller, under its names.
        self.assertEqual(worker["LoadCredential"], [f"{name}:/etc/mycc-tune/worker/{name}" for name in ("ca.pem", "cert.pem", "key.pem")])
        self.assertIn("--credentials=%d ", worker["ExecStart"][0])
        server = self.settings("mycc-tune.service")
        self.assertEqual(server["InaccessiblePaths"], ["-/etc/mycc-tune/farm/ca.key"])

    def test_a_second_installation_keeps_settings(self):
        settings = self.root / "etc/mycc-tune/server.env"
        settings.write_text("MYCC_TUNE_LISTEN=10.0.0.7:50917\n")
        self.install()
        self.assertEqual(settings.read_text(), "MYCC_TUNE_LISTEN=10.0.0.7:50917\n")
        self.assertTrue((self.root / "opt/mycc/bin/mycc-tune").exists())
        self.assertEqual((self.root / "usr/bin/mycc-tune").readlink(), pathlib.Path("/opt/mycc/bin/mycc-tune"))

    def test_wrong_calls(self):
        self.assertEqual(run("bash", UNITS / "install.sh").returncode, 2)
        result = run("bash", UNITS / "install.sh", self.root / "none", self.root)
        self.assertEqual(result.returncode, 1)
        self.assertIn("expected the folder", result.stderr)

    def test_user(self):
        users = (self.root / "usr/lib/sysusers.d/mycc-tune.conf").read_text()
        self.assertRegex(users, r"(?m)^u mycc-tune ")
        if shutil.which("systemd-sysusers"):
            (self.root / "etc").mkdir(exist_ok=True)
            result = run("systemd-sysusers", f"--root={self.root}", "mycc-tune.conf")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("mycc-tune:", (self.root / "etc/passwd").read_text())


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("skipped: no program systemd-analyze; deploy/packages.sh installs it")
        sys.exit(77)
    MYCC_TUNE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

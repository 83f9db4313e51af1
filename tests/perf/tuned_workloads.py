"""Workloads that are written to files, tuned into a log and compiled with it: the first half of every comparison with libraries."""

import json
import math
import re
import statistics
import time

import harness


def write_workloads(arguments, texts):
    """Writes each of name -> text that --only selects to a file of its own; returns name -> path."""
    texts = {name: text for name, text in texts.items() if re.search(arguments.only, name)}
    if not texts:
        raise harness.BenchmarkError(f"--only {arguments.only}: no workload matches")
    arguments.work.mkdir(parents=True, exist_ok=True)
    paths = {name: arguments.work / f"{name}.te" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name])
    return paths


class Tuner:
    """The log of a folder, and how long each workload took to tune into it. `options` are more words for mycc-tune."""

    def __init__(self, arguments, *options):
        self.arguments, self.log, self.options = arguments, arguments.work / "tuning.db", options
        self.seconds_file = arguments.work / "tune_seconds.json"
        if arguments.reuse_log and not self.log.exists():
            raise harness.BenchmarkError(f"--reuse-log: there is no {self.log}")
        if not (arguments.reuse_log or arguments.resume):
            for old in (self.log, self.log.with_name("tuning.db-wal"), self.log.with_name("tuning.db-shm"), self.seconds_file):
                old.unlink(missing_ok=True)
        self.seconds = json.loads(self.seconds_file.read_text()) if self.seconds_file.exists() else {}

    def tune(self, name, path):
        """The output of mycc-tune goes to NAME.tune.txt."""
        if self.arguments.reuse_log or self.arguments.trials == 0 or name in self.seconds:
            return
        command = [self.arguments.bin / "mycc-tune", "tune", path, "--log", self.log, "--target", self.arguments.target,
                   "--trials", self.arguments.trials, *self.options]
        begin = time.monotonic()
        output = harness.run(command, capture_output=True).stdout
        self.seconds[name] = round(time.monotonic() - begin, 2)
        (self.arguments.work / f"{name}.tune.txt").write_text(output)
        self.seconds_file.write_text(json.dumps(self.seconds, indent=1))
        print(f"tuned {name} in {self.seconds[name]:.1f} s", flush=True)

    def compile(self, name, path):
        """The path of the workload's library."""
        log = ["--tuning-log", self.log] if self.log.exists() else []
        folder = self.arguments.work / name
        if getattr(self.arguments, "go_on", False) and (folder / f"{name}.so").exists():
            return folder / f"{name}.so"
        harness.run([self.arguments.bin / "mycc", "compile", path, "--target", self.arguments.target, *log, "-o", folder],
                    capture_output=True)
        return folder / f"{name}.so"


def tune_and_compile(tuner, paths):
    """name -> library, and name -> what went wrong. One workload's failure is not the others'."""
    libraries, failures = {}, {}
    for done, (name, path) in enumerate(paths.items()):
        harness.progress(done, len(paths), name)
        try:
            tuner.tune(name, path)
            libraries[name] = tuner.compile(name, path)
        except harness.BenchmarkError as error:
            failures[name] = str(error)
            print(f"{name}: {error}", flush=True)
    harness.progress(len(paths), len(paths), "tuned and compiled")
    return libraries, failures


def task_of(arguments, path):
    """The entry of `mycc tasks` for the one workload in a file: its canonical text, bytes and operations, among others."""
    task = json.loads(harness.run([arguments.bin / "mycc", "tasks", "--json", path], capture_output=True).stdout)
    return task


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def refuse_failures(failures, count):
    """The end of a comparison: an error when some of `count` workloads have no figures."""
    if failures:
        details = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
        raise harness.BenchmarkError(f"{len(failures)} of {count} workloads have no figures above: {details}")

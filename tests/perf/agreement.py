"""Tunes small CPU workloads twice, cold, and compares the two choices of each; see agreement.sh.

Each workload is tuned by itself, with a log of its own, first by the one tune and then by the other, so that a change of the machine affects both alike.

Choices tie when their times, taken in turn, differ by no more than the sum of half of each final round's interval. This tie is at least 1 % and
at most 2 % (server/ties.h). An interval may be as narrow as 0.1 %, but two comparisons of the same two libraries (mycc bench) differ by more,
so 1 % is the least. A difference counts only where the interval of the side by side ratio excludes 1. That interval is over
placements in memory (mycc bench): the same code differs by several percent from one to the next.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile
import typing

import harness
import small_workloads

LEAST_TIE, MOST_TIE = 0.01, 0.02  # the greater one is kMostBehind of server/ties.cc, less 1
QUICK = re.compile("gemm_64x|softmax_64x|dwconv_14x14_c64|gelu_64x")


class Choice(typing.NamedTuple):
    """A tune's choice for a workload: its trace, the digest of its code, and half of its time's interval over the time."""
    trace: str
    code: str
    half_interval: float

    def is_same_code(self, other):
        return self.trace == other.trace or (self.code != "" and self.code == other.code)


class Compared(typing.NamedTuple):
    name: str
    same: bool
    ratio: float  # the second's time over the first's, and its interval
    low: float
    high: float
    tie: float  # the greatest difference that is a tie, relative

    def difference(self):
        return 0.0 if self.same else abs(math.log(self.ratio))

    def disagrees(self):
        return not self.same and self.difference() > self.tie and not self.low <= 1 <= self.high


def tie_of(first, second):
    return min(MOST_TIE, max(LEAST_TIE, first.half_interval + second.half_interval))


def figures(compared):
    """The last lines: shares and means over all workloads, those with the same choice included."""
    return {"disagreement_outside_ties": sum(one.disagrees() for one in compared) / len(compared),
            "runtime_difference": math.exp(statistics.fmean(one.difference() for one in compared)) - 1}


class Tune:
    """One cold tune: a folder with logs and libraries, one of each for each workload, and caches that nothing else uses."""

    def __init__(self, arguments, number):
        self.arguments, self.seed = arguments, arguments.seeds[number]
        self.folder = arguments.work / f"tune{number + 1}"
        if self.folder.exists():
            raise harness.BenchmarkError(f"{self.folder} is there already; a cold tune needs a new folder (--work)")
        self.folder.mkdir(parents=True)
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), OMP_NUM_THREADS=str(harness.THREADS))

    def run(self, program, *words):
        return harness.run([self.arguments.bin / program, *words], capture_output=True, env=self.environment).stdout

    def library(self, name):
        return self.folder / f"{name}.so"

    def choice(self, name, file):
        """Tunes a workload, compiles it, and returns the Choice."""
        log = self.folder / f"{name}.db"
        limits = ["--trials", self.arguments.trials] + (["--budget", self.arguments.budget] if self.arguments.budget else [])
        (self.folder / f"{name}.txt").write_text(self.run("mycc-tune", "tune", file, "--log", log, "--seed", self.seed, *limits))
        self.run("mycc", "compile", file, "--tuning-log", log, "--strict", "-o", self.folder, "--name", name)
        return choice_of(json.loads(self.run("mycc-tune", "best", file, "--log", log, "--json")))


def choice_of(record):
    timing = record["result"]["timing"]
    seconds = timing["seconds"]
    width = timing.get("ci_high_seconds", seconds) - timing.get("ci_low_seconds", seconds)
    return Choice(record["trace"], record["result"].get("code_digest", ""), width / seconds / 2)


def compare(arguments, name, tunes, choices):
    first, second = (tune.library(name) for tune in tunes)
    report = json.loads(tunes[0].run("mycc", "bench", first, second, "--threads", harness.THREADS, "--seconds", arguments.seconds, "--json"))
    (row,) = report["functions"]
    return Compared(name, choices[0].is_same_code(choices[1]), row["ratio"], row["ci_low_ratio"], row["ci_high_ratio"], tie_of(*choices))


def print_table(compared):
    print(f"{'workload':36} {'second/first':>12}  {'95 % interval':>18}  {'tie within':>10}")
    for one in compared:
        verdict = "same code" if one.same else "differs" if one.disagrees() else "tie"
        print(f"{one.name:36} {one.ratio:12.4f}  {one.low:8.4f} .. {one.high:.4f}  {100 * one.tie:8.2f} %  {verdict}")


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=harness.default_programs(), help="the folder of mycc and mycc-tune")
    parser.add_argument("--work", type=pathlib.Path, help="a new folder for logs and libraries; a temporary one if not given")
    parser.add_argument("--trials", type=int, help="for each workload; 64 if not given")
    parser.add_argument("--budget", help="time limit for each workload and tune, as mycc-tune takes it")
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 0), metavar=("A", "B"), help="of the two searches; the same if not given")
    parser.add_argument("--seconds", type=float, help="for timing each choice; 2 if not given")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    parser.add_argument("--quick", action="store_true", help="four workloads, few trials")
    arguments = parser.parse_args(words)
    arguments.trials = arguments.trials or (4 if arguments.quick else 64)
    arguments.seconds = arguments.seconds or (0.05 if arguments.quick else 2)
    return arguments


def measure(arguments):
    chosen = {name: text for name, text in small_workloads.made().items()
              if re.search(arguments.only, name) and (not arguments.quick or QUICK.match(name))}
    if not chosen:
        raise harness.BenchmarkError(f"--only {arguments.only}: no workload matches")
    arguments.work.mkdir(parents=True, exist_ok=True)
    tunes = [Tune(arguments, number) for number in range(2)]
    compared = []
    for name, text in chosen.items():
        file = arguments.work / f"{name}.te"
        file.write_text(text)
        compared.append(compare(arguments, name, tunes, [tune.choice(name, file) for tune in tunes]))
    print_table(compared)
    same = sum(one.same for one in compared)
    print(f"workloads: {len(compared)}, of which both tunes chose the same code for {same}, tied code for "
          f"{sum(not one.same and not one.disagrees() for one in compared)}")
    for name, value in figures(compared).items():
        print(f"{name}: {value:.4f}")


def main():
    arguments = parse_arguments()
    try:
        harness.pin()
        if arguments.work:
            measure(arguments)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            arguments.work = pathlib.Path(folder)
            measure(arguments)
    except harness.BenchmarkError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

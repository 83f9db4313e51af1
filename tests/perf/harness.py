"""The common parts of the benchmark drivers: the workloads of a .te file, measuring programs run in turn, tables.

Every measurement is a process of its own, since libraries keep spinning threads; the programs take turns round by round, on the same
cores and with the same number of threads, so that a change of the machine's clock affects all of them equally.
"""

import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
THREADS = 2


class BenchmarkError(Exception):
    """Something to tell the user in one line."""


def default_programs():
    """bin/ of an unpacked archive, where this is in one."""
    return ROOT / "bin" if (ROOT / "bin/mycc").exists() else ROOT / "build/release/bin"


def workloads_of(path):
    """Name -> count of the workloads in a .te file, in its order. A comment line `# count N` before a workload is its count."""
    counts, count = {}, 1
    for line in pathlib.Path(path).read_text().splitlines():
        if match := re.match(r"#\s*count\s+(\d+)\s*$", line):
            count = int(match[1])
        elif match := re.match(r"workload\s+(\w+)", line):
            counts[match[1]] = count
            count = 1
    return counts


def split_workloads(path, folder):
    """Writes each workload of a .te file to a file of its own in `folder`; returns name -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for text in re.findall(r"^workload.*?^\}$", pathlib.Path(path).read_text(), re.MULTILINE | re.DOTALL):
        name = re.match(r"workload\s+(\w+)", text)[1]
        paths[name] = folder / f"{name}.te"
        paths[name].write_text(text + "\n")
    return paths


def pin():
    """Keeps this process and the programs it starts on THREADS cores."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < THREADS:
        raise BenchmarkError(f"this process may use {len(cores)} core; the benchmark needs {THREADS}")
    os.sched_setaffinity(0, cores[:THREADS])


def run(command, **options):
    """Runs a program to its end; its failure is a BenchmarkError. Its output goes where this process's does unless captured."""
    command = [str(word) for word in command]
    try:
        return subprocess.run(command, check=True, text=True, **options)
    except FileNotFoundError:
        raise BenchmarkError(f"{command[0]} is not there; build it first") from None
    except subprocess.CalledProcessError as error:
        detail = f": {error.stderr.strip()}" if error.stderr else ""
        raise BenchmarkError(f"`{' '.join(command)}` failed with status {error.returncode}{detail}") from None


REMARKS = set()  # of the programs, each said once however often they run


def measurements(command):
    """The `WORKLOAD WHO NUMBER` lines that a measuring program prints, as who -> number."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS))
    result = run(command, capture_output=True, env=environment)
    for remark in set(result.stderr.splitlines()) - REMARKS:
        REMARKS.add(remark)
        print(remark, file=sys.stderr)
    return {who: float(number) for _, who, number in (line.split() for line in result.stdout.splitlines())}


def figures(command):
    """The `NAME: VALUE` lines that a program prints, as name -> number, or the text where it is none."""
    result = {}
    for line in run(command, capture_output=True).stdout.splitlines():
        name, _, value = line.partition(": ")
        try:
            result[name] = float(value)
        except ValueError:
            result[name] = value
    return result


DISTURBED = 1.25  # a median this far above the least number: something else had the cores for much of the time


def disturbed(samples):
    """Whether the numbers of the best of a command's ways say that it was not alone, for any command."""
    best = [min(sample.values(), key=statistics.median) for sample in samples if sample]
    return any(statistics.median(numbers) > DISTURBED * min(numbers) for numbers in best)


def take_turns(commands, rounds, most_rounds=0, of_interest=lambda who: True):
    """Runs the commands one after the other, `rounds` times over, and on to `most_rounds` while the times of those `of_interest` look disturbed.
    Returns one {who: median} for each command."""
    samples, done = [collections.defaultdict(list) for _ in commands], 0
    while done < rounds or (done < most_rounds and disturbed([{who: numbers for who, numbers in sample.items() if of_interest(who)}
                                                              for sample in samples])):
        for command, sample in zip(commands, samples):
            for who, number in measurements(command).items():
                sample[who].append(number)
        done += 1
    return [{who: statistics.median(numbers) for who, numbers in sample.items()} for sample in samples]


def progress(done, total, what):
    """One line that overwrites itself on a terminal, silence elsewhere."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\033[K[{done}/{total}] {what}", end=end, file=sys.stderr, flush=True)


def print_table(header, rows):
    """Prints rows of text in columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells))


def main(body):
    """Calls `body`; a BenchmarkError becomes one line and status 1."""
    try:
        body()
    except BenchmarkError as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

"""Prints what limits the default schedule of each GPU workload, by count: launches, their expected time, and the largest resource of each. No
GPU is needed.

    python3 -B tests/perf/gpu_counts.py --mycc build/release/bin/mycc [--only REGEX] [--target h200]

The workloads are the suite, those of other types, and those that were found slow. `mycc explain`
prints the counts of a single one.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from gpu_workloads import limits, suite, types


COUNTS = re.compile(r"^# counts \d+: ([0-9.e+]+) us: .*; limited by (.*)$", re.M)


def read(text):
    """The launches' times in us and limits, and the rule, of what `mycc explain` prints."""
    rule = re.search(r"^# sketch (\S+)", text, re.M)
    return [(float(us), limit) for us, limit in COUNTS.findall(text)], rule.group(1) if rule else "naive"


def counts_of(mycc, path, target):
    return read(subprocess.run([mycc, "explain", path, "--target", target], check=True, capture_output=True, text=True).stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mycc", default="build/release/bin/mycc", help="the program")
    options.add_argument("--only", default="", metavar="REGEX", help="the workloads whose names it matches")
    options.add_argument("--target", default="h200")
    given = options.parse_args()
    workloads = {name: text for name, text in {**suite(), **types(), **limits()}.items() if re.search(given.only, name)}
    if not workloads:
        sys.exit(f"gpu_counts.py: --only {given.only}: no workload's name matches")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in workloads.items():
            path = pathlib.Path(folder, "workload.te")
            path.write_text(text)
            launches, rule = counts_of(given.mycc, path, given.target)
            print(f"{name:46} {rule:24} {sum(us for us, _ in launches):8.1f} us  " + ", ".join(f"{limit} {us:.1f}" for us, limit in launches), flush=True)


if __name__ == "__main__":
    main()

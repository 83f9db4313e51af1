"""Do trials of different moments agree? Measures the same random candidates of each workload twice, one search after the other, and ends with

    pairs_ordered_alike: N    share of the pairs that the one search tells apart by more than 3 % and that the other one orders alike
    near_best_alike: N        the same of candidates within 1.3 of the best
    most_lost: N              the most that one search's choice loses by the other one's times

    python3 -B tests/perf/trial_order.py [--trials 40] [--only REGEX] [--bin FOLDER]

The workloads are those of search_quality.te. It takes about a quarter of a minute for each.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import tempfile

import harness

WORKLOADS = pathlib.Path(__file__).with_name("search_quality.te")
APART, NEAR = 1.03, 1.3


def alike(first, second, within):
    """The pairs of the first one's candidates that the second one orders alike, and all: those within `within` of the best, and apart."""
    best = min(first.values())
    known = [trace for trace in first if trace in second and first[trace] <= within * best]
    pairs = [(a, b) for a in known for b in known if first[b] > APART * first[a]]
    return sum(second[a] < second[b] for a, b in pairs), len(pairs)


def share_alike(searches, within):
    found = [alike(a, b, within) for first, second in searches for a, b in ((first, second), (second, first))]
    return sum(right for right, _ in found) / max(1, sum(pairs for _, pairs in found))


def lost(first, second):
    """How much slower the first one's choice is than the second one's, by the second one's times."""
    shared = {trace: seconds for trace, seconds in first.items() if trace in second}
    return second[min(shared, key=shared.get)] / min(second.values()) - 1


def search(arguments, file, log):
    """The seconds of each candidate of a random search, by its single timing."""
    tune = [arguments.bin / "mycc-tune", "tune", file, "--log", log, "--strategy", "random", "--seed", 1, "--trials", arguments.trials]
    harness.run([*tune, "--quiet"], capture_output=True)
    lines = harness.run([arguments.bin / "mycc-tune", "log", "export", "--log", log, "-o", "-"], capture_output=True).stdout
    seconds = {}
    for line in lines.splitlines():
        record = json.loads(line).get("record", {})
        time = record.get("result", {}).get("timing", {}).get("seconds")
        if time:
            seconds.setdefault(record["trace"], time)  # a final round comes later
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=harness.default_programs(), help="the folder of mycc-tune")
    parser.add_argument("--trials", type=int, default=40, help="of each search")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    arguments = parser.parse_args()
    searches = []
    with tempfile.TemporaryDirectory() as folder:
        for text in WORKLOADS.read_text().split("\n\n"):
            named = re.match(r"workload (\w+)", text.strip())
            if not named or not re.search(arguments.only, named[1]):
                continue
            file = pathlib.Path(folder, named[1] + ".te")
            file.write_text(text)
            pair = [search(arguments, file, pathlib.Path(folder, f"{named[1]}{i}.db")) for i in (1, 2)]
            searches.append(pair)
            print(f"{named[1]:28} {share_alike([pair], math.inf):6.3f} {share_alike([pair], NEAR):6.3f} {max(lost(*pair), lost(*pair[::-1])):7.3f}", flush=True)
    if not searches:
        print(f"trial_order: --only {arguments.only}: no workload matches", file=sys.stderr)
        return 1
    print(f"pairs_ordered_alike: {share_alike(searches, math.inf):.3f}")
    print(f"near_best_alike: {share_alike(searches, NEAR):.3f}")
    print(f"most_lost: {max(max(lost(*pair), lost(*pair[::-1])) for pair in searches):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Tunes the f32 suite and compares it with the libraries; see cpu_vs_libraries.sh.

Ends with the figures as `name: value` lines. A ratio is the best library's time over ours: above 1, ours is faster.
"""

import argparse
import math
import pathlib
import re

import harness

SUITE = harness.ROOT / "tests/perf/suite_cpu_f32.te"
LIBRARIES = ("onednn", "openblas", "loops")
CONTRACTIONS = re.compile(r"gemm_|conv_|dwconv_")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=harness.ROOT / "build/release", help="where the programs are")
    parser.add_argument("--work", type=pathlib.Path, help="folder of log and artifacts; BUILD/cpu_vs_libraries if not given")
    parser.add_argument("--trials", type=int, default=128, help="trials for each workload")
    parser.add_argument("--reuse-log", action="store_true", help="keep the log of an earlier run and tune nothing")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    parser.add_argument("--rounds", type=int, default=5, help="how often the programs take turns")
    parser.add_argument("--seconds", type=float, default=0.4, help="measuring time of each turn")
    arguments = parser.parse_args()
    arguments.work = arguments.work or arguments.build / "cpu_vs_libraries"
    return arguments


def tune(arguments, paths):
    """Tunes each workload into the log, which starts empty; returns the log's path."""
    log = arguments.work / "tuning.db"
    if arguments.reuse_log:
        if not log.exists():
            raise harness.BenchmarkError(f"--reuse-log: there is no {log}")
        return log
    for old in (log, log.with_name("tuning.db-wal"), log.with_name("tuning.db-shm")):
        old.unlink(missing_ok=True)
    for path in paths.values():
        harness.run([arguments.build / "bin/mycc-tune", "tune", path, "--log", log, "--target", "host",
                     "--trials", arguments.trials])
    return log


def compile_artifacts(arguments, paths, log):
    """Compiles each workload with the log; returns name -> library."""
    libraries = {}
    for name, path in paths.items():
        harness.run([arguments.build / "bin/mycc", "compile", path, "--target", "host", "--tuning-log", log,
                     "-o", arguments.work / name])
        libraries[name] = arguments.work / name / f"{name}.so"
    return libraries


def compare(arguments, libraries):
    """Times ours and the libraries in turn; returns (name, ours, best library's name, its time) for each workload."""
    binaries = arguments.build / "bin"
    results = []
    for done, (name, library) in enumerate(libraries.items()):
        harness.progress(done, len(libraries), name)
        commands = [[binaries / "time_artifact", library, name, arguments.seconds]]
        commands += [[binaries / "peers_cpu", peer, name, arguments.seconds] for peer in LIBRARIES]
        ours, *peers = harness.take_turns(commands, arguments.rounds)
        times = {who: milliseconds for peer in peers for who, milliseconds in peer.items()}
        best = min(times, key=times.get)
        results.append((name, ours["ours"], best, times[best]))
    harness.progress(len(libraries), len(libraries), "done")
    return results


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def report(results):
    rows = [[name, f"{ours:.3f}", best, f"{peer:.3f}", f"{peer / ours:.2f}"] for name, ours, best, peer in results]
    harness.print_table(["workload", "ours ms", "best library", "its ms", "ratio"], rows)
    ratios = {name: peer / ours for name, ours, _, peer in results}
    contractions = [ratio for name, ratio in ratios.items() if CONTRACTIONS.match(name)]
    others = [ratio for name, ratio in ratios.items() if not CONTRACTIONS.match(name)]
    print()
    print(f"geomean_f32_contractions: {geometric_mean(contractions):.3f}")
    print(f"geomean_f32_rows: {geometric_mean(others):.3f}")
    print(f"min_f32: {min(ratios.values()):.3f}")


def body():
    arguments = parse_arguments()
    paths = harness.split_workloads(SUITE, arguments.work)
    paths = {name: path for name, path in paths.items() if re.search(arguments.only, name)}
    if not paths:
        raise harness.BenchmarkError(f"--only {arguments.only}: no workload of {SUITE} matches")
    log = tune(arguments, paths)
    libraries = compile_artifacts(arguments, paths, log)
    harness.pin()
    report(compare(arguments, libraries))


harness.main(body)

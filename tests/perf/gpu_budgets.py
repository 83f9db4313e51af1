"""How near a small budget of trials comes to a large one on NVIDIA GPUs; see gpu_budgets.sh.

Each workload is tuned once with each budget, each time into a log of its own, and the two kernels are timed in turn in one process. A
ratio is the time of the large budget's kernel over the small one's: 1, nothing was missed. Ends with the figures as `name: value` lines.
"""

import argparse
import copy
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import gpu_workloads
import harness
import tuned_workloads


def budgets_of(text):
    budgets = [int(word) for word in text.split(",")] if re.fullmatch(r"\d+,\d+", text) else [0, 0]
    if not 1 <= budgets[0] < budgets[1]:
        raise argparse.ArgumentTypeError(f"{text}: expected two numbers of trials, the smaller one first, such as 16,512")
    return budgets


def share_of(text):
    share = [int(word) for word in text.split("/")] if re.fullmatch(r"\d+/\d+", text) else [0, 0]
    if not 1 <= share[0] <= share[1]:
        raise argparse.ArgumentTypeError(f"{text}: expected a part and the number of parts, such as 1/8")
    return share


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=harness.default_programs(), help="the folder of mycc and mycc-tune")
    parser.add_argument("--work", type=pathlib.Path, default=harness.ROOT / "build/gpu_budgets",
                        help="folder of the logs, the artifacts and results.json")
    parser.add_argument("--target", default="cuda", help="what is tuned for, as mycc-tune takes it")
    parser.add_argument("--budgets", type=budgets_of, default=[16, 512], metavar="SMALL,LARGE", help="trials for each workload; 16,512")
    parser.add_argument("--random", type=int, default=12, metavar="N", help="N workloads of drawn shapes beside the suite; 12")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn shapes and of all inputs")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    parser.add_argument("--resume", action="store_true", help="keep the logs of an earlier run and tune what it did not finish")
    parser.add_argument("--rounds", type=int, default=100, help="how often each kernel is timed")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="the first N GPUs work side by side, each on its share of the workloads")
    parser.add_argument("--share", type=share_of, default=[1, 1], metavar="I/N", help="only every N-th workload, from the I-th on")
    return parser.parse_args(words)


def workloads_of(arguments):
    """name -> text of the share's workloads: the suite, then the drawn ones."""
    texts = {**gpu_workloads.SETS["suite"].fixed(), **gpu_workloads.SETS["suite"].drawn(arguments.random, arguments.seed)}
    chosen = [(name, text) for name, text in texts.items() if re.search(arguments.only, name)]
    if not chosen:
        raise harness.BenchmarkError(f"--only {arguments.only}: no workload matches")
    part, parts = arguments.share
    return dict(chosen[part - 1 :: parts])


def tuner_of(arguments, trials):
    """A tuner with this budget, whose log and libraries lie in a folder of their own."""
    own = copy.copy(arguments)
    own.work, own.trials, own.reuse_log = arguments.work / str(trials), trials, False
    own.work.mkdir(parents=True, exist_ok=True)
    return tuned_workloads.Tuner(own, "--cache", "cold")


def milliseconds_of(libraries, arguments, timer):
    """trials -> median time of one workload's kernels, on the same random inputs."""
    import gpu_artifact

    calls = {}
    for trials, library in libraries.items():
        function = gpu_artifact.Function(library)
        inputs, outputs = function.random_inputs("cuda", arguments.seed), function.empty_outputs("cuda")
        calls[trials] = function.bind([*inputs, *outputs])
    return timer.milliseconds(calls, arguments.rounds)


def rows_of(arguments):
    """A row for each workload of the share, and name -> what went wrong."""
    texts = workloads_of(arguments)
    if not texts:  # there are more devices than workloads
        return [], {}
    paths = tuned_workloads.write_workloads(arguments, texts)
    tuners = {trials: tuner_of(arguments, trials) for trials in arguments.budgets}
    libraries, failures = {name: {} for name in paths}, {}
    for trials, tuner in tuners.items():
        tuned, failed = tuned_workloads.tune_and_compile(tuner, paths)
        failures.update(failed)
        for name, library in tuned.items():
            libraries[name][trials] = library
    import gpu_timer

    timer, rows = gpu_timer.ColdTimer(), []
    small, large = arguments.budgets
    for name in paths:
        if name in failures:
            continue
        try:
            times = milliseconds_of(libraries[name], arguments, timer)
        except (harness.BenchmarkError, RuntimeError) as error:
            failures[name] = str(error).splitlines()[0]
            continue
        rows.append({"name": name, "small": times[small], "large": times[large], "ratio": times[large] / times[small],
                     "small_seconds": tuners[small].seconds[name], "large_seconds": tuners[large].seconds[name]})
        print(f"{name}: ratio {rows[-1]['ratio']:.3f}, {rows[-1]['small_seconds']:.1f} s of tuning", flush=True)
    return rows, failures


def run_side_by_side(arguments):
    """One process for each device with its share; the rows and failures of all."""
    processes = []
    for device in range(arguments.devices):
        work = arguments.work / f"device{device}"
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(device)}
        command = [sys.executable, "-B", __file__, *sys.argv[1:], "--devices", "1", "--share", f"{device + 1}/{arguments.devices}", "--work", str(work)]
        processes.append((work, subprocess.Popen(command, env=environment)))
    rows, failures = [], {}
    for work, process in processes:
        process.wait()
        try:
            results = json.loads((work / "results.json").read_text())
        except FileNotFoundError:
            raise harness.BenchmarkError(f"the process of {work} ended with status {process.returncode}") from None
        rows += results["rows"]
        failures.update(results["failures"])
    return rows, failures


def report(arguments, rows):
    small, large = arguments.budgets
    header = ["workload", f"{small}: ms", f"{large}: ms", "ratio", f"{small}: tuning s", f"{large}: tuning s"]
    print()
    harness.print_table(header, [[row["name"], f"{row['small']:.4f}", f"{row['large']:.4f}", f"{row['ratio']:.3f}",
                                  f"{row['small_seconds']:.1f}", f"{row['large_seconds']:.1f}"] for row in rows])
    print()
    print(f"geomean_small_of_large: {tuned_workloads.geometric_mean([row['ratio'] for row in rows]):.4f}")
    print(f"min_small_of_large: {min(row['ratio'] for row in rows):.3f}")
    print(f"tune_seconds_median: {statistics.median(row['small_seconds'] for row in rows):.1f}")


def body():
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    results = arguments.work / "results.json"
    results.unlink(missing_ok=True)
    rows, failures = run_side_by_side(arguments) if arguments.devices > 1 else rows_of(arguments)
    results.write_text(json.dumps({"rows": rows, "failures": failures}, indent=1))
    if rows and arguments.share == [1, 1]:
        report(arguments, rows)
    tuned_workloads.refuse_failures(failures, len(rows) + len(failures))


if __name__ == "__main__":
    harness.main(body)

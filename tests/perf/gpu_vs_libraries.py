"""Tunes the GPU suite, or another set of workloads, and compares it with PyTorch's libraries and PyTorch's autotuner; see gpu_vs_libraries.sh.

All run in this one process, on the same random inputs, in turns. A ratio is the best peer's time over ours: above 1, ours is faster. The
share of the roof is what ours reaches of the device's measured ceilings. Ends with the figures as `name: value` lines.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import time
import typing

import attention_comparison
import attention_workloads
import gpu_drawn_workloads
import gpu_progress
import gpu_results
import gpu_workloads
import harness
import tuned_workloads

SETS = {**gpu_workloads.SETS,
        "attention": gpu_workloads.Set(lambda: attention_workloads.texts(attention_workloads.fixed()),
                                       lambda count, seed: attention_workloads.texts(attention_workloads.drawn(count, seed)))}

MEMORY_BOUND = re.compile(r"(softmax|layernorm|rmsnorm|sum|column_sum|logsumexp|argmax|transpose|chain|gelu)_")
CONTRACTION = re.compile(r"(gemm|gemv|bmm|conv)_")
FIRST_INPUT = re.compile(r"\(t0: (\w+)\[")  # of a canonical workload
PEERS = {"eager": ("eager",), "compile": ("compile",), "both": ("eager", "compile")}


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=harness.ROOT / "build/release/bin", help="the folder of mycc and mycc-tune")
    parser.add_argument("--work", type=pathlib.Path, default=harness.ROOT / "build/gpu_vs_libraries",
                        help="folder of the log, the artifacts and results.json")
    parser.add_argument("--target", default="cuda", help="what is tuned for, as mycc-tune takes it")
    parser.add_argument("--trials", type=int, default=64, help="trials for each workload, at most; 0: the default schedules")
    parser.add_argument("--min-gain", default="0.5%", metavar="SHARE",
                        help="of mycc-tune: a workload's tuning ends when as many trials again are expected to gain less; 0.5%%; 0: after all trials")
    parser.add_argument("--reuse-log", action="store_true", help="keep the log of an earlier run and tune nothing")
    parser.add_argument("--resume", action="store_true", help="keep the log of an earlier run and tune what it did not finish")
    parser.add_argument(gpu_progress.GO_ON, dest="go_on", action="store_true",
                        help="go on with an earlier run: keep its log, its libraries, its rows and its failures, and do the rest")
    parser.add_argument("--figures", action="store_true", help="print the table and the figures of an earlier run; run nothing")
    parser.add_argument("--limit", type=float, default=240, metavar="SECONDS", help="for the comparison of one workload, PyTorch's tuning included; 240")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    parser.add_argument("--set", choices=SETS, default="suite",
                        help="the suite; types: 8-bit floats, i8, tf32, f16, grouped and NCHW convolutions, rows to one number; f32_products: "
                             "products of f32, even and odd; limits: 16 that were found slow; attention: forward, decoding, and changed scores")
    parser.add_argument("--random", type=int, default=0, metavar="N",
                        help="N workloads of other shapes in place of the set: products, convolutions and rows; products of f32; or attention")
    parser.add_argument("--families", choices=("first", "second"), default="first",
                        help="of --random; first: the set's; second: products of f32 of any size, products of 16 bits with all extents of 33 to "
                             "6000, and rows, in turn")
    parser.add_argument("--seed", type=int, default=1, help="of --random's shapes and of all inputs")
    parser.add_argument("--peers", choices=PEERS,
                        help="eager: PyTorch's operators; compile: its autotuner; both if not given, eager with --random")
    parser.add_argument("--peer-cache", type=pathlib.Path, help="folder where PyTorch's autotuner keeps its findings from run to run")
    parser.add_argument("--tune-only", action="store_true", help="tune and compile; compare nothing")
    parser.add_argument("--rounds", type=int, default=100, help="how often each is timed")
    parser.add_argument("--quick", action="store_true", help="8 trials, 20 rounds, PyTorch's operators alone")
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.trials, arguments.rounds, arguments.peers = min(arguments.trials, 8), 20, arguments.peers or "eager"
    arguments.peers = PEERS[arguments.peers or ("eager" if arguments.random and arguments.set != "attention" else "both")]
    if arguments.families == "second" and not arguments.random:
        parser.error("--families second needs --random N")
    if arguments.families == "second" and arguments.set != "suite":
        parser.error(f"--families second takes the place of a set; it cannot be used with --set {arguments.set}")
    arguments.resume = arguments.resume or arguments.go_on
    return arguments


def write_workloads(arguments):
    """Writes each workload to a file of its own; returns name -> path."""
    chosen = SETS[arguments.set]
    if not arguments.random:
        texts = chosen.fixed()
    elif arguments.families == "second":
        texts = gpu_drawn_workloads.drawn(arguments.random, arguments.seed)
    else:
        texts = chosen.drawn(arguments.random, arguments.seed)
    return tuned_workloads.write_workloads(arguments, texts)


class Work(typing.NamedTuple):
    byte_count: float
    operations: float  # of contractions
    operands: str  # their type, or tf32


def work_of(arguments, path):
    """The bytes that a workload moves, and the operations that it multiplies."""
    task = tuned_workloads.task_of(arguments, path)
    operands = "tf32" if "tf32(" in task["workload"] else FIRST_INPUT.search(task["workload"])[1]
    return Work(task["bytes"], task["flops"] if CONTRACTION.match(task["workload_name"]) else 0, operands)


def set_up_torch(arguments):
    """Imports PyTorch, after the environment says where its autotuner keeps things. f32 is f32: no TF32, but where a peer asks
    for it."""
    if arguments.peer_cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(arguments.peer_cache / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(arguments.peer_cache / "triton")
    import torch

    if not torch.cuda.is_available():
        raise harness.BenchmarkError("PyTorch finds no NVIDIA GPU; expected one, and its driver")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}", flush=True)


def compare_one(arguments, timer, name, library):
    """Our time and the peers', name -> milliseconds, what mycc says of the schedule, and what else a row has."""
    import gpu_artifact
    import gpu_peers

    function = gpu_artifact.Function(library)
    inputs, (output,) = function.random_inputs("cuda", arguments.seed), function.empty_outputs("cuda")
    calls = {"ours": function.bind([*inputs, output])}
    calls["ours"]()
    peer = gpu_peers.Peer(name, inputs, list(output.shape))
    gpu_results.check(name, output, peer.result(), peer.rounding_of(function.arguments[-1]["dtype"]))
    if "eager" in arguments.peers:
        calls["eager"] = peer.eager()
    if "compile" in arguments.peers:
        calls["compile"] = peer.compiled()
    return timer.milliseconds(calls, arguments.rounds), function.reason, {}


def works_of(arguments, paths, libraries):
    if arguments.set == "attention":
        specs = attention_comparison.specifications(arguments)
        return {name: Work(specs[name].byte_count(), specs[name].operations(), specs[name].dtype) for name in libraries}
    return {name: work_of(arguments, paths[name]) for name in libraries}


def compare(arguments, paths, libraries, progress, seconds):
    """Adds a row, as results.json has it, for each library that could be compared and is not yet."""
    libraries = {name: library for name, library in libraries.items() if not progress.has(name)}
    if not libraries:
        return
    set_up_torch(arguments)
    import gpu_timer

    timer = gpu_timer.ColdTimer()
    works = works_of(arguments, paths, libraries)
    ceilings = gpu_timer.Ceilings(timer, {work.operands for work in works.values() if work.operations > 0})
    print(f"ceilings: {ceilings}", flush=True)
    progress.more["ceilings"] = str(ceilings)
    compare_this = attention_comparison.compare_one if arguments.set == "attention" else compare_one
    for name, library in libraries.items():
        begin = time.monotonic()
        with progress.watched(name):
            times, reason, more = compare_this(arguments, timer, name, library)
            roof = ceilings.roof_milliseconds(*works[name])
            best = min(milliseconds for who, milliseconds in times.items() if who != "ours")
            row = {"name": name, **times, "ratio": best / times["ours"], "roof": roof / times["ours"], "reason": reason,
                   "tune_seconds": seconds.get(name), "seconds": round(time.monotonic() - begin, 2), **more}
            progress.add(row)
            said = f"; {attention_comparison.remarks(row)}" if arguments.set == "attention" else ""
            print(f"{name}: ours {times['ours']:.4f} ms, ratio {row['ratio']:.3f}{said}", flush=True)
        free_memory(progress, library)


def free_memory(progress, library):
    """Gives PyTorch's unused memory back, and counts what the library keeps."""
    import torch

    torch.cuda.empty_cache()
    (function,) = json.loads(library.with_suffix(".json").read_text())["functions"]
    progress.keep(function["workspace_bytes"])


def cell(row, key, digits):
    return f"{row[key]:.{digits}f}" if row.get(key) is not None else "-"


def report(rows, second):
    header = ["workload", "ours ms", "eager ms", "compile ms", "ratio", "of the roof", "tuning s", "schedule"]
    harness.print_table(header, [[row["name"], cell(row, "ours", 4), cell(row, "eager", 4), cell(row, "compile", 4), cell(row, "ratio", 3),
                                  cell(row, "roof", 2), cell(row, "tune_seconds", 1), row["reason"]] for row in rows])
    ratios = {row["name"]: row["ratio"] for row in rows}
    families = gpu_drawn_workloads.by_family(ratios) if second else {}
    tuning = [row["tune_seconds"] for row in rows if row["tune_seconds"] is not None]
    print()
    print(f"geomean: {tuned_workloads.geometric_mean(list(ratios.values())):.3f}")
    if memory_bound := [ratio for name, ratio in ratios.items() if MEMORY_BOUND.match(name)]:
        print(f"geomean_memory_bound: {tuned_workloads.geometric_mean(memory_bound):.3f}")
    print(f"min: {min(ratios.values(), default=math.nan):.3f}")
    for family, values in families.items():
        print(f"geomean_{family}: {tuned_workloads.geometric_mean(values):.3f}\nmin_{family}: {min(values):.3f}")
    print(f"tune_seconds_median: {statistics.median(tuning) if tuning else math.nan:.1f}")
    print(f"tune_seconds_max: {max(tuning, default=math.nan):.1f}")


def report_all(arguments, progress):
    rows = progress.rows
    print()
    if arguments.set == "attention":
        attention_comparison.report(rows)
    else:
        report(rows, arguments.families == "second")


def body():
    arguments = parse_arguments()
    progress = gpu_progress.Progress(arguments.work / "results.json", arguments.go_on or arguments.figures, arguments.limit)
    if arguments.figures:
        report_all(arguments, progress)
        return
    paths = write_workloads(arguments)
    tuner = tuned_workloads.Tuner(arguments, "--cache", "cold", *(["--min-gain", arguments.min_gain] if float(arguments.min_gain.rstrip("%")) > 0 else []))
    libraries, failures = tuned_workloads.tune_and_compile(tuner, {name: path for name, path in paths.items() if not progress.has(name)})
    progress.failures |= failures
    if not arguments.tune_only:
        compare(arguments, paths, libraries, progress, tuner.seconds)
        report_all(arguments, progress)
    tuned_workloads.refuse_failures(progress.failures, len(progress.rows) + len(progress.failures))


if __name__ == "__main__":
    harness.main(body)

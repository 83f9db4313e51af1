"""Tunes the CPU's suites and workloads drawn at random, and compares them with the libraries; see cpu_vs_libraries.sh.

Every table is tuned, compiled, checked against each library's results on the same random data, and timed in turn with them. A ratio is the
best library's time over ours: above 1, ours is faster. Ends with the figures as `name: value` lines.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import typing

import attention_workloads
import cpu_drawn_workloads
import cpu_newest
import cpu_shares
import cpu_workloads
import harness
import tuned_workloads
from tuned_workloads import geometric_mean

LIBRARIES = ("onednn", "openblas", "loops")  # Debian's, and what a programmer gets without
NEWEST = {"suites": (*cpu_workloads.SETS, "attention"), "all": (*cpu_workloads.SETS, "attention", "random"), "none": ()}
MOST_TRIALS = 256
MOST_ROUNDS = 3  # times as many as asked for, of a row that something disturbs
# Between results, relative to an element or to the root mean square of all. Reassociated f32 sums of a few thousand products differ by less;
# PyTorch rounds results of bf16 to bf16; integers are the same.
LARGEST_DIFFERENCE = {"f32": 1e-3, "bf16": 2**-7, "i8": 0, "u8": 0}
# The same of attention, relative to an element or to its row: in bf16, factors of the second product and results are rounded, on both sides.
ATTENTION_DIFFERENCE = {"f32": 1e-3, "bf16": 2**-6}
ALL_SETS = (*cpu_workloads.SETS, "attention", "random")


def set_names(text):
    names = ALL_SETS
    chosen = names if text == "all" else text.split(",")
    if unknown := [name for name in chosen if name not in names]:
        raise argparse.ArgumentTypeError(f"`{unknown[0]}` is no set; expected all, or some of {','.join(names)}")
    return tuple(name for name in names if name in chosen)


def trial_count(text):
    if not text.isdigit() or int(text) > MOST_TRIALS:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of trials; expected 0 (default schedules) to {MOST_TRIALS}")
    return int(text)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, help="the folder of mycc, mycc-tune, peers_cpu, time_artifact and cpu_peaks")
    parser.add_argument("--build", type=pathlib.Path, help="a build's folder: its bin/, and cpu_vs_libraries/ in it for --work")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the log, the artifacts and results.json; build/cpu_vs_libraries if not given")
    parser.add_argument("--target", default="host", help="what is tuned for, as mycc-tune takes it")
    parser.add_argument("--set", type=set_names, default="all", metavar="NAME[,NAME...]",
                        help=f"some of {', '.join(ALL_SETS)}; all if not given")
    parser.add_argument("--random", type=int, default=28, metavar="N", help="workloads in the set `random`; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of the set `random`")
    parser.add_argument("--trials", type=trial_count, default=128, help="trials for each workload, at most %d" % MOST_TRIALS)
    parser.add_argument("--reuse-log", action="store_true", help="keep the log of an earlier run and tune nothing")
    parser.add_argument("--resume", action="store_true", help="keep the log of an earlier run and tune what it did not finish")
    parser.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    parser.add_argument("--newest", choices=NEWEST, default="suites",
                        help="the sets that PyTorch's libraries are timed on too, `none` where it is not to be installed")
    parser.add_argument("--rounds", type=int, default=5, help="how often the programs take turns, up to three times as often where something disturbs them")
    parser.add_argument("--seconds", type=float, default=0.4, help="measuring time of each turn")
    arguments = parser.parse_args(words)
    arguments.bin = arguments.bin or (arguments.build / "bin" if arguments.build else harness.default_programs())
    arguments.work = arguments.work or (arguments.build or harness.ROOT / "build") / "cpu_vs_libraries"
    return arguments


class Row(typing.NamedTuple):
    set: str
    workload: cpu_workloads.Workload
    ours: float  # milliseconds, as the other times
    best: str  # of Debian's libraries
    library: float
    newest: float | None
    share: cpu_shares.Share
    times: dict = {}  # of every way of every library, name -> milliseconds

    @property
    def ratio(self):
        return self.library / self.ours

    @property
    def newest_ratio(self):
        return self.newest and self.newest / self.ours


def fastest(name, peers, limit):
    """The fastest library in programs' lines, and its time; (None, None) without lines. Refuses results that differ from ours."""
    lines = {who: number for peer in peers for who, number in peer.items()}
    times = {who: number for who, number in lines.items() if f"{who}.difference" in lines}
    for who in times:
        if not lines[f"{who}.difference"] <= limit:
            raise harness.BenchmarkError(f"{name}: our result differs from {who}'s by {lines[f'{who}.difference']:.3g} of its size; "
                                         f"expected at most {limit:.3g}")
    best = min(times, key=times.get, default=None)
    return best, times.get(best)


class Comparison:
    """Runs our artifacts and the libraries' programs in turn."""

    def __init__(self, arguments, peaks, python, onnxruntime=None):
        """With Pythons that have PyTorch and ONNX Runtime, or None."""
        self.arguments, self.peaks, self.python, self.onnxruntime = arguments, peaks, python, onnxruntime

    def attention_row(self, workload, path, library):
        """A row whose `best` is the better one of PyTorch and ONNX Runtime, and `newest` PyTorch."""
        scripts = (("attention_torch_peer.py", self.python), ("attention_onnxruntime_peer.py", self.onnxruntime))
        with tempfile.TemporaryDirectory(dir=self.arguments.work) as data:
            ours, *peers = self.in_turn(workload, library, data, [
                [python, "-B", pathlib.Path(__file__).with_name(script), workload.spec, data, self.arguments.seconds] for script, python in scripts if python])
        limit = ATTENTION_DIFFERENCE[workload.operands]
        best, milliseconds = fastest(workload.name, peers, limit)
        if best is None:
            raise harness.BenchmarkError(f"{workload.name}: neither PyTorch nor ONNX Runtime computes it here")
        _, newest = fastest(workload.name, peers[:1] if self.python else [], limit)
        share = self.peaks.share(workload, workload.work, ours["ours"])
        times = {who: number for peer in peers for who, number in peer.items() if not who.endswith(".difference")}
        return Row("attention", workload, ours["ours"], best, milliseconds, newest, share, times)

    def row(self, which, workload, path, library):
        if which == "attention":
            return self.attention_row(workload, path, library)
        with tempfile.TemporaryDirectory(dir=self.arguments.work) as data:
            ours, *peers = self.take_turns(which, workload, library, data)
        limit = LARGEST_DIFFERENCE[workload.operands]
        best, milliseconds = fastest(workload.name, peers[:len(LIBRARIES)], limit)
        if best is None:
            raise harness.BenchmarkError(f"{workload.name}: none of {', '.join(LIBRARIES)} computes it on this CPU")
        _, newest = fastest(workload.name, peers[len(LIBRARIES):], limit)
        share = self.peaks.share(workload, tuned_workloads.task_of(self.arguments, path), ours["ours"])
        return Row(which, workload, ours["ours"], best, milliseconds, newest, share)

    def take_turns(self, which, workload, library, data):
        programs, seconds = self.arguments.bin, self.arguments.seconds
        commands = [[programs / "peers_cpu", peer, workload.spec, data, seconds] for peer in LIBRARIES]
        if self.python and which in NEWEST[self.arguments.newest]:
            commands.append([self.python, "-B", pathlib.Path(__file__).with_name("cpu_newest_peer.py"), workload.spec, data, seconds])
        return self.in_turn(workload, library, data, commands)

    def in_turn(self, workload, library, data, commands):
        """who -> number of our artifact, whose inputs and outputs `data` has then, and of each of the libraries' programs."""
        program, rounds = self.arguments.bin / "time_artifact", self.arguments.rounds
        harness.run([program, "--save", data, library, workload.name])
        commands = [[program, library, workload.name, self.arguments.seconds], *commands]
        return harness.take_turns(commands, rounds, MOST_ROUNDS * rounds, lambda who: not who.endswith(".difference"))

    def rows(self, which, workloads, paths, libraries, failures):
        rows = []
        for done, (name, library) in enumerate(libraries.items()):
            harness.progress(done, len(libraries), name)
            try:
                rows.append(self.row(which, workloads[name], paths[name], library))
            except harness.BenchmarkError as error:
                failures[name] = str(error)
                print(f"{name}: {error}", flush=True)
        harness.progress(len(libraries), len(libraries), "compared")
        return rows


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def print_rows(which, rows):
    print(f"\n{which}")
    harness.print_table(["workload", "ours ms", "best library", "its ms", "ratio", "newest ms", "ratio", "of peak"],
                        [[row.workload.name, number(row.ours, 4), row.best, number(row.library, 4), number(row.ratio, 2), number(row.newest, 4),
                          number(row.newest_ratio, 2), str(row.share)] for row in rows])
    sys.stdout.flush()


def figures(rows):
    """The last lines of a run, name -> value, of one table's rows or of all suites'."""

    def mean(type_names, contraction=None, ratio=lambda row: row.ratio):
        chosen = [ratio(row) for row in rows if row.workload.operands in type_names and contraction in (None, row.workload.contraction)]
        return geometric_mean([value for value in chosen if value is not None])

    f32 = [row.ratio for row in rows if row.workload.operands == "f32"]
    return {"geomean_f32_contractions": mean(["f32"], True), "min_f32": min(f32, default=float("nan")), "geomean_f32_rows": mean(["f32"], False),
            "geomean_bf16": mean(["bf16"]), "geomean_i8": mean(["i8", "u8"]),
            "geomean_f32_vs_newest": mean(["f32"], True, lambda row: row.newest_ratio)}


def all_figures(rows):
    """The suites', the blocked table's and the random one's."""
    result = figures([row for row in rows if row.set not in ("blocked", "attention", "random")])
    result["geomean_f32_blocked"] = figures([row for row in rows if row.set == "blocked"])["geomean_f32_contractions"]
    drawn = figures([row for row in rows if row.set == "random"])
    del drawn["geomean_f32_vs_newest"]
    return result | {f"random_{name}": value for name, value in drawn.items()} | attention_figures([row for row in rows if row.set == "attention"])


def attention_figures(rows):
    f32, bf16 = ([row.ratio for row in rows if row.workload.operands == operands] for operands in ("f32", "bf16"))
    least = lambda ratios: min(ratios, default=float("nan"))
    return {"attention_geomean_f32": geometric_mean(f32), "attention_min_f32": least(f32), "attention_geomean_bf16": geometric_mean(bf16),
            "attention_min_bf16": least(bf16)}


def write_results(arguments, peaks, rows, failures):
    described = [{"set": row.set, "name": row.workload.name, "spec": row.workload.spec, "ours": row.ours, "best": row.best, "library": row.library,
                  "newest": row.newest, "share": row.share.value, "peak": row.share.peak, "times": row.times} for row in rows]
    (arguments.work / "results.json").write_text(json.dumps({"peaks": peaks.figures, "rows": described, "failures": failures}, indent=1))


def attention(peaks):
    """The attention workloads for this CPU: those of bf16 where it has the instructions that the libraries use for it."""
    if peaks.figures["bf16_isa"] != "amx":
        print(f"no attention in bf16: this CPU has {peaks.figures['bf16_isa']} and no AMX", flush=True)
        return attention_workloads.cpu("f32")
    return attention_workloads.cpu("f32") | attention_workloads.cpu("bf16")


def without_peerless(sets, python, onnxruntime):
    """The sets without the attention workloads that no library here computes, which is said: ONNX Runtime has none in bf16."""
    workloads = sets.get("attention", {})
    left_out = [name for name, one in workloads.items() if not (python or onnxruntime and one.operands == "f32")]
    if left_out:
        missing = "PyTorch" if onnxruntime else "PyTorch or ONNX Runtime"
        print(f"no comparison of {len(left_out)} attention workloads: no Python here has {missing}", flush=True)
    return sets | ({"attention": {name: one for name, one in workloads.items() if name not in left_out}} if workloads else {})


def chosen_sets(arguments, peaks):
    """set -> name -> workload, those that --only leaves."""
    sets = {which: attention(peaks) if which == "attention" else cpu_workloads.SETS[which]() for which in arguments.set if which != "random"}
    if "random" in arguments.set and arguments.random > 0:
        sets["random"] = cpu_drawn_workloads.drawn(arguments.random, arguments.seed)
    workloads = {name: one for chosen in sets.values() for name, one in chosen.items()}
    paths = tuned_workloads.write_workloads(arguments, {name: one.text for name, one in workloads.items()})
    return {which: {name: one for name, one in chosen.items() if name in paths} for which, chosen in sets.items()}, paths


def body():
    arguments = parse_arguments()
    harness.pin()  # before tuning, which is for as many threads as there are cores
    peaks = cpu_shares.measure(arguments.bin, harness.THREADS, 0.2)
    sets, paths = chosen_sets(arguments, peaks)
    python = cpu_newest.find_python() if set(sets) & set(NEWEST[arguments.newest]) else None
    onnxruntime = cpu_newest.find_onnxruntime() if "attention" in sets else None
    sets = without_peerless(sets, python, onnxruntime)
    tuner = tuned_workloads.Tuner(arguments)
    print(f"peaks of {harness.THREADS} cores: {peaks}", flush=True)
    comparison, rows, failures = Comparison(arguments, peaks, python, onnxruntime), [], {}
    for which, workloads in sets.items():
        libraries, refused = tuned_workloads.tune_and_compile(tuner, {name: paths[name] for name in workloads})
        failures |= refused
        table = comparison.rows(which, workloads, paths, libraries, failures)
        print_rows(which, table)
        rows += table
        write_results(arguments, peaks, rows, failures)
    print()
    for name, value in all_figures(rows).items():
        print(f"{name}: {value:.3f}")
    tuned_workloads.refuse_failures(failures, len(paths))


if __name__ == "__main__":
    harness.main(body)

"""Compares whole compiled models with ONNX Runtime, by default schedules and tuned; see models_cpu.sh.

Each model is compiled, checked against ONNX Runtime on the same random inputs, and timed in turn with it in one process; then tuned, compiled
with the tuning log, and timed again. A ratio is ONNX Runtime's time over ours: above 1, ours is faster. Ends with the figures as
`name: value` lines.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time
import typing

import harness
import models_files
from tuned_workloads import geometric_mean

LARGEST_DIFFERENCE = 1e-3  # relative to an element or to the root mean square of all
NAME = "m"  # of a compiled module
LONGEST = 500  # characters of an error that are shown


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx", help="models; the six of models_files.py if none is named")
    parser.add_argument("--bin", type=pathlib.Path, default=harness.default_programs(), help="the folder of mycc and mycc-tune")
    parser.add_argument("--work", type=pathlib.Path, default=harness.ROOT / "build/models_cpu",
                        help="folder of the log, the libraries and results.json")
    parser.add_argument("--target", default="host", help="what is compiled and tuned for")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x48x192",
                        help="an input's shape, in the models that are named; repeatable")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose names match")
    parser.add_argument("--no-tune", action="store_true", help="tune nothing; with --log, compile with what it has")
    parser.add_argument("--budget", default="10m", help="tuning time of each model, as mycc-tune takes it")
    parser.add_argument("--log", type=pathlib.Path, help="a tuning log to use and keep; a fresh one in --work if not given")
    parser.add_argument("--turns", type=int, default=10, help="how often ours and ONNX Runtime take turns")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time of each of the two")
    return parser.parse_args(words)


class Timing(typing.NamedTuple):
    ours: float  # milliseconds
    peer: float
    difference: float

    @property
    def ratio(self):
        return self.peer / self.ours


class Row(typing.NamedTuple):
    name: str
    compile_seconds: float
    untuned: Timing
    tune_seconds: float | None
    tuned: Timing | None


def compile_model(arguments, model, folder, log=None):
    """The library's path."""
    words = [arguments.bin / "mycc", "compile", model, "--target", arguments.target, "-o", folder, "--name", NAME, "--quiet"]
    words += [word for shape in models_files.shapes_of(model, arguments.shape) for word in ("--shape", shape)]
    harness.run(words + (["--tuning-log", log] if log else []), capture_output=True)
    return folder / f"{NAME}.so"


def tune(arguments, model, log):
    """Tunes a model's kernels into the log. mycc-tune has a server and a worker of its own for it. Its output goes to NAME.tune.txt."""
    words = [arguments.bin / "mycc-tune", "tune", model, "--log", log, "--target", arguments.target, "--budget", arguments.budget]
    words += [word for shape in models_files.shapes_of(model, arguments.shape) for word in ("--shape", shape)]
    (arguments.work / f"{model.stem}.tune.txt").write_text(harness.run(words, capture_output=True).stdout)


def time_model(arguments, model, library):
    """Refuses results that differ from ONNX Runtime's."""
    program = pathlib.Path(__file__).with_name("models_timer.py")
    lines = harness.measurements([sys.executable, "-B", program, model, library, arguments.seconds, arguments.turns])
    if not lines["difference"] <= LARGEST_DIFFERENCE:
        raise harness.BenchmarkError(f"our result differs from ONNX Runtime's by {lines['difference']:.3g} of its size; "
                                     f"expected at most {LARGEST_DIFFERENCE:g}")
    return Timing(lines["ours"], lines["onnxruntime"], lines["difference"])


def seconds_of(step):
    """Runs a step. Returns its result, and how long it took."""
    begin = time.monotonic()
    result = step()
    return result, round(time.monotonic() - begin, 2)


def compare_untuned(arguments, model):
    """A model's row, without what tuning gives."""
    library, compile_seconds = seconds_of(lambda: compile_model(arguments, model, arguments.work / model.stem / "untuned"))
    untuned = time_model(arguments, model, library)
    print(f"{model.stem}: untuned {untuned.ours:.3f} ms, ONNX Runtime {untuned.peer:.3f} ms, ratio {untuned.ratio:.3f}", flush=True)
    return Row(model.stem, compile_seconds, untuned, None, None)


def compare_tuned(arguments, model, log, row):
    """The row with what tuning gives."""
    if arguments.no_tune and not arguments.log:
        return row
    tune_seconds = None if arguments.no_tune else seconds_of(lambda: tune(arguments, model, log))[1]
    tuned = time_model(arguments, model, compile_model(arguments, model, arguments.work / model.stem / "tuned", log))
    print(f"{model.stem}: tuned {tuned.ours:.3f} ms, ONNX Runtime {tuned.peer:.3f} ms, ratio {tuned.ratio:.3f}", flush=True)
    return row._replace(tune_seconds=tune_seconds, tuned=tuned)


def shortened(message):
    """An error's text, whose end may be a list of all nodes of a model."""
    return message if len(message) <= LONGEST else message[:LONGEST] + " ..."


def print_rows(rows):
    def cells(timing):
        return ["-"] * 3 if timing is None else [f"{timing.ours:.3f}", f"{timing.peer:.3f}", f"{timing.ratio:.3f}"]

    print()
    harness.print_table(["model", "compile s", "untuned ms", "ONNX Runtime ms", "ratio", "tune s", "tuned ms", "ONNX Runtime ms", "ratio"],
                        [[row.name, f"{row.compile_seconds:.1f}", *cells(row.untuned),
                          "-" if row.tune_seconds is None else f"{row.tune_seconds:.0f}", *cells(row.tuned)] for row in rows])


def figures(rows):
    """The last lines of a run, name -> value. The first two are of tuned models, no numbers where none was tuned."""
    tuned = [row.tuned.ratio for row in rows if row.tuned]
    return {"geomean_models": geometric_mean(tuned), "min_models": min(tuned, default=math.nan),
            "geomean_untuned": geometric_mean([row.untuned.ratio for row in rows])}


def write_results(arguments, rows, failures):
    described = [row._asdict() | {kind: timing and timing._asdict() for kind, timing in (("untuned", row.untuned), ("tuned", row.tuned))}
                 for row in rows]
    (arguments.work / "results.json").write_text(json.dumps({"rows": described, "failures": failures, "figures": figures(rows)}, indent=1))


def tuning_log(arguments):
    """The log's path. A log in --work is of this run alone."""
    if arguments.log:
        return arguments.log
    log = arguments.work / "tuning.db"
    for old in (log, log.with_name("tuning.db-wal"), log.with_name("tuning.db-shm")):
        old.unlink(missing_ok=True)
    return log


def body():
    arguments = parse_arguments()
    harness.pin()  # before tuning, which is for as many threads as there are cores
    if arguments.log and arguments.no_tune and not arguments.log.exists():
        raise harness.BenchmarkError(f"--log: there is no {arguments.log} to compile with")
    models = [model for model in arguments.models or models_files.all_models() if re.search(arguments.only, model.stem)]
    if not models:
        raise harness.BenchmarkError(f"--only {arguments.only}: no model matches")
    arguments.work.mkdir(parents=True, exist_ok=True)
    log, rows, failures = tuning_log(arguments), [], {}
    for done, model in enumerate(models):
        harness.progress(done, len(models), model.stem)
        try:
            rows.append(compare_untuned(arguments, model))
            rows[-1] = compare_tuned(arguments, model, log, rows[-1])
        except harness.BenchmarkError as error:
            failures[model.stem] = shortened(str(error))
            print(f"{model.stem}: {failures[model.stem]}", flush=True)
        write_results(arguments, rows, failures)
    harness.progress(len(models), len(models), "compared")
    print_rows(rows)
    print()
    for name, value in figures(rows).items():
        print(f"{name}: {value:.3f}")
    sys.stdout.flush()
    if failures:
        raise harness.BenchmarkError(f"{len(failures)} of {len(models)} models failed and have no complete row above: {', '.join(failures)}")


if __name__ == "__main__":
    harness.main(body)

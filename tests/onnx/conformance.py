"""Runs the cases that the Python package onnx stores, each through `mycc compile` and the C ABI; see conformance.sh.

Each case has a process of its own, so that a crash of the compiler or of a library is that case's failure. Ends with the figures as
`name: value` lines; with status 77 without the packages of tests/requirements.txt.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "perf"))

try:
    import ml_dtypes  # noqa: F401
    import onnx  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import conformance_case  # noqa: E402
import conformance_report  # noqa: E402
import harness  # noqa: E402
import isolated  # noqa: E402
import stored_cases  # noqa: E402

SECONDS = 60  # that one case may take


def sample_of(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 0 < int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"`{text}` is no sample; expected N/M with 0 < N <= M, such as 1/10")
    return int(match[1]), int(match[2])


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no positive number")
    return int(text)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mycc", type=pathlib.Path, default=harness.ROOT / "build/dev/bin/mycc", help="the program; that of build/dev if not given")
    parser.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="only cases whose names match")
    parser.add_argument("--sample", type=sample_of, default="1/1", metavar="N/M", help="N of M cases, the same ones in every run")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count(), help="cases at a time; as many as there are processors if not given")
    parser.add_argument("--seconds", type=positive, default=SECONDS, help=f"that one case may take; {SECONDS} if not given")
    parser.add_argument("--brief", action="store_true", help="print each reason once, with some of its cases")
    parser.add_argument("--require", type=pathlib.Path, metavar="FILE", help="fail unless the cases that it names pass, those of the sample")
    parser.add_argument("--write-passed", type=pathlib.Path, metavar="FILE", help="write the names of the cases that pass, for --require")
    return parser.parse_args(words)


def in_sample(name, sample):
    """The hash stays the same from run to run, and from one version of onnx to the next."""
    return zlib.crc32(name.encode()) % sample[1] < sample[0]


def chosen(cases, arguments):
    cases = [case for case in cases if re.search(arguments.only, case.name) and in_sample(case.name, arguments.sample)]
    if not cases:
        raise harness.BenchmarkError("no case matches --only and --sample")
    return cases


def required_names(arguments, cases):
    if not arguments.require:
        return []
    if not arguments.require.is_file():
        raise harness.BenchmarkError(f"--require: there is no file {arguments.require}")
    names = conformance_report.read_names(arguments.require.read_text())
    if unknown := sorted(set(names) - {case.name for case in cases}):
        raise harness.BenchmarkError(f"{arguments.require}: no case is called {unknown[0]} ({len(unknown)} such names)")
    return names


def results_of(cases, arguments):
    """A Result for each case, in order."""
    results = {}
    with tempfile.TemporaryDirectory(prefix="conformance.") as folder:

        def work(case, announce):
            return conformance_case.run(case, arguments.mycc.resolve(), folder, announce)

        for outcome in isolated.run_all(cases, work, arguments.jobs, arguments.seconds):
            case = outcome.task
            verdict = conformance_case.verdict_of(outcome)
            operator = stored_cases.operator_of(case, case.model())
            results[case] = conformance_report.Result(case.kind, case.name, operator, *verdict)
            harness.progress(len(results), len(cases), case.name)
    return [results[case] for case in cases]


def body():
    arguments = parse_arguments()
    if not os.access(arguments.mycc, os.X_OK):
        raise harness.BenchmarkError(f"{arguments.mycc} is no program; build it first, or name one with --mycc")
    cases = stored_cases.all_cases()
    required = required_names(arguments, cases)
    # Threads that wait for work sleep, because more cases than one run on these cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    results = results_of(chosen(cases, arguments), arguments)
    conformance_report.print_report(results, arguments.brief)
    lines = conformance_report.missing(required, results)
    for line in lines:
        print(f"required but not passed: {line}")
    if arguments.write_passed:
        arguments.write_passed.write_text("".join(f"{result.name}\n" for result in results if result.status == conformance_case.PASSED))
    conformance_report.print_figures(results)
    sys.stdout.flush()
    return 1 if lines else 0


if __name__ == "__main__":
    harness.main(lambda: sys.exit(body()))

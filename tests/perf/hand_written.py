"""Times the kernels of tests/perf/hand_written on one thread, in turn with the FMA peak; see hand_written.sh."""

import argparse
import pathlib

import harness

FOLDER = harness.ROOT / "tests/perf/hand_written"
FLOPS = {"gemm_1024": 2 * 1024**3, "conv_3x3": 2 * 56 * 56 * 64 * 64 * 9}


def instruction_set():
    """The traces to use: this machine's widest vectors."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "avx512" if "avx512vl" in flags else "avx2"


def compile_kernel(arguments, name):
    trace = FOLDER / f"{name}.{instruction_set()}.trace"
    harness.run([arguments.build / "bin/mycc", "compile", FOLDER / f"{name}.te", "--target", "host", "--trace", trace,
                 "-o", arguments.work / name], stdout=-3)
    return arguments.work / name / f"{name}.so"


def body():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=harness.ROOT / "build/release", help="where the programs are")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the artifacts; BUILD/hand_written if not given")
    parser.add_argument("--rounds", type=int, default=9, help="how often peak and kernels take turns")
    parser.add_argument("--seconds", type=float, default=0.3, help="measuring time of each turn")
    arguments = parser.parse_args()
    arguments.work = arguments.work or arguments.build / "hand_written"

    libraries = {name: compile_kernel(arguments, name) for name in FLOPS}
    harness.THREADS = 1
    harness.pin()
    binaries = arguments.build / "bin"
    ratios = {name: [] for name in FLOPS}
    rates = {name: [] for name in FLOPS}
    for _ in range(arguments.rounds):
        for name, library in libraries.items():
            # The peak right before each kernel: what counts is their ratio on the clock of the moment.
            peak = harness.figures([binaries / "cpu_peaks", "f32"])["f32_gops"]
            ours = harness.measurements([binaries / "time_artifact", library, name, arguments.seconds])["ours"]
            rates[name].append(FLOPS[name] / ours / 1e6)
            ratios[name].append(rates[name][-1] / peak)
    median = harness.statistics.median
    harness.print_table(["kernel", "GFLOP/s", "of FMA peak"],
                        [[name, f"{median(rates[name]):.1f}", f"{median(ratios[name]):.3f}"] for name in FLOPS])
    print()
    for name in FLOPS:
        print(f"{name}_share_of_peak: {median(ratios[name]):.3f}")


harness.main(body)

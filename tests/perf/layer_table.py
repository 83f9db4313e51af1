"""Times ResNet-50's layers, compiled with the default schedules and with tuned ones, beside oneDNN, and prints a table.

Called by deploy/quickstart.sh. The two libraries come from one .te file; each layer's result is compared between them, and with oneDNN's.
"""

import argparse
import pathlib
import tempfile

import cpu_workloads
import harness

# Reassociated f32 sums of a few thousand products differ by less than this of the largest value.
LARGEST_DIFFERENCE = 1e-3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", type=pathlib.Path, help="the .te file, with `# count N` lines")
    parser.add_argument("--default", type=pathlib.Path, required=True, help="library compiled without a log")
    parser.add_argument("--tuned", type=pathlib.Path, required=True, help="library compiled with the log")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of time_artifact and peers_cpu")
    parser.add_argument("--rounds", type=int, default=5, help="how often the programs take turns")
    parser.add_argument("--seconds", type=float, default=0.1, help="measuring time of each turn")
    return parser.parse_args()


def check(name, whose, difference):
    if not difference <= LARGEST_DIFFERENCE:
        raise harness.BenchmarkError(f"{name}: the tuned result and {whose} differ by {difference:.3g} of its size")


def measure_layer(arguments, name):
    """Milliseconds of the default schedule, of the tuned one and of oneDNN's best way, which computed the same."""
    timer = arguments.programs / "time_artifact"
    compared = harness.measurements([timer, "--compare", arguments.default, arguments.tuned, name])
    check(name, "the default schedule's", compared["difference"])
    with tempfile.TemporaryDirectory() as data:
        harness.run([timer, "--save", data, arguments.tuned, name])
        default, tuned, onednn = harness.take_turns(
            [[timer, arguments.default, name, arguments.seconds],
             [timer, arguments.tuned, name, arguments.seconds],
             [arguments.programs / "peers_cpu", "onednn", cpu_workloads.resnet50()[name].spec, data, arguments.seconds]], arguments.rounds)
    times = {way: number for way, number in onednn.items() if not way.endswith(".difference")}
    for way in times:
        check(name, f"{way}'s", onednn[f"{way}.difference"])
    return default["ours"], tuned["ours"], min(times.values())


def report(counts, times):
    def row(label, count, default, tuned, onednn):
        return [label, str(count), f"{default:.3f}", f"{tuned:.3f}", f"{onednn:.3f}", f"{onednn / tuned:.2f}"]

    rows = [row(name, counts[name], *times[name]) for name in counts]
    totals = [sum(counts[name] * times[name][i] for name in counts) for i in range(3)]
    rows.append(row("all layers, times count", sum(counts.values()), *totals))
    print()
    harness.print_table(["layer", "count", "default ms", "tuned ms", "oneDNN ms", "ratio"], rows)
    print("\nratio: oneDNN's time over the tuned one; above 1, tuned is faster.")
    print(f"weighted speed-up over the default schedule: {totals[0] / totals[1]:.2f}x")


def body():
    arguments = parse_arguments()
    counts = harness.workloads_of(arguments.layers)
    harness.pin()
    times = {}
    for done, name in enumerate(counts):
        harness.progress(done, len(counts), name)
        times[name] = measure_layer(arguments, name)
    harness.progress(len(counts), len(counts), "timed")
    report(counts, times)


harness.main(body)

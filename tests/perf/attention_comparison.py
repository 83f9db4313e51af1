"""The set `attention` of gpu_vs_libraries.py: the comparison of one workload, and the figures of all. The peers are in attention_peers.py."""

import math
import statistics
import typing

import attention_workloads
import harness
from tuned_workloads import geometric_mean

PEERS = ("cudnn", "flash", "efficient", "flex")
FEW_ROUNDS = 8  # of all peers; those that are far behind then are timed no more
FAR = 1.3  # times the best peer's time
# Figures and what is asked of them: at least, or at most where the figure is a time.
ASKED = {"geomean_forward": 0.95, "min_forward": 0.88, "geomean_decoding": 1.5, "geomean_variants_against_flex": 1.2, "tune_seconds_median": 5.0,
         "tune_seconds_max": 20.0}


def specifications(arguments):
    """name -> specification of the workloads that the options ask for."""
    return attention_workloads.drawn(arguments.random, arguments.seed) if arguments.random else attention_workloads.fixed()


def check_sample(name, spec, results, expected, rows):
    """Refuses results, one or two, that differ from the reference on the sampled queries."""
    import gpu_results

    gpu_results.check(name, results[0][:, :, rows], expected[0], spec.dtype, by_row=True)
    if len(results) > 1:
        gpu_results.check(f"{name}, log-sum-exp", results[1][:, :, rows], expected[1], "f32")


def checked(spec, results, expected, rows, calls, refused):
    """Those of the peers that are right. One that differs from the reference on the sampled queries is wrong; where ours differs from one that is
    right, in any element, ours is."""
    import gpu_results

    right = {}
    for who, call in calls.items():
        peer = call()
        try:
            check_sample(who, spec, [peer], expected, rows)
        except harness.BenchmarkError as error:
            refused[who] = f"its result is wrong: {error}"
            continue
        gpu_results.check(f"{spec.name}, against {who}", results[0], peer, spec.dtype, by_row=True)
        right[who] = call
    if not right:
        raise harness.BenchmarkError(f"no peer computes it: {'; '.join(f'{who}: {why}' for who, why in refused.items())}")
    return right


def times_of(timer, ours, peers, rounds):
    """name -> milliseconds. Peers that are far behind the best after a few rounds keep the times of these."""
    first = timer.milliseconds({"ours": ours, **peers}, min(FEW_ROUNDS, rounds))
    best = min(first[who] for who in peers)
    near = {who: call for who, call in peers.items() if first[who] <= FAR * best}
    return first | timer.milliseconds({"ours": ours, **near}, rounds)


def compare_one(arguments, timer, name, library):
    """The times, what mycc says of the schedule, and what else a row has."""
    import attention_peers
    import gpu_artifact

    spec = specifications(arguments)[name]
    function = gpu_artifact.Function(library)
    inputs, results = function.random_inputs("cuda", arguments.seed), function.empty_outputs("cuda")
    attention_peers.prepare_inputs(spec, inputs)
    ours = function.bind([*inputs, *results])
    ours()
    rows = attention_peers.sampled_rows(spec)
    expected = attention_peers.reference(spec, inputs, rows)
    check_sample(name, spec, results, expected, rows)
    calls, refused = attention_peers.ready(spec, inputs, arguments.peers)
    times = times_of(timer, ours, checked(spec, results, expected, rows, calls, refused), arguments.rounds)
    more = {"group": spec.group, "refused": refused, "operations": spec.operations(), "bytes": spec.byte_count()}
    return times, function.reason, more


class Rate(typing.NamedTuple):
    ours: float
    best: float  # peer's
    unit: str

    def __str__(self):
        return f"{self.ours:.{0 if self.ours >= 100 else 2}f}, {self.best:.{0 if self.best >= 100 else 2}f} {self.unit}"


def rate(row):
    """The rate of operations, or of bytes in decoding, which reads all keys for a few queries."""
    amount, unit = (row["bytes"], "TB/s") if row["group"] == "decoding" else (row["operations"], "TFLOP/s")
    best = min(row[who] for who in PEERS if who in row)
    return Rate(amount / row["ours"] / 1e9, amount / best / 1e9, unit)


def remarks(row):
    """The rest of a workload's line, after our time."""
    peers = [f"{who} {row[who]:.4f}" for who in PEERS if who in row]
    refusals = "".join(f"\n  {who} refused: {why}" for who, why in row["refused"].items())
    return f"{', '.join(peers)}; {rate(row)}{refusals}"


class Figure(typing.NamedTuple):
    value: float
    count: int  # of workloads that it is made of


def figure(summary, numbers):
    return Figure(summary(numbers) if numbers else math.nan, len(numbers))


def figures(rows):
    """name -> figure."""
    result, tuning = {}, [row["tune_seconds"] for row in rows if row["tune_seconds"] is not None]
    for group, plural in zip(attention_workloads.GROUPS, ("forward", "decoding", "variants", "others")):
        ratios = [row["ratio"] for row in rows if row["group"] == group]
        result |= {f"geomean_{plural}": figure(geometric_mean, ratios), f"min_{plural}": figure(min, ratios)}
    against_flex = [row["flex"] / row["ours"] for row in rows if row["group"] == "variant" and "flex" in row]
    result["geomean_variants_against_flex"] = figure(geometric_mean, against_flex)
    return result | {"tune_seconds_median": figure(statistics.median, tuning), "tune_seconds_max": figure(max, tuning)}


def asked(name, value):
    """The words of the table about a figure."""
    if name not in ASKED or math.isnan(value):
        return "-", "-"
    reached = value <= ASKED[name] if "seconds" in name else value >= ASKED[name]
    return f"at {'most' if 'seconds' in name else 'least'} {ASKED[name]:g}", "yes" if reached else "no"


def report(rows):
    header = ["workload", "ours ms", *(f"{who} ms" for who in PEERS), "ratio", "ours, best", "of the roof", "tuning s", "s", "schedule"]
    number = lambda row, key, digits: "-" if row.get(key) is None else f"{row[key]:.{digits}f}"
    harness.print_table(header, [[row["name"], number(row, "ours", 4), *(number(row, who, 4) for who in PEERS), number(row, "ratio", 3), str(rate(row)),
                                  number(row, "roof", 2), number(row, "tune_seconds", 1), number(row, "seconds", 1), str(row["reason"])]
                                 for row in rows])
    values = figures(rows)
    print()
    harness.print_table(["figure", "workloads", "is", "asked", "reached"],
                        [[name, str(count), f"{value:.3f}", *asked(name, value)] for name, (value, count) in values.items()])
    print()
    for name, (value, _) in values.items():
        print(f"{name}: {value:.{1 if 'seconds' in name else 3}f}")

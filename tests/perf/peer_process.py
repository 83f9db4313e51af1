"""The parts that programs of CPU libraries in Python share: the specification that they read, the timer, and the difference of results, as
peers_cpu has them. They print `SPEC LIBRARY.WAY MILLISECONDS` and `SPEC LIBRARY.WAY.difference VALUE`.
"""

import math
import statistics
import time

WARM_UPS, FEWEST, MOST = 3, 7, 2000  # as in timer.h
TEXTS = ("a", "b", "x", "weights", "layout", "epilogue")  # keys whose values are words; those of others are numbers


def parse(spec):
    family, _, rest = spec.partition(":")
    pairs = (word.partition("=")[::2] for word in rest.split(","))
    return family, {key: value if key in TEXTS else int(value) for key, value in pairs}


def median_milliseconds(call, seconds):
    for _ in range(WARM_UPS):
        call()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < MOST and (len(samples) < FEWEST or time.perf_counter() < end):
        begin = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - begin)
    return statistics.median(samples) / 1e6


def row_difference(ours, peer):
    """The largest difference of two elements, relative to the peer's element or to the root mean square of its row along the last axis, whichever
    is larger; infinite for a NaN on one side. Both are arrays of NumPy or tensors of PyTorch in f64."""
    size, mean_size = abs(peer), (peer * peer).mean(-1)[..., None] ** 0.5
    size = size + (mean_size - size) * (mean_size > size)
    apart = float((abs(ours - peer) / size).max())
    return math.inf if math.isnan(apart) else apart

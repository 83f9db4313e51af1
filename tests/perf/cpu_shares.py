"""The share of the machine's measured peaks that a time reaches: of its arithmetic, or of its caches' and memory's bandwidth, whichever is larger."""

import bisect
import math
import typing

import harness

PEAK_OF = {"f32": "f32", "bf16": "bf16", "i8": "i8", "u8": "i8"}


class Curve:
    """Gigabytes a second over the bytes of a working set, between those that were measured on a logarithmic scale."""

    def __init__(self, rates):
        self.points = sorted((math.log(size), rate) for size, rate in rates.items())

    def at(self, size):
        x = math.log(max(size, 1))
        after = bisect.bisect(self.points, (x,))
        if after in (0, len(self.points)):
            return self.points[min(after, len(self.points) - 1)][1]
        (x0, y0), (x1, y1) = self.points[after - 1:after + 1]
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


class Share(typing.NamedTuple):
    value: float
    peak: str  # of what: an instruction set's name, `read` or `copy`

    def __str__(self):
        return f"{100 * self.value:.0f} % {self.peak}"


class Peaks:
    def __init__(self, figures):
        """The peaks in the lines of cpu_peaks."""
        self.figures = figures
        self.curves = {kind: Curve({int(name.rsplit("_", 1)[1]): rate for name, rate in figures.items() if name.startswith(f"{kind}_gbs_")})
                       for kind in ("read", "copy")}

    def __str__(self):
        arithmetic = [f"{kind} {self.figures[f'{kind}_gops']:.0f} Gop/s ({self.figures[f'{kind}_isa']})" for kind in ("f32", "bf16", "i8")]
        memory = [f"{kind} {curve.points[-1][1]:.0f} GB/s" for kind, curve in self.curves.items()]
        return ", ".join(arithmetic + memory)

    def share(self, workload, task, milliseconds):
        """The share of the peak that a workload reaches, by the operations and bytes of its `task`. Contractions read, for the most part; rows are written again."""
        peak, moved = PEAK_OF[workload.operands], "read" if workload.contraction else "copy"
        arithmetic = task["flops"] / self.figures[f"{peak}_gops"] / 1e6 / milliseconds if workload.contraction else 0.0
        memory = task["bytes"] / self.curves[moved].at(task["bytes"]) / 1e6 / milliseconds
        return max(Share(arithmetic, self.figures[f"{peak}_isa"]), Share(memory, moved))


def measure(programs, threads, seconds):
    return Peaks(harness.figures([programs / "cpu_peaks", "all", threads, seconds]))

"""Times calls on a GPU that take turns: call by call, each on a cold L2 cache, by events on the device.

Turns meet the same clocks, temperature and power limit; the order changes from round to round, so that nobody always follows the same
one. The host runs ahead of the device, so that the time of a launch on the host is not seen.
"""

import statistics

import torch

FLUSH_FACTOR = 4  # of the L2 cache: how much is written between two calls
HEAD_START_CYCLES = 4_000_000  # about two milliseconds
ROUNDS_AT_ONCE = 8


class ColdTimer:
    def __init__(self):
        cache_bytes = torch.cuda.get_device_properties("cuda").L2_cache_size
        self.flush = torch.empty(FLUSH_FACTOR * cache_bytes, dtype=torch.int8, device="cuda")

    def enqueue(self, call):
        """Puts a call behind the flushing of the cache, between two events, which it returns."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.flush.zero_()
        begin.record()
        call()
        end.record()
        return begin, end

    def milliseconds(self, calls, rounds):
        """name -> median, of calls without arguments that take turns for so many rounds."""
        for call in calls.values():
            for _ in range(3):
                call()
        names, samples = list(calls), {name: [] for name in calls}
        for done in range(0, rounds, ROUNDS_AT_ONCE):
            torch.cuda.synchronize()
            torch.cuda._sleep(HEAD_START_CYCLES)
            pending = []
            for turn in range(done, min(done + ROUNDS_AT_ONCE, rounds)):
                shift = turn % len(names)
                pending += [(name, self.enqueue(calls[name])) for name in names[shift:] + names[:shift]]
            torch.cuda.synchronize()
            for name, (begin, end) in pending:
                samples[name].append(begin.elapsed_time(end))
        return {name: statistics.median(times) for name, times in samples.items()}


def copy_bytes_per_second(timer):
    """Bytes read and written by a copy of a gigabyte within the device's memory."""
    source, copy = (torch.empty(1 << 30, dtype=torch.int8, device="cuda") for _ in range(2))
    return 2 * source.numel() / timer.milliseconds({"copy": lambda: copy.copy_(source)}, 20)["copy"] * 1e3


def product_flops_per_second(timer, extent, dtype):
    """Operations of the library's product of two square matrices of random numbers."""
    a, b = (torch.randn(extent, extent, device="cuda").to(dtype) for _ in range(2))
    return 2 * extent**3 / timer.milliseconds({"product": lambda: a @ b}, 12)["product"] * 1e3


class Ceilings:
    """What the device reaches, measured: the roofs that a workload's time is held against."""

    def __init__(self, timer):
        self.bytes_per_second = copy_bytes_per_second(timer)
        self.flops_per_second = {"f32": product_flops_per_second(timer, 4096, torch.float32),
                                 "16 bits": product_flops_per_second(timer, 8192, torch.bfloat16)}

    def roof_milliseconds(self, byte_count, flops, dtype):
        """The time below which no kernel stays that moves these bytes and, if any, multiplies so much."""
        peak = self.flops_per_second["f32" if dtype == "f32" else "16 bits"]
        return 1e3 * max(byte_count / self.bytes_per_second, flops / peak)

    def __str__(self):
        return (f"copy {self.bytes_per_second / 1e9:.0f} GB/s; products of 16 bits {self.flops_per_second['16 bits'] / 1e12:.0f} TFLOP/s, "
                f"of f32 {self.flops_per_second['f32'] / 1e12:.1f} TFLOP/s")

"""Times calls on a GPU that take turns: call by call, each on a cold L2 cache, by events on the device.

Turns meet the same clocks, temperature and power limit; the order changes from round to round, so that nobody always follows the same
one. The host runs ahead of the device, so that the time of a launch on the host is not seen.
"""

import statistics

import torch

import gpu_products

FLUSH_FACTOR = 4  # of the L2 cache: how much is written between two calls
HEAD_START_CYCLES = 4_000_000  # at least: about two milliseconds
CYCLES_A_CALL = 170_000  # of the head start: a tenth of a millisecond, what a compiled function of PyTorch takes on the host
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
        """name -> median, of calls without arguments that take turns for `rounds` rounds."""
        for call in calls.values():
            for _ in range(3):
                call()
        names, samples = list(calls), {name: [] for name in calls}
        for done in range(0, rounds, ROUNDS_AT_ONCE):
            torch.cuda.synchronize()
            torch.cuda._sleep(max(HEAD_START_CYCLES, CYCLES_A_CALL * ROUNDS_AT_ONCE * len(names)))
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


def tf32_product(a, b):
    with gpu_products.tf32_allowed():
        return a @ b


# The products that measure what the library reaches: square matrices of this extent and type, the function, and its number of scales.
PRODUCTS = {
    "16 bits": (8192, torch.bfloat16, torch.matmul, 0),
    "f32": (4096, torch.float32, torch.matmul, 0),
    "tf32": (8192, torch.float32, tf32_product, 0),
    "8-bit floats": (8192, torch.float8_e4m3fn, gpu_products.scaled_product, 2),
    "i8": (8192, torch.int8, gpu_products.integer_product, 0),
}
KINDS = {"bf16": "16 bits", "f16": "16 bits", "f32": "f32", "tf32": "tf32", "f8e4m3": "8-bit floats", "i8": "i8"}


def random_matrix(extent, dtype):
    if dtype is torch.int8:
        return torch.randint(-128, 128, (extent, extent), dtype=dtype, device="cuda")
    return torch.randn(extent, extent, device="cuda").to(dtype)


def product_operations_per_second(timer, extent, dtype, product, num_scales):
    """The operations a second of the library's product of two square matrices of random numbers."""
    a, b = (random_matrix(extent, dtype) for _ in range(2))
    scales = [torch.ones((), device="cuda") for _ in range(num_scales)]
    return 2 * extent**3 / timer.milliseconds({"product": lambda: product(a, b, *scales)}, 12)["product"] * 1e3


class Ceilings:
    """The measured limits of the device: the roofs that a workload's time is held against. `operands` are the types whose products count."""

    def __init__(self, timer, operands):
        self.bytes_per_second = copy_bytes_per_second(timer)
        kinds = {KINDS[dtype] for dtype in operands}
        self.operations_per_second = {kind: product_operations_per_second(timer, *product)
                                      for kind, product in PRODUCTS.items() if kind in kinds}

    def roof_milliseconds(self, byte_count, operations, operands):
        """The time below which no kernel stays that moves these bytes and, if any, multiplies so much."""
        seconds = byte_count / self.bytes_per_second
        if operations > 0:
            seconds = max(seconds, operations / self.operations_per_second[KINDS[operands]])
        return 1e3 * seconds

    def __str__(self):
        products = [f"of {kind} {rate / 1e12:.{0 if rate > 1e14 else 1}f} T{'OP' if kind == 'i8' else 'FLOP'}/s"
                    for kind, rate in self.operations_per_second.items()]
        return f"copy {self.bytes_per_second / 1e9:.0f} GB/s" + (f"; products {', '.join(products)}" if products else "")

"""The language against NumPy: each workload of language.te has a function of the same name here, whose parameters are the workload's inputs and
which returns its outputs. python3 language_test.py MYCC. Ends with status 77 without NumPy."""

import functools
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy, or tests/requirements.txt)")
    sys.exit(77)

import artifact_ctypes

HERE = pathlib.Path(__file__).resolve().parent
MYCC = None
# The machine's own instructions, and those that every x86-64 has.
TARGETS = ("host", "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2")

f16, f32, f64, i8, u8, i32, i64 = np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64
i16, u16, u32, u64 = np.int16, np.uint16, np.uint32, np.uint64
SPECIAL = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.49999, 1e-45, -1e-38, 126.9, 127.5, -128.5, 255.9, 3e9, -3e9, 1e30, np.inf, -np.inf, np.nan,
           88.8, 2**62]
# Around the ends of the integers of 16 bits and of those without a sign.
ENDS = [*SPECIAL[:2], -1, -0.5, 0.99, 1.5, 32767.5, 32768, -32768.5, -32769, 65535.5, 65536, 2**31, 4294967040, 2**32, 3e9, -3e9, 2**63, 1.5 * 2**63,
        2**64, 1e30, np.inf, -np.inf, np.nan]


def to_bf16(x):
    """The bits of the nearest bf16, ties to even."""
    bits = np.asarray(x, f32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7fff + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7fc0), rounded)


def bf16(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(f32)


def float8_numbers(mantissa, bias):
    """Those of the bytes 0 to 127, with numbers in the place of infinities and NaNs."""
    bits = np.arange(128)
    exponent, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    return np.where(exponent == 0, fraction * 2.0**(1 - bias - mantissa), (fraction + 2**mantissa) * 2.0**(exponent - bias - mantissa))


# The finite numbers, and what follows them.
FLOAT8 = {"f8e4m3": (float8_numbers(3, 7)[:127], [np.nan]), "f8e5m2": (float8_numbers(2, 15)[:124], [np.inf, np.nan, np.nan, np.nan])}


def to_float8(x, dtype):
    """The bits of the nearest number, ties to even; beyond the largest that one, but infinity where there is one."""
    numbers, others = FLOAT8[dtype]
    x = np.asarray(x, f64)
    magnitude = np.minimum(abs(x), numbers[-1])
    above = np.minimum(np.searchsorted(numbers, magnitude), len(numbers) - 1)
    below = np.maximum(above - 1, 0)
    up, down = numbers[above] - magnitude, magnitude - numbers[below]
    bits = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    bits = np.where(np.isinf(x) & np.isinf(others[0]), len(numbers), np.where(np.isnan(x), 0x7f, bits))
    return (bits | np.where(np.signbit(x), 0x80, 0)).astype(u8)


def float8(bits, dtype):
    values = np.concatenate(FLOAT8[dtype])
    return np.concatenate([values, -values])[bits].astype(f32)


def tf32(x):
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0xfff + (bits >> np.uint64(13) & np.uint64(1))) & np.uint64(0xffffe000)).astype(np.uint32).view(f32)


def floor_divide(a, b):
    """By zero gives 0; wraps."""
    wide, by = (a, b) if a.dtype == u64 else (a.astype(i64), b.astype(i64))
    quotient, rest = np.divmod(wide, np.where(by == 0, by.dtype.type(1), by))
    return np.where(by == 0, 0, quotient).astype(a.dtype), np.where(by == 0, 0, rest).astype(a.dtype)


def saturate(x, dtype):
    """Truncates towards zero; NaN becomes 0. In Python's integers, which have no range."""
    ends = np.iinfo(dtype)
    return np.array([0 if math.isnan(v) else int(min(max(v, ends.min), ends.max)) for v in x.tolist()], dtype)


erf = np.vectorize(math.erf)


def pad(x, value):
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 1), (1, 1)], constant_values=value)


def windows(x, size, step):
    """x[..., step * i + r, step * j + s] as [..., i, j, r, s]."""
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (-2, -1))[..., ::step, ::step, :, :]


class Numpy:
    """The meaning of each workload. Sums are wide; the comparison knows how far apart they may be."""

    def conv_grouped(x, w):
        y = np.zeros((2, 8, 4, 4))
        padded = pad(x, 0)
        for r in range(3):
            for s in range(3):
                part = padded[:, :, 2 * r:2 * r + 7:2, 2 * s:2 * s + 7:2]
                for group in range(2):
                    y[:, 4 * group:4 * group + 4] += np.einsum("ncij,kc->nkij", part[:, 3 * group:3 * group + 3], w[4 * group:4 * group + 4, :, r, s])
        return y

    def conv_channels_last(x, w, b):
        return np.maximum(np.einsum("ncijrs,rsck->nijk", windows(x.transpose(0, 3, 1, 2), 3, 1), w) + b, 0)

    def conv_depthwise(x, w):
        return np.einsum("ncijrs,crs->ncij", windows(x, 3, 1), w)

    def conv_transposed(x, w):
        y = np.zeros((12, 4))
        for i in range(5):
            for r in range(4):
                y[2 * i + r] += x[i] @ w[:, :, r]
        return y

    def pool(x):
        return windows(pad(x, -np.inf), 3, 2).max((-2, -1)), windows(x, 3, 2).mean((-2, -1))

    def layer_norm(x, g, b):
        x = x.astype(f64)
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b

    def attention(q, k, v):
        s = np.where(np.tri(7, dtype=bool), np.einsum("hid,hjd->hij", q, k) / np.sqrt(8), -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v

    def gelu(x, h):
        return 0.5 * x * (1 + erf(x / np.sqrt(2))), h * f16(0.5) * (np.tanh(h) + f16(1))

    def matmul_batched(a, b):
        return a @ b

    def matmul_i8(a, b, zero):
        c = (a.astype(i32) - zero) @ b.astype(i32).T
        return c, np.clip(c // 64, -128, 127).astype(i8)

    def matmul_u8_wraps(a, b):
        return (a.astype(i64) @ b.astype(i64)).astype(u8)

    def matmul_bf16(a, b):
        c = bf16(a) @ bf16(b)
        return c, to_bf16(c)

    def matmul_f16(a, b):
        return a.astype(f32) @ b.astype(f32)

    def float8(x, a, b):
        def step(x):
            return float8(to_float8(x, "f8e4m3"), "f8e4m3")
        a, b = float8(a, "f8e4m3"), float8(b, "f8e5m2")
        c = a @ b
        return (to_float8(x, "f8e4m3"), to_float8(x, "f8e5m2"), c, to_float8(c, "f8e4m3"),
                to_float8(step(a * a) - np.maximum(a, f32(0.5)), "f8e4m3"))

    def matmul_tf32(a, b):
        return tf32(a) @ tf32(b), tf32(a)

    def rounds_after_every_operation(a, b, c, d):
        def step(x):
            return bf16(to_bf16(x))
        c, d = bf16(c), bf16(d)
        return a * b + a - b / a, to_bf16(step(step(c * d) + c) - step(d / c))

    def declared_type_is_a_rounding(a):
        return a.astype(f16).astype(f32) * f32(3)

    def integer_division(a, b, c, d, u, v):
        return [part for pair in ((a, b), (c, d), (u, v)) for part in floor_divide(*pair)]

    def integers_wrap(a, b, c):
        return np.abs(a) + i8(-128), -a * i8(3), -b - u8(1), a.sum(dtype=i8), c.prod(dtype=i64), c.astype(u8)

    def casts(x, d, n):
        return (saturate(x, i8), saturate(x, u8), saturate(x, i32), saturate(d, i64), x != 0, n.astype(u8), n.astype(f16))

    def roundings(x, d):
        return np.floor(x), np.ceil(x), np.rint(x), np.rint(d)

    def functions(x, d):
        return (np.sin(x) + np.cos(x), np.log(abs(x)) + np.sqrt(abs(x)), abs(x) ** 1.5 + np.tanh(x), np.exp(d) + np.log(abs(d)),
                abs(d) ** -0.5 - 1 / np.sqrt(abs(d)))

    def special_values(x, d):
        return np.exp(x), np.log(x), np.sqrt(x), np.tanh(d), f32(1) / x, x == x, (x < 0) | (x >= np.inf)

    def nan_wins(x):
        return x.max(1), x.min(1), np.maximum(x, 0), x.argmax(1), x.argmin(1)

    def arg_of_ties(x, u):
        return x.argmax(1), u.argmin(0)

    def literals(x):
        return np.array([np.inf, -np.inf, x[2]]), 1e305, -128, 255, -2**63, 65504, True, np.nan

    def scalars(a, b, x):
        return x * a + b, a - b

    def embedding(ids, table, more):
        return table[np.clip(ids, 0, 49)] + table[np.minimum(more, 49)]

    def paged_cache(pages, cache, at):
        t = np.arange(12)
        return cache[np.clip(pages, 0, 5)[t // 3], t % 3], pages[np.clip(at, 0, 3)]

    def one_hot(ids, x):
        hot = ids[:, None] == np.arange(9)
        return hot, np.where(hot, x, 0), hot.sum(0)

    def reshape(x):
        return x.reshape(3, 8), x.T, x.ravel()

    def reflect(x):
        return np.pad(x, 3, "reflect"), x[::-1], np.roll(x, 3)

    def concatenate(a, b):
        c = np.concatenate([a, b])
        return c, c[3:, ::2]

    def upsample(x):
        return x.repeat(2, 1).repeat(2, 2)

    def cumulative(x):
        return x.cumsum(), np.concatenate([[1], x[:-1].cumprod()])

    def positions(x):
        i, j = np.indices((10, 6))
        return x + np.sin(i / 10000 ** (j / 6)), 6 * i + j

    def outputs_feed_each_other(x):
        s = x.sum(1)
        y = x - s[:, None]
        return y.max(1), y, s

    def logic(p, q, n):
        return p & ~q | (n > 0), p != q, np.where(p, q, n % 2 == 0), p.any(), p.all()

    def windows(x):
        return x.reshape(7, 3) @ np.array([1, 2, 3]), (x - x[::-1]).reshape(7, 3)

    def contraction_5d(a, b):
        return np.einsum("hilm,lmk->ihk", a, b)

    def columns(x):
        return x.sum(0, dtype=f64), abs(x).max(0), (x.astype(f64) ** 2).sum()

    def nothing_to_reduce(x, n):
        return np.zeros(3), np.ones(3), np.full(3, -np.inf), np.full(3, 2**31 - 1), np.zeros((0, 3))

    def no_inputs():
        i, j = np.indices((4, 4))
        return 4 * i - j

    def short_and_unsigned(a, b, c, d, e, f, g, h):
        return [part for pair in ((a, b), (c, d), (e, f), (g, h)) for part in floor_divide(*pair)]

    def short_and_unsigned_wrap(a, c, e, g):
        return (abs(a) * i16(3) + a, c * c + u16(1), e * e - u32(1), g * g + g, a.sum(dtype=i16), (c * c).sum(dtype=u16),
                (e * u32(2) + u32(1)).prod(dtype=u32), g.sum(dtype=u64))

    def order_of_unsigned(c, e, g, p):
        return (g < p, e <= 2**31, np.minimum(g, p), np.clip(g, u64(10), u64(2**64 - 2)), c.max(1), e.min(1), g.max(1), g.min(1), g.argmax(1),
                p.argmin(1), np.maximum(e, u32(3 * 10**9)))

    def casts_of_integers(x, d, g, e, c, a):
        return (saturate(x, i16), saturate(x, u16), saturate(x, u32), saturate(x, u64), saturate(d, u32), saturate(d, u64), g.astype(f32),
                g.astype(f64), g.astype(i32), g.astype(f64).astype(f16), e.astype(f32), e.astype(i64), c.astype(f32), c.astype(i16), a.astype(u64),
                a.astype(u8))

    def packed_in_many_types(x, a, b, c, d, e):
        return np.where(c, x * a.astype(f32), b * bf16(e)).sum(1, dtype=f64) * d


def special(dtype, numbers=tuple(SPECIAL)):
    return lambda random, shape: np.resize(np.array(numbers, f64).astype(dtype), shape)


# Inputs that are not drawn like all others.
INPUTS = {
    "casts": {"x": special(f32), "d": special(f64)},
    "casts_of_integers": {"x": special(f32, ENDS), "d": special(f64, ENDS)},
    "float8": {"x": special(f32)},
    "roundings": {"x": special(f32), "d": special(f64)},
    "special_values": {"x": special(f32), "d": special(f64)},
    # A NaN in the middle of one row alone; ties and infinities in others.
    "nan_wins": {"x": lambda random, shape: np.stack([np.where(random.random(24) < 0.2, value, random.normal(size=24))
                                                      for value in (np.nan, np.inf, -np.inf, 0, 7, -7)]).astype(f32)},
}
RANGES = {"i8": (-128, 128), "u8": (0, 256), "i32": (-50, 100), "i64": (-(2**40), 2**40), "i16": (-300, 300), "u16": (0, 2**16), "u32": (0, 2**32),
          "u64": (0, 2**40)}
# Relative errors that are allowed, for values of magnitude 1 as well.
TOLERANCES = {"f64": 1e-12, "f32": 2e-5, "f16": 4e-3, "bf16": 1e-2}


def random_input(dtype, random, shape):
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in RANGES:
        values = random.integers(*RANGES[dtype], shape, i64)
        # Zeros and ends of the range as well.
        values = values.astype(artifact_ctypes.DTYPES[dtype])
        ends, number = np.iinfo(values.dtype), values.dtype.type
        chosen = random.random(shape)
        return np.select([chosen < 0.1, chosen < 0.15, chosen < 0.2], [number(0), number(ends.min), number(ends.max)], values)
    values = random.uniform(-2, 2, shape)
    if dtype in FLOAT8:
        return to_float8(values, dtype)
    return to_bf16(values.astype(f32)) if dtype == "bf16" else np.asarray(values, artifact_ctypes.DTYPES[dtype])


def misaligned(array):
    """A copy that is aligned to one element and to nothing more."""
    buffer = artifact_ctypes.aligned_bytes(array.nbytes + array.itemsize)
    copy = buffer[array.itemsize:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@functools.cache
def library(target):
    """language.te, compiled once for each target."""
    folder = tempfile.TemporaryDirectory()
    subprocess.run([MYCC, "compile", HERE / "language.te", "--target", target, "--name", "m", "-o", folder.name], check=True,
                   stdout=subprocess.DEVNULL)
    compiled = artifact_ctypes.Library(pathlib.Path(folder.name) / "m.so")
    compiled.folder = folder
    return compiled


class LanguageTest(unittest.TestCase):
    def compare(self, dtype, got, want):
        want = np.asarray(want)
        if dtype == "bf16":
            got, want = bf16(got), bf16(want)
        if dtype in FLOAT8:
            np.testing.assert_array_equal(float8(got, dtype), float8(want, dtype))
            return
        if dtype not in TOLERANCES:
            np.testing.assert_array_equal(got, want.astype(got.dtype))
            return
        np.testing.assert_allclose(got.astype(f64), want.astype(f64), rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])

    def call(self, name, target):
        random = np.random.default_rng(len(name))
        args = library(target).functions[f"m_{name}"]["args"]
        inputs = {}
        for arg in args:
            if arg["kind"] != "output":
                draw = INPUTS.get(name, {}).get(arg["name"], functools.partial(random_input, arg["dtype"]))
                inputs[arg["name"]] = misaligned(draw(random, tuple(arg["shape"])))
        got = library(target).call(name, *inputs.values(), place=misaligned)
        with np.errstate(all="ignore"):
            want = getattr(Numpy, name)(**inputs)
        outputs = [arg for arg in args if arg["kind"] == "output"]
        got, want = (values if isinstance(values, (list, tuple)) else [values] for values in (got, want))
        for arg, left, right in zip(outputs, got, want, strict=True):
            with self.subTest(output=arg["name"], target=target):
                self.compare(arg["dtype"], left, right)

    def test_every_workload_has_its_function(self):
        self.assertEqual({name[2:] for name in library("host").functions}, set(NAMES))


def add_test(name):
    def test(self):
        for target in TARGETS:
            self.call(name, target)
    setattr(LanguageTest, f"test_{name}", test)


NAMES = [name for name in vars(Numpy) if not name.startswith("_")]
for function in NAMES:
    add_test(function)


if __name__ == "__main__":
    MYCC = sys.argv.pop(1)
    unittest.main()

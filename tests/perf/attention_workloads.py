"""Attention as models write it, in plain stages: what the set `attention` of the GPU's and the CPU's comparisons tunes and times.

Tensors are [batch, head, position, number], as PyTorch's scaled_dot_product_attention has them. Scores, exponentials and sums are f32; factors
of 16 bits stay 16 bits. The sum of exponentials divides the second product, or before it where `early` says so. A causal query sees the keys
up to its own position, counted from the last key where there are more keys than queries.

A workload's name begins with its group: forward, decoding, variant (a score that no library has as one kernel), or other.
"""

import math
import random
import typing

import cpu_workloads
from workload_text import log_uniform, tensor, workload

TOKENS, WIDTH = 16_384, 2_048  # of the forward workloads: batch times length, and heads times the numbers of a head
GROUPS = ("forward", "decoding", "variant", "other")
ITEM_BYTES = {"f32": 4, "bf16": 2, "f16": 2}


class Attention(typing.NamedTuple):
    group: str
    label: str  # the rest of the name, after group and type
    batch: int
    heads: int
    queries: int
    keys: int
    d: int
    kv_heads: int = 0  # as many as heads if 0
    dtype: str = "bf16"
    causal: bool = False
    window: int = 0  # keys that a query sees, its own and those before; 0: all
    cap: float = 0.0  # scores are squeezed below it by tanh; 0: they are not
    bias: str = ""  # position: a slope for each head times the distance; tensor: one number for each pair and head
    padded: bool = False  # a tensor has the number of keys of each sequence
    lse: bool = False  # the logarithm of the sum of exponentials is a second output
    early: bool = False

    @property
    def name(self):
        return f"{self.group}_{self.dtype}_{self.label}"

    @property
    def groups(self):
        """Heads that share one of keys."""
        return self.heads // (self.kv_heads or self.heads)

    @property
    def shift(self):
        """A query's position less its number."""
        return self.keys - self.queries

    def lengths(self):
        """The keys of each sequence, where they are padded."""
        source = random.Random(f"{self.batch}x{self.keys}")
        return [source.randint(1, self.keys) for _ in range(self.batch)]

    def slopes(self):
        """Each head's, in a geometric sequence."""
        return [2.0 ** (-8 * (head + 1) / self.heads) for head in range(self.heads)]

    def share_of_pairs(self):
        """The share of pairs of query and key that are seen; a pair on the diagonal counts as half."""
        share = 1.0
        if self.causal:
            window = self.window or math.inf
            share = sum(min(query + self.shift + 0.5, window) for query in range(self.queries)) / (self.queries * self.keys)
        return share * (sum(self.lengths()) / (self.batch * self.keys) if self.padded else 1.0)

    def operations(self):
        """Multiplications and additions of both products, over the pairs that are seen."""
        return 4 * self.batch * self.heads * self.queries * self.keys * self.d * self.share_of_pairs()

    def byte_count(self):
        """The bytes of the inputs and outputs, each once."""
        rows, pairs = self.batch * self.heads * self.queries, self.heads * self.queries * self.keys if self.bias == "tensor" else 0
        numbers = 2 * rows * self.d + 2 * self.batch * self.heads // self.groups * self.keys * self.d + pairs
        return numbers * ITEM_BYTES[self.dtype] + (4 * rows if self.lse else 0)


def score(spec):
    """The scaled, changed and masked score of a pair."""
    value = f"s[b,h,i,j] * {1 / math.sqrt(spec.d)!r}"
    if spec.cap:
        value = f"tanh(s[b,h,i,j] * {1 / math.sqrt(spec.d) / spec.cap!r}) * {spec.cap!r}"
    position = f"i + {spec.shift}" if spec.shift > 0 else "i"
    if spec.bias == "position":
        value += f" - a[h] * f32({position} - j)"
    if spec.bias == "tensor":
        value += " + r[h,i,j]" if spec.dtype == "f32" else " + f32(r[h,i,j])"
    seen = [f"j <= {position}"] if spec.causal else []
    seen += [f"{position} < j + {spec.window}"] if spec.window else []
    seen += ["j < i64(n[b])"] if spec.padded else []
    return f"select({' && '.join(seen)}, {value}, -inf)" if seen else value


def text(spec):
    """The workload. Inputs are q, k and v, then the lengths n, the slopes a and the bias r, those that it has."""
    dtype, head = spec.dtype, "h" if spec.groups == 1 else f"h//{spec.groups}"
    rows, keys = (spec.batch, spec.heads, spec.queries), (spec.batch, spec.heads // spec.groups, spec.keys, spec.d)
    result, pairs = (*rows, spec.d), (*rows, spec.keys)
    wide = (lambda read: read) if dtype == "f32" else (lambda read: f"f32({read})")
    narrow = (lambda value: value) if dtype == "f32" else (lambda value: f"{dtype}({value})")
    inputs = [tensor("q", dtype, result), tensor("k", dtype, keys), tensor("v", dtype, keys)]
    inputs += [tensor("n", "i32", (spec.batch,))] if spec.padded else []
    inputs += [tensor("a", "f32", (spec.heads,))] if spec.bias == "position" else []
    inputs += [tensor("r", dtype, (spec.heads, spec.queries, spec.keys))] if spec.bias == "tensor" else []
    value = wide(f"v[b,{head},j,d]")
    stages = [
        f"{tensor('s[b,h,i,j]', 'f32', pairs)} = sum[d:{spec.d}]({wide('q[b,h,i,d]')} * {wide(f'k[b,{head},j,d]')})",
        f"{tensor('c[b,h,i,j]', 'f32', pairs)} = {score(spec)}",
        f"{tensor('m[b,h,i]', 'f32', rows)} = max[j:{spec.keys}](c[b,h,i,j])",
        f"{tensor('e[b,h,i,j]', 'f32', pairs)} = exp(c[b,h,i,j] - m[b,h,i])",
        f"{tensor('l[b,h,i]', 'f32', rows)} = sum[j:{spec.keys}](e[b,h,i,j])"]
    if spec.early:
        stages += [f"{tensor('p[b,h,i,j]', dtype, pairs)} = {narrow('e[b,h,i,j] / l[b,h,i]')}",
                   f"{tensor('t[b,h,i,d]', 'f32', result)} = sum[j:{spec.keys}]({wide('p[b,h,i,j]')} * {value})",
                   f"o[b,h,i,d] = {narrow('t[b,h,i,d]')}"]
    else:
        factor = wide(narrow("e[b,h,i,j]"))
        stages += [f"{tensor('t[b,h,i,d]', 'f32', result)} = sum[j:{spec.keys}]({factor} * {value})",
                   f"o[b,h,i,d] = {narrow('t[b,h,i,d] / l[b,h,i]')}"]
    outputs = [tensor("o", dtype, result)]
    if spec.lse:
        outputs.append(tensor("z", "f32", rows))
        stages.append("z[b,h,i] = log(l[b,h,i]) + m[b,h,i]")
    return workload(spec.name, inputs, ", ".join(outputs), stages)


def thousands(number):
    return f"{number // 1024}k" if number % 1024 == 0 else str(number)


def square(group, what, length, d, **options):
    """As many queries as keys, of TOKENS and WIDTH in all."""
    label = "_".join(filter(None, (what, f"d{d}", thousands(length), "causal" if options.get("causal") else "")))
    return Attention(group, label, max(1, TOKENS // length), max(1, WIDTH // d), length, length, d, **options)


def forward():
    return [square("forward", "", 1024 * length, d, causal=causal) for d in (64, 128) for causal in (False, True) for length in (1, 2, 4, 8, 16)]


def decoding():
    return [Attention("decoding", f"b{batch}_q{queries}_{thousands(1024 * keys)}", batch, 32, queries, 1024 * keys, 128, kv_heads=4)
            for batch in (16, 1) for queries in (1, 4, 8) for keys in (4, 32, 64)]


def variants():
    return [one for d in (128, 64) for one in (
        square("variant", "soft_cap", 4096, d, causal=True, cap=50.0),
        square("variant", "window", 4096, d, causal=True, window=1024),
        square("variant", "bias_by_position", 4096, d, causal=True, bias="position"),
        square("variant", "bias_tensor", 4096, d, bias="tensor"))]


def others():
    return [
        Attention("other", "grouped_32to8_d128_4k_causal", 4, 32, 4096, 4096, 128, kv_heads=8, causal=True),
        Attention("other", "q1k_k8k_d128", 8, 16, 1024, 8192, 128),
        Attention("other", "q1k_k8k_d128_causal", 8, 16, 1024, 8192, 128, causal=True),
        square("other", "padded", 4096, 128, padded=True),
        square("other", "log_sum_exp", 4096, 128, causal=True, lse=True),
        square("other", "early_division", 4096, 128, causal=True, early=True),
        *(square("other", "", 4096, d, causal=True) for d in (32, 96, 192, 256)),
        square("other", "", 4096, 128, causal=True, dtype="f16"),
    ]


def named(specs):
    """name -> specification."""
    return {spec.name: spec for spec in specs}


def fixed():
    """The 57 workloads of GPUs, name -> specification."""
    return named([*forward(), *decoding(), *variants(), *others()])


def drawn_one(source, index):
    dtype, d, groups = source.choice(("bf16", "bf16", "f16")), source.choice((32, 64, 64, 80, 96, 128, 128, 192, 256)), source.choice((1, 1, 4, 8))
    kv_heads, queries, causal = source.randint(1, 16), log_uniform(source, 1, 6000), source.random() < 0.5
    keys = queries + log_uniform(source, 1, 3000) if source.random() < 0.5 else max(queries, 2)
    more = {"causal": causal, "dtype": dtype, "kv_heads": kv_heads}
    change = source.choice(("", "", "", "cap", "window", "position", "tensor", "padded"))
    if change in ("position", "tensor"):
        more["bias"] = change
    elif change == "window":
        more |= {"causal": True, "window": log_uniform(source, 16, 2000)}
    elif change:
        more |= {"cap": {"cap": 30.0}, "padded": {"padded": True}}[change]
    batch = max(1, min(16, (1 << 28) // (kv_heads * groups * queries * keys)))
    label = "_".join(filter(None, (f"r{index}", change, f"b{batch}_h{kv_heads * groups}to{kv_heads}_q{queries}_k{keys}_d{d}",
                                   "causal" if more["causal"] else "")))
    return Attention("other", label, batch, kv_heads * groups, queries, keys, d, **more)


def drawn(count, seed):
    """`count` others, name -> specification: any lengths, head dimensions of 32 to 256, grouped queries, masks and changed scores."""
    source = random.Random(seed)
    return named(drawn_one(source, index) for index in range(count))


def texts(specs):
    """name -> text."""
    return {name: text(spec) for name, spec in specs.items()}


CPU_SHAPES = [  # heads, numbers of a head, queries, keys, causal
    *((12, 64, length, length, causal) for length in (128, 197, 512, 1024, 2048) for causal in (False, True)),
    *((32, 128, length, length, causal) for length in (512, 1024) for causal in (False, True)),
    (32, 128, 1, 4096, False),
]


def cpu(dtype):
    """The workloads of CPUs in f32 or bf16, name -> workload: one sequence, of the lengths of usual models and of a long prompt, and decoding."""
    result = {}
    for heads, d, queries, keys, causal in CPU_SHAPES:
        length = str(queries) if queries == keys else f"{queries}x{keys}"
        spec = Attention("attention", f"h{heads}_d{d}_{length}{'_causal' if causal else ''}", 1, heads, queries, keys, d, dtype=dtype, causal=causal)
        words = cpu_workloads.specification("attention", batch=1, heads=heads, queries=queries, keys=keys, d=d, causal=int(causal), x=dtype)
        result[spec.name] = cpu_workloads.Workload(spec.name, text(spec), words, dtype, True, {"flops": spec.operations(), "bytes": spec.byte_count()})
    return result


if __name__ == "__main__":
    print("\n".join(texts(fixed()).values()), end="")

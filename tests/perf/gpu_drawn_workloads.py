"""A second family of drawn GPU workloads: products and rows of sizes that the suite and the first family have none of, in turn.

Products of f32 of any size, products of 16 bits with all three extents of 33 to 6000, even and odd, and rows.
"""

import random

from gpu_workloads import drawn_rows, gemm, gemm_kn, named
from workload_text import log_uniform

MOST_F32, MOST_16_BITS = 4000, 6000  # extents


def drawn_f32_product(source, index):
    """Extents are drawn evenly and by their logarithms in turn."""
    m, n, k = (source.randint(1, MOST_F32) if index // len(FAMILIES) % 2 == 0 else log_uniform(source, 1, MOST_F32) for _ in range(3))
    if source.random() < 0.5:
        return gemm_kn(f"gemm_kn_f32_s{index}_{m}x{n}x{k}", m, n, k)
    return gemm(f"gemm_f32_s{index}_{m}x{n}x{k}", m, n, k, "f32")


def drawn_16_bit_product(source, index):
    m, n, k = (log_uniform(source, 33, MOST_16_BITS) for _ in range(3))
    dtype = source.choice(("bf16", "f16"))
    return gemm(f"gemm_{dtype}_s{index}_{m}x{n}x{k}", m, n, k, dtype)


FAMILIES = {"f32_products": drawn_f32_product, "16_bit_products": drawn_16_bit_product, "rows": lambda source, index: drawn_rows(source, f"s{index}")}


def drawn(count, seed):
    """`count` workloads, name -> text."""
    source, families = random.Random(seed), list(FAMILIES.values())
    return named(families[index % len(families)](source, index) for index in range(count))


def by_family(ratios):
    """family -> ratios, of name -> ratio; families without any are left out."""
    result = {}
    for name, ratio in ratios.items():
        family = "rows" if not name.startswith("gemm_") else "f32_products" if "_f32_" in name else "16_bit_products"
        result.setdefault(family, []).append(ratio)
    return result

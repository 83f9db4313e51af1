"""Small attention workloads, one for each form: what the tests of our workloads and of their peers have in common."""

from attention_workloads import Attention


def small(label, batch, heads, queries, keys, **options):
    return Attention("other", label, batch, heads, queries, keys, 16, **{"dtype": "f32", **options})


FORMS = [
    small("plain", 2, 3, 9, 9),
    small("causal", 1, 2, 33, 33, causal=True),
    small("more_keys", 2, 2, 5, 12),
    small("more_keys_causal", 2, 2, 5, 12, causal=True),
    small("grouped", 2, 6, 7, 7, kv_heads=2, causal=True),
    small("decoding", 2, 4, 1, 40, kv_heads=1),
    small("window", 1, 2, 20, 24, causal=True, window=6),
    small("bias_by_position", 1, 4, 10, 13, causal=True, bias="position"),
    small("bias_tensor", 2, 2, 7, 9, bias="tensor"),
    small("padded", 4, 2, 6, 11, padded=True),
]
# No back end of PyTorch computes it.
CAPPED = small("soft_cap", 1, 2, 10, 10, causal=True, cap=1.5)

"""Whether two results on a GPU are the same but for roundings."""

import harness

# Of an element's size or the root mean square of all, whichever is larger: two roundings of the type, and sums in another order.
LARGEST_DIFFERENCE = {"bf16": 2**-6, "f16": 2**-8, "f32": 1e-3, "f8e4m3": 2**-2, "f8e5m2": 2**-1}


def check(name, ours, peer, dtype):
    """Refuses a result that differs from the peer's by more than roundings explain."""
    if ours.shape != peer.shape:
        raise harness.BenchmarkError(f"{name}: our result has shape {list(ours.shape)}, the peer's {list(peer.shape)}")
    ours, peer = ours.double(), peer.double()
    scale = peer.abs().clamp_min(peer.square().mean().sqrt().item())
    worst = ((ours - peer).abs() / scale).max().item() if ours.numel() else 0.0
    if not worst <= LARGEST_DIFFERENCE[dtype]:  # NaN is refused too
        raise harness.BenchmarkError(f"{name}: our result differs from the peer's by {worst:.2g} of its size; "
                                     f"expected at most {LARGEST_DIFFERENCE[dtype]:.2g}")

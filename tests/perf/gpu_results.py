"""Whether two results on a GPU are the same but for roundings."""

import harness

# Shares of an element's size or the root mean square of all, whichever is larger: two roundings of the type, and sums in another order.
# Integers are the same. tf32's share is for f32 results of tf32 factors: a library may cut off the factors that we round.
LARGEST_DIFFERENCE = {"bf16": 2**-6, "f16": 2**-8, "f32": 1e-3, "tf32": 2**-7, "f8e4m3": 2**-2, "f8e5m2": 2**-1, "i32": 0, "i64": 0}
# Between neighbours near zero, where a type's numbers lie no closer the smaller they are.
SMALLEST_STEP = {"f16": 2**-24, "f8e4m3": 2**-9, "f8e5m2": 2**-16}


def check(name, ours, peer, dtype, by_row=False):
    """Refuses a result that differs from the peer's by more than roundings to `dtype` explain. With `by_row`, means are of the rows along the
    last axis: rows of attention are sums of a few terms or of thousands, and differ in size as much."""
    if ours.shape != peer.shape:
        raise harness.BenchmarkError(f"{name}: our result has shape {list(ours.shape)}, the peer's {list(peer.shape)}")
    ours, peer = ours.double(), peer.double()
    # Both sides of attention round weights and results, at scales of their own.
    share, step = LARGEST_DIFFERENCE[dtype] * (2 if by_row else 1), SMALLEST_STEP.get(dtype, 0.0)
    difference, size, mean_size = abs(ours - peer), abs(peer), float((peer * peer).mean()) ** 0.5
    mean_sizes = (peer * peer).mean(-1)[..., None] ** 0.5 if by_row else mean_size
    right = (difference <= share * size + step) | (difference <= share * mean_sizes + step)  # NaN is refused too
    if not right.all():
        wrong, whose = difference[~right], "a row's" if by_row else "that"
        raise harness.BenchmarkError(f"{name}: {wrong.shape[0]} elements of our result differ from the peer's, by up to {float(wrong.max()):.2g}, "
                                     f"where their root mean square is {mean_size:.2g}; expected at most {share:.2g} of {whose} or of an element")

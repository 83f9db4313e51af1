"""Whether an output is the stored one, as onnx's own runner of its stored cases decides it, and in one line why not."""

import numpy

RELATIVE, ABSOLUTE = 1e-3, 1e-7
# Cases that onnx's runner gives other tolerances, and why: name -> (relative, absolute).
TOLERANCES = {name: (RELATIVE, 1e-6) for name in ("test_dft", "test_dft_axis", "test_dft_inverse", "test_dft_opset19", "test_dft_axis_opset19",
                                                  "test_dft_inverse_opset19")}  # results near zero of sums that cancel
TOLERANCES["test_celu_bfloat16_expanded"] = (1e-2, 1e-2)  # every step of the expansion is rounded to bf16


def tolerance_of(name):
    return TOLERANCES.get(name, (RELATIVE, ABSOLUTE))


def difference(actual, expected, tolerance=(RELATIVE, ABSOLUTE)):
    """How `actual` differs in shape, type or values, or an empty text. The type's own arithmetic judges, as in onnx's runner."""
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}; expected {list(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"is {actual.dtype}; expected {expected.dtype}"
    if actual.dtype == object:
        return describe_texts(actual, expected)
    relative, absolute = tolerance
    try:
        with numpy.errstate(all="ignore"):
            numpy.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute)
    except AssertionError:
        return describe(actual, expected, tolerance)
    return ""


def describe_texts(actual, expected):
    bad = [i for i in numpy.ndindex(actual.shape) if actual[i] != expected[i]]
    if not bad:
        return ""
    place = f"element {list(bad[0])}" if bad[0] else "the value"
    return f"{len(bad)} of {actual.size} elements differ: {place} is {actual[bad[0]]!r}; expected {expected[bad[0]]!r}"


def describe(actual, expected, tolerance):
    """Counts the elements that differ, and shows the first of them."""
    relative, absolute = tolerance
    with numpy.errstate(all="ignore"):
        bad = ~numpy.isclose(wide(actual), wide(expected), rtol=relative, atol=absolute, equal_nan=True)
    if not bad.any():
        bad = actual != expected  # apart only in the type's own arithmetic
    index = tuple(int(i) for i in numpy.argwhere(bad)[0]) if bad.ndim else ()
    place = f"element {list(index)}" if index else "the value"
    return f"{int(bad.sum())} of {bad.size} elements differ: {place} is {actual[index]}; expected {expected[index]}"


def wide(array):
    """Every type but 64-bit integers is exact in f64; those are compared as they are."""
    return array if array.dtype.kind in "iu" and array.dtype.itemsize == 8 else array.astype(numpy.float64)

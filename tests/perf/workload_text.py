"""How the benchmarks write workloads: their text, padding and strides of convolutions, and extents drawn for random ones."""

import math

WORKLOAD = """workload {name}({inputs}) -> ({output}) {{
{stages}
}}
"""


def workload(name, inputs, output, stages):
    return WORKLOAD.format(name=name, inputs=", ".join(inputs), output=output, stages="\n".join(f"  {stage}" for stage in stages))


def tensor(name, dtype, axes, const=False):
    """A declaration, of axes and their extents or of extents."""
    extents = axes.values() if isinstance(axes, dict) else axes
    return f"{name}: {'const ' if const else ''}{dtype}[{','.join(map(str, extents))}]"


def named(texts):
    """name -> text."""
    return {text.split("(")[0].split()[1]: text for text in texts}


def strided(axis, stride):
    return axis if stride == 1 else f"{axis}*{stride}"


def output_extent(extent, pad, stride, kernel):
    return (extent + 2 * pad - kernel) // stride + 1


def padded(axes, pad, stride, kernel, dtype, surrounding="0.0", axis_by_axis=False):
    """The stage that surrounds images, as far as a kernel of this size and stride reads; and the outputs' height and width. `axes` are those of
    the images and their extents, in their order; `i` runs over rows, `j` over columns. Conditions come in one of two orders, since a workload's
    hash, and with it what logs hold of it, depends on it: lower bounds and then upper ones, or those of each axis together."""
    outputs = {axis: output_extent(axes[axis], pad, stride, kernel) for axis in "ij"}
    extents = axes | {axis: (extent - 1) * stride + kernel for axis, extent in outputs.items()}
    lower = [(axis, f"{pad} <= {axis}") for axis in "ij" if pad > 0]
    upper = [(axis, f"{axis} < {axes[axis] + pad}") for axis in "ij" if extents[axis] > axes[axis] + pad]
    conditions = [*lower, *upper]
    if axis_by_axis:
        conditions.sort(key=lambda condition: condition[0])
    value = f"x[{','.join(f'{axis}-{pad}' if pad > 0 and axis in 'ij' else axis for axis in axes)}]"
    if conditions:
        value = f"select({' && '.join(text for _, text in conditions)}, {value}, {surrounding})"
    stage = tensor(f"p[{','.join(axes)}]", dtype, extents)
    return f"{stage} = {value}", *outputs.values()


def log_uniform(source, low, high):
    return round(math.exp(source.uniform(math.log(low), math.log(high))))

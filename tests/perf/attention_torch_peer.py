"""PyTorch's scaled_dot_product_attention on a CPU: a process like cpu_newest_peer.py, for specifications of the family `attention`.

python3 attention_torch_peer.py SPEC FOLDER [SECONDS]

Its fused kernel for CPUs, and the operators that PyTorch composes without it, are asked for by name.
"""

import sys
import warnings

warnings.filterwarnings("ignore")  # of a PyTorch without NumPy, which is not used here

import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from cpu_newest_peer import TYPES, Data  # noqa: E402
from peer_process import median_milliseconds, parse, row_difference  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


def main(spec, folder, seconds="1.2"):
    _, shape = parse(spec)
    data, dtype = Data(folder), TYPES[shape["x"]]
    queries = shape["batch"], shape["heads"], shape["queries"], shape["d"]
    keys = shape["batch"], shape["heads"], shape["keys"], shape["d"]
    q, k, v = data.tensor(dtype, *queries), data.tensor(dtype, *keys), data.tensor(dtype, *keys)
    ours = data.tensor(dtype, *queries).double()
    with torch.no_grad():
        for way, backend in BACKENDS.items():
            with sdpa_kernel(backend):
                call = lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=bool(shape["causal"]))
                try:
                    result = call().double()
                except RuntimeError as error:  # this way has no such case
                    print(f"{way}: {str(error).splitlines()[0]}", file=sys.stderr)
                    continue
                print(f"{spec} torch.{way} {median_milliseconds(call, float(seconds)):.6f}")
                print(f"{spec} torch.{way}.difference {row_difference(ours, result):.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])

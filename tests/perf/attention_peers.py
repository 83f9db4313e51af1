"""The workloads of attention_workloads.py in PyTorch: each back end of scaled_dot_product_attention, asked for by name, and compiled
FlexAttention; and what they compute, in f32, on a sample of the queries.

Masks and biases that a back end takes as a tensor are made once, outside of the timing, as are FlexAttention's block masks.
"""

import math
import warnings

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
PEERS = {"eager": (*BACKENDS,), "compile": ("flex",)}  # of the options of gpu_vs_libraries.py
SHORTEST_LINE = 160  # characters of a reason that are kept, of each of its lines
RECOMPILATIONS = 1024  # beyond a limit, FlexAttention would fall back to operators that are not fused


class Refusal(Exception):
    """Why a peer has no such computation."""


def prepare_inputs(spec, inputs):
    """Fills the inputs that are no random numbers: lengths, and slopes."""
    given = iter(inputs[3:])
    if spec.padded:
        next(given).copy_(torch.tensor(spec.lengths(), dtype=torch.int32))
    if spec.bias == "position":
        next(given).copy_(torch.tensor(spec.slopes()))


class Tensors:
    """The inputs of a workload by their names; those that it has not are None."""

    def __init__(self, spec, inputs):
        self.q, self.k, self.v, *more = inputs
        given = iter(more)
        self.lengths = next(given) if spec.padded else None
        self.slopes = next(given) if spec.bias == "position" else None
        self.bias = next(given) if spec.bias == "tensor" else None


def mask_function(spec, tensors):
    """Whether query number i of sequence b sees key j, as a function; None where each sees all. FlexAttention compiles it, so it holds no more than
    numbers and tensors."""
    causal, window, shift, lengths = spec.causal, spec.window, spec.shift, tensors.lengths

    def seen(b, h, i, j):
        result = j <= i + shift if causal else j >= 0
        if window:
            result = result & (i + shift < j + window)
        if lengths is not None:
            result = result & (j < lengths[b])
        return result

    return seen if causal or window or lengths is not None else None


def score_function(spec, tensors):
    """A scaled score with its cap and bias, as a function; None where it stays as it is."""
    cap, shift, slopes, bias = spec.cap, spec.shift, tensors.slopes, tensors.bias

    def changed(score, b, h, i, j):
        if cap:
            score = torch.tanh(score / cap) * cap
        if slopes is not None:
            score = score - slopes[h] * (i + shift - j)
        if bias is not None:
            score = score + bias[h, i, j]
        return score

    return changed if cap or slopes is not None or bias is not None else None


def indices(spec, device, rows=None):
    """b, h, i and j of all scores, or of some queries', as tensors that broadcast."""
    along = lambda numbers, axis: numbers.reshape([-1 if axis == other else 1 for other in range(4)])
    whole = lambda count: torch.arange(count, device=device)
    return along(whole(spec.batch), 0), along(whole(spec.heads), 1), along(whole(spec.queries) if rows is None else rows, 2), along(whole(spec.keys), 3)


def sampled_rows(spec, most=64):
    """Queries that the reference is computed for, the first and the last one among them."""
    return sorted({round(row) for row in torch.linspace(0, spec.queries - 1, min(most, spec.queries)).tolist()})


def reference(spec, inputs, rows):
    """The result and the logarithms of sums for some queries, in f32, one sequence at a time."""
    tensors, results, sums = Tensors(spec, inputs), [], []
    _, h, i, j = indices(spec, inputs[0].device, torch.tensor(rows, device=inputs[0].device))
    seen, changed = mask_function(spec, tensors), score_function(spec, tensors)
    for b in range(spec.batch):
        q, k, v = (tensor[b].float() for tensor in (tensors.q[:, :, rows], tensors.k, tensors.v))
        k, v = (tensor.repeat_interleave(spec.groups, 0) for tensor in (k, v))
        scores = (q @ k.transpose(1, 2) / math.sqrt(spec.d))[None]
        scores = changed(scores, b, h, i, j) if changed else scores
        scores = scores.masked_fill(~seen(b, h, i, j), -math.inf)[0] if seen else scores[0]
        results.append(torch.softmax(scores, -1) @ v)
        sums.append(torch.logsumexp(scores, -1))
    return torch.stack(results), torch.stack(sums)


def additive_mask(spec, tensors):
    """Bias and mask as the tensor that scaled_dot_product_attention adds to scores."""
    b, h, i, j = indices(spec, tensors.q.device)
    seen, changed = mask_function(spec, tensors), score_function(spec, tensors)
    mask = seen(b, h, i, j) if seen else None
    if not changed:
        return mask.expand(spec.batch if spec.padded else 1, 1, spec.queries, spec.keys)
    bias = changed(0.0, b, h, i, j).to(tensors.q.dtype)
    return (bias if mask is None else bias.masked_fill(~mask, -math.inf)).contiguous()


def sdpa_options(spec, tensors):
    options = {"enable_gqa": True} if spec.groups > 1 else {}
    if spec.window or spec.padded or spec.bias:
        return options | {"attn_mask": additive_mask(spec, tensors)}
    if spec.causal and spec.shift > 0:
        return options | {"attn_mask": causal_lower_right(spec.queries, spec.keys)}
    return options | {"is_causal": spec.causal}


def with_sums(backend, spec, tensors):
    """The operator below scaled_dot_product_attention, which also gives the logarithms of sums."""
    q, k, v = tensors.q, tensors.k, tensors.v
    if backend == "flash":
        return lambda: torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, spec.causal)[0]
    operator = getattr(torch.ops.aten, f"_scaled_dot_product_{backend}_attention")
    return lambda: operator(q, k, v, None, True, 0.0, spec.causal)[0]


def sdpa(backend, spec, tensors):
    if spec.cap:
        raise Refusal("scaled_dot_product_attention has no cap of scores")
    if spec.lse:
        return with_sums(backend, spec, tensors)
    q, k, v, options, allowed = tensors.q, tensors.k, tensors.v, sdpa_options(spec, tensors), BACKENDS[backend]

    def call():
        with sdpa_kernel(allowed):
            return functional.scaled_dot_product_attention(q, k, v, **options)

    return call


def flex(spec, tensors):
    """FlexAttention, tuned and compiled here for this one workload."""
    import torch._inductor.select_algorithm
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._inductor.select_algorithm.PRINT_AUTOTUNE = False
    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = RECOMPILATIONS
    compiled = torch.compile(flex_attention, mode="max-autotune-no-cudagraphs", dynamic=False)
    options = {"enable_gqa": spec.groups > 1, "score_mod": score_function(spec, tensors)}
    if seen := mask_function(spec, tensors):
        batch = spec.batch if spec.padded else None
        options["block_mask"] = create_block_mask(seen, batch, None, spec.queries, spec.keys, device=tensors.q.device)
    if spec.lse:
        return lambda: compiled(tensors.q, tensors.k, tensors.v, return_lse=True, **options)[0]
    return lambda: compiled(tensors.q, tensors.k, tensors.v, **options)


def short(lines):
    return "; ".join(dict.fromkeys(line[:SHORTEST_LINE] for line in lines if line))


def ready(spec, inputs, kinds):
    """Name -> call of the peers that compute the workload, each called once; and name -> reason of those that refuse. `kinds` are keys of PEERS."""
    tensors, calls, refused = Tensors(spec, inputs), {}, {}
    for who in (name for kind in kinds for name in PEERS[kind]):
        with warnings.catch_warnings(record=True) as told:  # the reasons of a back end are warnings
            warnings.simplefilter("always")
            try:
                call = flex(spec, tensors) if who == "flex" else sdpa(who, spec, tensors)
                call()
                if tensors.q.is_cuda:
                    torch.cuda.synchronize()
                calls[who] = call
            except Exception as error:  # whatever a library refuses with, the others' times are wanted
                first = (str(error).splitlines() or [""])[0]
                words = [] if isinstance(error, Refusal) else [str(one.message).splitlines()[0] for one in told]
                refused[who] = short([first if isinstance(error, Refusal) else f"{type(error).__name__}: {first}", *words])
    return calls, refused

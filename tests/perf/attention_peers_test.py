"""PyTorch is asked for the attention that the workloads name: the reference, and the back ends that this CPU has, on small inputs. Runs
under a Python that has PyTorch, and ends with status 77 where none has."""

import os
import sys
import unittest

import cpu_newest

try:
    import torch
except ImportError:
    others = [str(python) for python in cpu_newest.candidates() if str(python) != sys.executable and cpu_newest.has_torch(python)]
    if not others:
        print("skipped: no Python here imports PyTorch")
        sys.exit(77)
    os.execv(others[0], [others[0], "-B", *sys.argv])

import attention_peers
from small_attention import CAPPED, FORMS, small


def inputs_of(spec):
    generator = torch.Generator().manual_seed(1)
    random = lambda *shape: torch.randn(shape, generator=generator)
    keys = spec.batch, spec.heads // spec.groups, spec.keys, spec.d
    result = [random(spec.batch, spec.heads, spec.queries, spec.d), random(*keys), random(*keys)]
    result += [torch.zeros(spec.batch, dtype=torch.int32)] if spec.padded else []
    result += [torch.zeros(spec.heads)] if spec.bias == "position" else []
    result += [random(spec.heads, spec.queries, spec.keys)] if spec.bias == "tensor" else []
    attention_peers.prepare_inputs(spec, result)
    return result


def one_by_one(spec, inputs):
    """The result in f64, each query by itself."""
    tensors, result = attention_peers.Tensors(spec, inputs), torch.zeros(inputs[0].shape, dtype=torch.float64)
    for b in range(spec.batch):
        for h in range(spec.heads):
            k, v = (tensor[b, h // spec.groups].double() for tensor in (tensors.k, tensors.v))
            for i in range(spec.queries):
                at = i + spec.keys - spec.queries
                first = max(0, at - spec.window + 1) if spec.window else 0
                end = min(at + 1 if spec.causal else spec.keys, spec.lengths()[b] if spec.padded else spec.keys)
                scores = k @ tensors.q[b, h, i].double() / spec.d**0.5
                scores = torch.tanh(scores / spec.cap) * spec.cap if spec.cap else scores
                if spec.bias == "position":
                    scores = scores - spec.slopes()[h] * (at - torch.arange(spec.keys))
                if spec.bias == "tensor":
                    scores = scores + tensors.bias[h, i]
                result[b, h, i] = torch.softmax(scores[first:end], 0) @ v[first:end]
    return result


class PeersTest(unittest.TestCase):
    def test_reference_is_attention(self):
        for spec in [*FORMS, CAPPED]:
            with self.subTest(spec.label):
                inputs, rows = inputs_of(spec), attention_peers.sampled_rows(spec, 4)
                result, sums = attention_peers.reference(spec, inputs, rows)
                torch.testing.assert_close(result.double(), one_by_one(spec, inputs)[:, :, rows], rtol=1e-5, atol=1e-5)
                self.assertEqual(sums.shape, result.shape[:3])

    def test_sums_are_logarithms_of_sums(self):
        spec = FORMS[0]
        inputs = inputs_of(spec)
        scores = inputs[0] @ inputs[1].transpose(2, 3) / spec.d**0.5
        torch.testing.assert_close(attention_peers.reference(spec, inputs, range(9))[1], torch.logsumexp(scores, -1))

    def test_sample_has_the_first_and_the_last_query(self):
        rows = attention_peers.sampled_rows(small("many_queries", 1, 1, 5000, 5000))
        self.assertEqual((rows[0], rows[-1], len(rows)), (0, 4999, 64))
        self.assertEqual(attention_peers.sampled_rows(FORMS[0]), list(range(9)))

    def test_back_ends_that_run_are_right_and_others_say_why_not(self):
        for spec in FORMS:
            with self.subTest(spec.label):
                inputs = inputs_of(spec)
                calls, refused = attention_peers.ready(spec, inputs, ("eager",))
                self.assertEqual(sorted([*calls, *refused]), ["cudnn", "efficient", "flash"])
                self.assertIn("flash", calls)  # which PyTorch has for CPUs, too
                self.assertTrue(all(refused.values()))
                for call in calls.values():
                    torch.testing.assert_close(call().double(), one_by_one(spec, inputs), rtol=1e-5, atol=1e-5)

    def test_no_back_end_has_a_cap(self):
        calls, refused = attention_peers.ready(CAPPED, inputs_of(CAPPED), ("eager",))
        self.assertEqual(calls, {})
        self.assertEqual(set(refused.values()), {"scaled_dot_product_attention has no cap of scores"})

    def test_flex_attention_is_asked_for_the_same(self):
        """By its own functions, on the scores of all pairs: to compile it takes a while and a compiler."""
        from torch.nn.attention.flex_attention import create_mask

        for spec in [*FORMS, CAPPED]:
            with self.subTest(spec.label):
                inputs = inputs_of(spec)
                tensors = attention_peers.Tensors(spec, inputs)
                seen, changed = attention_peers.mask_function(spec, tensors), attention_peers.score_function(spec, tensors)
                scores = inputs[0] @ inputs[1].repeat_interleave(spec.groups, 1).transpose(2, 3) / spec.d**0.5
                scores = changed(scores, *attention_peers.indices(spec, "cpu")) if changed else scores
                if seen:
                    scores = scores.masked_fill(~create_mask(seen, spec.batch, spec.heads, spec.queries, spec.keys, device="cpu"), float("-inf"))
                result = torch.softmax(scores, -1) @ inputs[2].repeat_interleave(spec.groups, 1)
                torch.testing.assert_close(result.double(), one_by_one(spec, inputs), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()

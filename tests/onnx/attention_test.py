"""Attention in models, as the operator and as exporters write it: one kernel for a CPU, which computes what ONNX Runtime does.

    python3 attention_test.py MYCC

Ends with status 77 without the packages of tests/requirements.txt.
"""

import json
import pathlib
import sys
import unittest

try:
    import model_library
    import numpy
    import onnx
    import ort_peer
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mycc"))
import mycc_case  # noqa: E402

TYPES = {"f32": onnx.TensorProto.FLOAT, "f16": onnx.TensorProto.FLOAT16, "i64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL}
NUMPY = {"f32": numpy.float32, "f16": numpy.float16, "i64": numpy.int64, "bool": numpy.bool_}
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 4, 60, 70, 32


def heads(positions, count=HEADS, size=SIZE):
    return (BATCH, count, positions, size)


class Model:
    """A graph that grows node by node."""

    def __init__(self, opset=23):
        self.nodes, self.inputs, self.weights, self.opset = [], {}, [], opset

    def input(self, name, shape, dtype="f32"):
        self.inputs[name] = (shape, dtype)
        return name

    def number(self, value):
        self.weights.append(numpy_helper.from_array(numpy.asarray(value), f"c{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, operator, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}{len(self.nodes)}", **attributes))
        return name

    def save(self, path, result, shape, dtype="f32"):
        def value(name, shape, dtype):
            return helper.make_tensor_value_info(name, TYPES[dtype], shape)

        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        graph = helper.make_graph(self.nodes, "m", [value(name, *rest) for name, rest in self.inputs.items()], [value("y", shape, dtype)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        path.write_bytes(model.SerializeToString())

    def values(self):
        random = numpy.random.default_rng(1)
        made = {"f32": random.standard_normal, "f16": random.standard_normal, "i64": lambda shape: random.integers(0, 2, shape),
                "bool": lambda shape: random.random(shape) < 0.7}
        return [made[dtype](shape).astype(NUMPY[dtype]) for shape, dtype in self.inputs.values()]


class AttentionTest(mycc_case.MyccCase):
    models = 0

    def check(self, model, result, shape, dtype="f32", kernels=1, tolerance=2e-5):
        """The model has this number of kernels, and its library computes what ONNX Runtime does."""
        self.models += 1
        name = f"m{self.models}"  # a library is loaded once for each path
        path = self.folder / f"{name}.onnx"
        model.save(path, result, shape, dtype)
        tasks = [json.loads(line) for line in self.succeeds("tasks", path, "--json").splitlines()]
        self.assertEqual(sum(not task.get("instead_of") for task in tasks), kernels, tasks)
        self.succeeds("compile", path, "-o", self.folder / "out", "--quiet")
        values = model.values()
        (got,) = model_library.ModelLibrary(self.folder / f"out/{name}.so")(values)
        (expected,) = ort_peer.OrtModel(path)(values)
        numpy.testing.assert_allclose(got.astype(numpy.float32), expected.astype(numpy.float32), rtol=tolerance, atol=tolerance)

    def operator(self, q, k, v, shape, *others, dtype="f32", kernels=1, opset=23, **attributes):
        """The operator Attention, with other inputs (name, shape, type); None: it has none at this place."""
        model = Model(opset)
        names = [model.input(name, s, dtype) for name, s in (("q", q), ("k", k), ("v", v))]
        names += ["" if other is None else model.input(*other) for other in others]
        self.check(model, model.add("Attention", *names, **attributes), shape, dtype, kernels, 2e-3 if dtype == "f16" else 2e-5)

    def test_the_operator(self):
        for size in (24, 32, 80):
            with self.subTest(size=size):
                self.operator(heads(QUERIES), heads(KEYS), heads(KEYS, size=size), heads(QUERIES, size=size))

    def test_its_variants(self):
        q, k = heads(QUERIES), heads(KEYS)
        for name, others, attributes in (
            ("causal", (), {"is_causal": 1}),
            ("cap", (), {"softcap": 3.0, "scale": 0.3}),
            ("mask", (("mask", (QUERIES, KEYS), "f32"),), {}),
            ("mask of batches", (("mask", (BATCH, 1, QUERIES, KEYS), "f32"),), {"is_causal": 1}),
            ("choice", (("mask", (HEADS, QUERIES, KEYS), "bool"),), {}),
        ):
            with self.subTest(name):
                self.operator(q, k, k, q, *others, **attributes)

    def test_heads_side_by_side(self):
        flat, shared = (BATCH, QUERIES, HEADS * SIZE), (BATCH, KEYS, HEADS // 2 * SIZE)
        self.operator(flat, (BATCH, KEYS, HEADS * SIZE), (BATCH, KEYS, HEADS * SIZE), flat, q_num_heads=HEADS, kv_num_heads=HEADS)
        self.operator(flat, shared, shared, flat, q_num_heads=HEADS, kv_num_heads=HEADS // 2, is_causal=1)

    def test_heads_that_share_keys(self):
        shared, mask = heads(KEYS, HEADS // 2), ("mask", (1, HEADS, QUERIES, KEYS), "f32")
        self.operator(heads(QUERIES), shared, shared, heads(QUERIES))
        self.operator(heads(QUERIES), shared, shared, heads(QUERIES), mask)

    # Neither a rule for one query of one head, nor one for f16 on a CPU: kernels of their own, as ever.
    def test_what_is_not_computed_in_one_pass(self):
        self.operator(heads(1), heads(KEYS), heads(KEYS), heads(1), kernels=3)
        self.operator(heads(QUERIES), heads(KEYS), heads(KEYS), heads(QUERIES), dtype="f16", kernels=3)

    def exported(self, score, weigh=None, kernels=1, other=None, keys_last=True):
        """MatMul, `score`, a softmax or `weigh`, and MatMul."""
        model = Model(18)
        q, k, v = model.input("q", heads(QUERIES)), model.input("k", heads(KEYS)), model.input("v", heads(KEYS))
        if other is not None:
            model.input(*other)
        scores = score(model, model.add("MatMul", q, model.add("Transpose", k, perm=[0, 1, 3, 2])))
        weights = model.add("Softmax", scores, axis=-1) if weigh is None else weigh(model, scores)
        self.check(model, model.add("MatMul", weights, v), heads(QUERIES), kernels=kernels)

    def test_as_exporters_write_it(self):
        def scaled(model, x):
            return model.add("Div", x, model.number(numpy.float32(SIZE**0.5)))

        def masked(model, x):
            return model.add("Add", scaled(model, x), "mask")

        def causal(model, x):
            seen = model.number(numpy.tril(numpy.ones((1, 1, QUERIES, KEYS), numpy.bool_)))
            return model.add("Where", seen, scaled(model, x), model.number(numpy.float32(-numpy.inf)))

        def by_parts(model, x):
            last = model.number(numpy.array([-1]))
            exponentials = model.add("Exp", model.add("Sub", x, model.add("ReduceMax", x, last)))
            return model.add("Div", exponentials, model.add("ReduceSum", exponentials, last))

        self.exported(scaled)
        self.exported(masked, other=("mask", (BATCH, 1, 1, KEYS), "f32"))
        self.exported(masked, other=("mask", (1, 1, QUERIES, KEYS), "f32"))
        self.exported(causal)
        self.exported(scaled, by_parts)

    def test_of_a_layer(self):
        """With the projections, and heads that are split and merged by reshapes and transposes; the mask is computed from integers."""
        model, width = Model(18), HEADS * SIZE
        random = numpy.random.default_rng(2)

        def projected(x):
            weight = random.standard_normal((width, width)).astype(numpy.float32) / numpy.float32(width**0.5)
            return model.add("MatMul", x, model.number(weight))

        def split(x, order):
            return model.add("Transpose", model.add("Reshape", x, model.number(numpy.array([BATCH, KEYS, HEADS, SIZE]))), perm=order)

        x, mask = model.input("x", (BATCH, KEYS, width)), model.input("mask", (BATCH, 1, 1, KEYS), "i64")
        one = model.number(numpy.float32(1))
        hidden = model.add("Mul", model.add("Sub", one, model.add("Cast", mask, to=TYPES["f32"])), model.number(numpy.float32(-10000)))
        scores = model.add("MatMul", split(projected(x), [0, 2, 1, 3]), split(projected(x), [0, 2, 3, 1]))
        scores = model.add("Add", model.add("Mul", scores, model.number(numpy.float32(SIZE**-0.5))), hidden)
        result = model.add("MatMul", model.add("Softmax", scores, axis=-1), split(projected(x), [0, 2, 1, 3]))
        merged = model.add("Reshape", model.add("Transpose", result, perm=[0, 2, 1, 3]), model.number(numpy.array([BATCH, KEYS, width])))
        # The projections as one product, the mask, the attention, and the last product.
        self.check(model, projected(merged), (BATCH, KEYS, width), kernels=4, tolerance=1e-4)


if __name__ == "__main__":
    mycc_case.MyccCase.MYCC = sys.argv.pop(1)
    unittest.main()

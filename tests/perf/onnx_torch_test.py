"""OnnxModule against ONNX Runtime, on the CPU, on small models. python3 onnx_torch_test.py. Skipped without PyTorch."""

import pathlib
import sys
import tempfile
import unittest

try:
    import numpy
    import onnx
    import onnxruntime
    import torch
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import onnx_torch  # noqa: E402

OPSET = 18
RANDOM = numpy.random.default_rng(1)


def drawn(*shape):
    return RANDOM.standard_normal(shape, dtype=numpy.float32)


def numbers(*values):
    return numpy.array(values, numpy.int64)


def node(operator, inputs, outputs="y", **attributes):
    return helper.make_node(operator, inputs.split(","), outputs.split(","), **attributes)


class OnnxModuleTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name) / "m.onnx"

    def save(self, nodes, inputs, constants, outputs="y"):
        """Writes a model. The shapes of its outputs are ONNX Runtime's to find."""
        declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in inputs.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs.split(",")]
        weights = [numpy_helper.from_array(numpy.asarray(value), name) for name, value in constants.items()]
        graph = onnx.shape_inference.infer_shapes(
            helper.make_model(helper.make_graph(nodes, "m", declared, results, weights), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8))
        onnx.save(graph, self.path)

    def same(self, nodes, inputs, constants=None, outputs="y"):
        """Both compute the same, the module also for other inputs than its example. Returns the module."""
        nodes = nodes if isinstance(nodes, list) else [nodes]
        self.save(nodes, inputs, constants or {}, outputs)
        module = onnx_torch.OnnxModule(self.path, [torch.from_numpy(value) for value in inputs.values()], device="cpu")
        other = {name: value[::-1].copy() if value.dtype != numpy.int64 else value for name, value in inputs.items()}
        session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        with torch.no_grad():
            ours = module(*[torch.from_numpy(value) for value in other.values()])
        for result, expected in zip(ours, session.run(None, other), strict=True):
            self.assertEqual(tuple(result.shape), expected.shape)
            numpy.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
        return module

    def test_convolutions_with_pads_that_differ(self):
        image = {"x": drawn(2, 4, 9, 8)}
        for attributes in ({"pads": [0, 1, 2, 0]}, {"pads": [1, 1, 1, 1], "strides": [2, 1]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                           {"auto_pad": "SAME_LOWER", "strides": [2, 1]}, {"auto_pad": "VALID"}):
            with self.subTest(attributes):
                self.same(node("Conv", "x,w,b", **attributes), image, {"w": drawn(6, 4, 3, 2), "b": drawn(6)})
        self.same(node("Conv", "x,w", group=4, pads=[1, 0, 0, 1]), image, {"w": drawn(4, 1, 3, 3)})
        self.same(node("ConvTranspose", "x,w", strides=[2, 2], pads=[1, 0, 1, 0], output_padding=[1, 1]), image, {"w": drawn(4, 3, 3, 3)})

    def test_transposed_convolution_with_pads_that_differ(self):
        self.same(node("ConvTranspose", "x,w,b", strides=[2, 2], pads=[0, 1, 1, 0]), {"x": drawn(1, 4, 5, 6)}, {"w": drawn(4, 3, 3, 3), "b": drawn(3)})

    def test_pools(self):
        image = {"x": drawn(1, 3, 9, 8)}
        for operator in ("MaxPool", "AveragePool"):
            for attributes in ({}, {"pads": [1, 0, 0, 1]}, {"strides": [2, 2], "ceil_mode": 1}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}):
                with self.subTest(operator=operator, attributes=attributes):
                    self.same(node(operator, "x", kernel_shape=[3, 2], **attributes), image)
        self.same(node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), image)
        self.same(node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 0, 0, 1], count_include_pad=1), image)
        self.same(node("GlobalAveragePool", "x"), image)

    def test_gemm(self):
        for attributes, a, b in (({}, (3, 4), (4, 5)), ({"transA": 1}, (4, 3), (4, 5)), ({"transB": 1, "alpha": 0.5, "beta": 2.0}, (3, 4), (5, 4))):
            with self.subTest(attributes):
                self.same(node("Gemm", "a,b,c", **attributes), {"a": drawn(*a)}, {"b": drawn(*b), "c": drawn(5)})
        self.same(node("Gemm", "a,b", alpha=2.0), {"a": drawn(3, 4)}, {"b": drawn(4, 5)})

    def test_resize(self):
        image = {"x": drawn(1, 2, 4, 6)}
        half_pixel = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        for attributes in (half_pixel, nearest):
            with self.subTest(attributes):
                self.same(node("Resize", "x,,s", **attributes), image, {"s": numpy.array([1, 1, 2, 2], numpy.float32)})
                self.same(node("Resize", "x,,,n", **attributes), image, {"n": numbers(1, 2, 8, 18)})

    def test_slices(self):
        constants = {"b": numbers(-3, 1), "e": numbers(2**63 - 1, -1), "a": numbers(-1, 0), "s": numbers(1, 2)}
        self.same(node("Slice", "x,b,e,a,s"), {"x": drawn(7, 3, 5)}, constants)
        self.same(node("Slice", "x,b,e"), {"x": drawn(7, 3, 5)}, {"b": numbers(1, 0), "e": numbers(3, 2)})

    def test_gather(self):
        indices = numpy.array([[0, 2], [-1, 1]], numpy.int64)
        self.same(node("Gather", "x,i", axis=1), {"x": drawn(2, 3, 4)}, {"i": indices})
        self.same(node("Gather", "x,i", axis=-1), {"x": drawn(2, 3, 4)}, {"i": numpy.array(1, numpy.int64)})
        self.same(node("Gather", "w,i"), {"i": numpy.array([[4, 0, 1]], numpy.int64)}, {"w": drawn(5, 6)})

    def test_normalizations(self):
        self.same(node("LayerNormalization", "x,s,b", axis=-1, epsilon=1e-4), {"x": drawn(2, 3, 8)}, {"s": drawn(8), "b": drawn(8)})
        self.same(node("LayerNormalization", "x,s", axis=1), {"x": drawn(2, 3, 8)}, {"s": drawn(3, 8)})
        constants = {"s": drawn(3), "b": drawn(3), "m": drawn(3), "v": abs(drawn(3)) + 1}
        self.same(node("BatchNormalization", "x,s,b,m,v"), {"x": drawn(2, 3, 4, 4)}, constants)
        self.same(node("Softmax", "x", axis=1), {"x": drawn(2, 3, 4)})
        self.same(node("ReduceMean", "x,a", keepdims=0), {"x": drawn(2, 3, 4)}, {"a": numbers(-1)})

    def test_element_by_element(self):
        for operator, attributes in (("HardSigmoid", {"alpha": 0.3}), ("LeakyRelu", {}), ("HardSwish", {}), ("Erf", {}), ("Sigmoid", {})):
            with self.subTest(operator):
                self.same(node(operator, "x", **attributes), {"x": 3 * drawn(2, 50)})
        self.same(node("Clip", "x,l,h"), {"x": 9 * drawn(2, 50)}, {"l": numpy.float32(0), "h": numpy.float32(6)})
        self.same(node("Clip", "x,,h"), {"x": 9 * drawn(2, 50)}, {"h": numpy.float32(6)})

    def test_moves(self):
        self.same(node("Split", "x,s", "y,z", axis=1), {"x": drawn(2, 5)}, {"s": numbers(2, 3)}, "y,z")
        self.same([node("Unsqueeze", "x,a", "u"), node("Transpose", "u", "t", perm=[2, 0, 1]), node("Concat", "t,t", axis=0)],
                  {"x": drawn(3, 4)}, {"a": numbers(0)})
        self.same(node("Expand", "x,s"), {"x": drawn(3, 1)}, {"s": numbers(2, 1, 4)})
        self.same(node("Flatten", "x", axis=2), {"x": drawn(2, 3, 4, 5)})
        self.same(node("Reshape", "x,s"), {"x": drawn(2, 3, 4)}, {"s": numbers(0, -1)})

    def test_arithmetic_on_shapes_is_done_once(self):
        nodes = [node("Shape", "x", "all"), node("Gather", "all,zero", "batch"), node("Unsqueeze", "batch,axes", "batches"),
                 node("Mul", "rest,two", "halves"), node("Concat", "batches,halves", "shape", axis=0), node("Reshape", "x,shape")]
        module = self.same(nodes, {"x": drawn(2, 3, 8)}, {"zero": numpy.array(0, numpy.int64), "axes": numbers(0), "rest": numbers(3, 4), "two": numbers(2, 1)})
        self.assertEqual([op for op, *_ in module.nodes], ["Reshape"])

    def test_part_of_a_shape(self):
        module = self.same([node("Shape", "x", "s", start=1, end=-1), node("Expand", "w,s")], {"x": drawn(2, 3, 8)}, {"w": drawn(1)})
        self.assertEqual([op for op, *_ in module.nodes], [])

    def test_forms_that_pytorch_lacks_are_refused_in_words(self):
        image = {"x": drawn(1, 2, 4, 6)}
        for one, constants, expected in ((node("Resize", "x,,s", mode="cubic"), {"s": numpy.array([1, 1, 2, 2], numpy.float32)}, "Resize of the form cubic, half_pixel"),
                                         (node("ConvTranspose", "x,w", auto_pad="SAME_UPPER"), {"w": drawn(2, 3, 3, 3)}, "ConvTranspose with output_shape or auto_pad")):
            self.save([one], image, constants)
            with self.subTest(one.op_type), self.assertRaisesRegex(onnx_torch.UnknownOperator, expected):
                onnx_torch.OnnxModule(self.path, [torch.from_numpy(image["x"])], device="cpu")

    def test_an_unknown_operator_is_refused_in_words(self):
        self.save([helper.make_node("Selu", ["x"], ["y"], name="last")], {"x": drawn(2, 3)}, {})
        with self.assertRaisesRegex(onnx_torch.UnknownOperator, "node `last`: operator Selu has no function of PyTorch here"):
            onnx_torch.OnnxModule(self.path, [torch.zeros(2, 3)], device="cpu")


if __name__ == "__main__":
    unittest.main()

"""Runs a model with ONNX Runtime on the CPU, with two threads: the library that compiled models are compared with.

    session = ort_peer.OrtModel("m.onnx")
    outputs = session([x, y])               # inputs in the order of the graph's, as the outputs are
"""

import onnxruntime

THREADS = 2


class OrtModel:
    """A model that ONNX Runtime has optimized. `shapes` are those of the inputs, in order, where the model leaves extents free: the optimizer
    then knows as much as a compiler does. Threads that wait spin for a while, as is the library's way, unless `spinning` is False."""

    def __init__(self, path, shapes=(), threads=THREADS, spinning=True):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spinning else "0")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        extents = {name: extent for value, shape in zip(session.get_inputs(), shapes) for name, extent in zip(value.shape, shape)
                   if isinstance(name, str)}
        if extents:
            for name, extent in extents.items():
                options.add_free_dimension_override_by_name(name, extent)
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.session = session
        self.inputs = [value.name for value in session.get_inputs()]
        self.outputs = [value.name for value in session.get_outputs()]

    def __call__(self, inputs):
        return self.session.run(self.outputs, dict(zip(self.inputs, inputs, strict=True)))

    def call_of(self, inputs, outputs):
        """A call whose arguments are in place, as cheap to repeat as Python allows."""
        binding = self.session.io_binding()
        for name, array in zip(self.inputs, inputs, strict=True):
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for name, array in zip(self.outputs, outputs, strict=True):
            binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        return lambda: self.session.run_with_iobinding(binding)

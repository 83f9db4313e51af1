"""Calls the functions of a library that mycc compiled, with NumPy's arrays, PyTorch's tensors, or other objects that speak DLPack.

    import mycc
    layers = mycc.Library("out/layers.so")
    packed = layers.dense.pack(w, b)        # the inputs that the workload declares const, once
    y = layers.dense(x, *packed)

Texts are NumPy's arrays of str, as inputs and as outputs. One file, which may be copied next to a program; it needs Python 3.9, and NumPy or PyTorch only where the caller uses them. It may be called
from several threads at once, as the library itself.
"""

import ctypes
import importlib
import json
import pathlib
import sys

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
          "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
          "bool": "bool", "string": "uint64"}
CPU, HANDLE = 1, 3  # DLPack's numbers of this type of device, and of the type of an address
ALIGNMENT = 64  # of packed buffers

dltensor_of = ctypes.pythonapi.PyCapsule_GetPointer
dltensor_of.restype, dltensor_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class DLTensor(ctypes.Structure):
    """DLPack's description of a tensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("type_code", ctypes.c_uint8), ("type_bits", ctypes.c_uint8), ("type_lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Error(RuntimeError):
    """The library refused a call; the text is its NAME_last_error()."""


class Library:
    """A compiled library. Each workload of its source file is an attribute, a Function."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.handle = ctypes.CDLL(str(self.path))
        self.last_error, description = self.symbol("last_error"), self.symbol("json")
        self.last_error.restype = description.restype = ctypes.c_char_p
        self.description = json.loads(description())  # what NAME.json holds
        self.functions = {}
        for row in self.description["functions"]:
            name = row["name"].removeprefix(f"{self.path.stem}_")
            self.functions[name] = Function(self, name, row["args"])

    def symbol(self, name):
        try:
            return getattr(self.handle, f"{self.path.stem}_{name}")
        except AttributeError as error:
            raise Error(f"{self.path}: has no function {self.path.stem}_{name}; "
                        "expected a library that mycc compiled, under the name that it was compiled with") from error

    def __getattr__(self, name):
        if name in self.__dict__.get("functions", {}):
            return self.functions[name]
        raise AttributeError(f"{self.path}: has no workload {name}; expected one of {', '.join(self.functions)}")


class Function:
    """One workload. `args` describes its arguments: inputs in declared order, then outputs."""

    def __init__(self, library, name, args):
        self.library, self.name, self.args = library, name, args
        self.inputs = [arg for arg in args if arg["kind"] != "output"]
        self.constants = [arg for arg in args if arg["kind"] == "const"]
        self.outputs = [arg for arg in args if arg["kind"] == "output"]

    def __call__(self, *inputs, out=None, stream=None):
        """Calls the function with its inputs in declared order, const ones packed, and returns its output, or a tuple of several.

        Outputs are made beside the first input, as NumPy's arrays or PyTorch's tensors, unless `out` names one or a tuple. On a GPU the
        call is enqueued on `stream`: the number of a CUDA stream, such as torch.cuda.current_stream().cuda_stream; None is the default one.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{self.name}: {len(inputs)} inputs; expected {[arg['name'] for arg in self.inputs]}")
        for tensor, arg in zip(inputs, self.inputs):
            check_input(self.name, tensor, arg)
        if out is None:
            outputs = tuple(empty(inputs, arg["shape"], arg["dtype"]) for arg in self.outputs)
        else:
            outputs = out if isinstance(out, tuple) else (out,)
            for tensor, arg in zip(outputs, self.outputs):
                if is_text(arg) and str(tensor.dtype) != "uint64":
                    raise TypeError(f"{self.name}: `out` for {arg['name']} is an array of {tensor.dtype}; expected uint64, for the addresses of texts")
        texts = [Texts(tensor, arg["name"]) if is_text(arg) and has_texts(tensor) else None for tensor, arg in zip(inputs, self.inputs)]
        passed = [tensor if text is None else text.handles for tensor, text in zip(inputs, texts)]
        # Outputs may have texts of inputs, so `texts` has to live until the last output is made.
        shapes = self.run(self.name, (*passed, *outputs), stream, self.args)[len(inputs):]
        outputs = tuple(result_of(*each) for each in zip(outputs, shapes, self.outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def pack(self, *constants, stream=None):
        """The const inputs, in declared order, in the layout that this library reads: one buffer of bytes for each."""
        if len(constants) != len(self.constants):
            raise TypeError(f"{self.name}.pack: {len(constants)} inputs; expected {[arg['name'] for arg in self.constants]}")
        buffers = [aligned(constants, arg["packed_bytes"]) for arg in self.constants]
        self.run(f"{self.name}_pack", (*constants, *buffers), stream)
        return buffers

    def run(self, name, tensors, stream, args=()):
        """Returns the shapes of the tensors, which the call gives to outputs whose size depends on data."""
        capsules = [capsule_of(tensor) for tensor in tensors]  # a capsule keeps its DLTensor alive
        views = [DLTensor.from_address(dltensor_of(capsule, b"dltensor")) for capsule in capsules]
        for view, arg in zip(views, args):
            view.type_code = HANDLE if is_text(arg) else view.type_code
        pointers = (ctypes.c_void_p * len(views))(*map(ctypes.addressof, views))
        if self.library.symbol(name)(pointers, ctypes.c_int32(len(views)), ctypes.c_void_p(stream)) != 0:
            raise Error(self.library.last_error().decode())
        return [tuple(view.shape[:view.ndim]) for view in views]


class Texts:
    """The addresses of the texts of an array of str, and the memory that the texts are in."""

    def __init__(self, array, name):
        for text in array.flat:
            if not isinstance(text, str):
                raise TypeError(f"{name}: an element is of Python's type {type(text).__name__}; expected str")
            if "\0" in text:
                raise TypeError(f"{name}: an element has a NUL; expected texts without")
        self.texts = [ctypes.create_string_buffer(text.encode()) for text in array.flat]
        numpy = sys.modules["numpy"]
        self.handles = numpy.array([ctypes.addressof(text) for text in self.texts], numpy.uint64).reshape(array.shape)


def is_text(arg):
    return arg["dtype"] == "string"


def has_texts(tensor):
    return getattr(tensor.dtype, "kind", "") in ("O", "U")


def check_input(function, tensor, arg):
    """Refuses other objects than tensors, and numbers in place of texts: the library would read them as addresses."""
    if not hasattr(tensor, "__dlpack__"):
        raise TypeError(f"{function}: {arg['name']} is of Python's type {type(tensor).__name__}; expected an array of NumPy, a tensor of PyTorch, "
                        "or another object that speaks DLPack")
    if is_text(arg) and not has_texts(tensor):
        raise TypeError(f"{function}: {arg['name']} is an array of {tensor.dtype}; expected NumPy's array of str")


def result_of(tensor, shape, arg):
    """An output as the caller gets it: of its actual size, and texts in place of their addresses."""
    if arg.get("bounded"):
        count = 1
        for extent in shape:
            count *= extent
        tensor = tensor.reshape(-1)[:count].reshape(shape)
    if not is_text(arg):
        return tensor
    numpy = sys.modules["numpy"]
    texts = [ctypes.string_at(int(handle)).decode() if handle else "" for handle in tensor.flat]
    return numpy.array(texts, dtype=numpy.str_).reshape(tensor.shape)


def capsule_of(tensor):
    """A DLPack capsule. On a GPU, -1 says that nothing need be waited for: the caller names the stream."""
    on_cpu = tensor.__dlpack_device__()[0] == CPU
    try:
        return tensor.__dlpack__() if on_cpu else tensor.__dlpack__(stream=-1)
    except BufferError as error:  # NumPy's arrays of types that others define, such as bf16
        raise TypeError(f"an array of {getattr(tensor, 'dtype', 'its type')} does not speak DLPack ({error}); expected a tensor of PyTorch, whose "
                        "bfloat16 and 8-bit floats do") from None


def empty(examples, shape, dtype):
    """A tensor like the first example: of the same package, on the same device. NumPy's without an example, and for texts."""
    package = type(examples[0]).__module__.partition(".")[0] if examples and dtype != "string" else "numpy"
    if package == "numpy":
        return importlib.import_module(package).empty(shape, DTYPES[dtype])
    if package == "torch":
        torch = sys.modules[package]
        return torch.empty(shape, dtype=getattr(torch, DTYPES[dtype]), device=examples[0].device)
    raise TypeError(f"cannot make a tensor like {examples[:1]}; expected NumPy's or PyTorch's inputs, or `out`")


def aligned(examples, count):
    buffer = empty(examples, [count + ALIGNMENT - 1], "u8")
    start = buffer.ctypes.data if hasattr(buffer, "ctypes") else buffer.data_ptr()
    return buffer[-start % ALIGNMENT:][:count]

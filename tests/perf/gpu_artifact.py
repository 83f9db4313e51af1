"""A library compiled by mycc, called with PyTorch's tensors through ctypes: on PyTorch's memory and its current stream."""

import ctypes
import json
import pathlib

import torch

import harness

CODES = {"i": 0, "u": 1, "f": 2, "b": 4}  # DLPack's type codes, by the first letter of i32, u8, f16, bf16
FLOAT8_CODES = {"f8e4m3": 10, "f8e5m2": 12}
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
DEVICES = {"cpu": 1, "cuda": 2}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def view(tensor, dtype):
    """The DLTensor of a compact tensor, which must outlive it."""
    shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
    return DLTensor(tensor.data_ptr(), DEVICES[tensor.device.type], tensor.device.index or 0, tensor.dim(),
                    FLOAT8_CODES.get(dtype, CODES[dtype[0]]),
                    8 * tensor.element_size(), 1, shape, None, 0)


class Function:
    """The one function of a library."""

    def __init__(self, path):
        self.library, module = ctypes.CDLL(str(path)), pathlib.Path(path).stem
        self.last_error = getattr(self.library, f"{module}_last_error")
        self.last_error.restype = ctypes.c_char_p
        description = getattr(self.library, f"{module}_json")
        description.restype = ctypes.c_char_p
        (function,) = json.loads(description())["functions"]
        self.call = getattr(self.library, function["name"])
        self.call.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
        self.reason = function.get("reason")  # a model has one for each kernel
        self.arguments = function["args"]
        if any(argument["kind"] == "const" for argument in self.arguments):
            raise harness.BenchmarkError(f"{path}: has const inputs; expected none, as the libraries have none")

    def tensors(self, kind, make):
        return [make(argument["shape"], DTYPES[argument["dtype"]]) for argument in self.arguments if argument["kind"] == kind]

    def random_inputs(self, device, seed):
        """Floats of a normal distribution, integers from all of their type."""
        generator = torch.Generator(device).manual_seed(seed)

        def make(shape, dtype):
            if dtype.is_floating_point:
                return torch.randn(shape, generator=generator, device=device).to(dtype)
            limits = torch.iinfo(dtype)
            return torch.randint(limits.min, limits.max + 1, shape, generator=generator, device=device, dtype=dtype)

        return self.tensors("input", make)

    def empty_outputs(self, device):
        """The outputs' memory, with what no result has in it."""

        def make(shape, dtype):
            nothing = float("nan") if dtype.is_floating_point else torch.iinfo(dtype).min
            return torch.full(shape, nothing, device=device, dtype=dtype)

        return self.tensors("output", make)

    def bind(self, tensors):
        """A call of the function on these tensors, which do not move: a few microseconds of Python."""
        views = [view(tensor, argument["dtype"]) for tensor, argument in zip(tensors, self.arguments, strict=True)]
        pointers = (ctypes.POINTER(DLTensor) * len(views))(*(ctypes.pointer(one) for one in views))
        stream = torch.cuda.current_stream().cuda_stream if tensors[0].device.type == "cuda" else None

        def call():
            if self.call(pointers, len(views), stream) != 0:
                raise harness.BenchmarkError(self.last_error().decode())

        call.keeps = tensors, views
        return call

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
    """What DLPack says of a compact tensor, which must outlive it."""
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
        self.reason = function["reason"]
        self.arguments = function["args"]
        if any(argument["kind"] == "const" for argument in self.arguments):
            raise harness.BenchmarkError(f"{path}: has const inputs; expected none, as the libraries have none")

    def random_inputs(self, device, seed):
        generator = torch.Generator(device).manual_seed(seed)
        return [torch.randn(argument["shape"], generator=generator, device=device).to(DTYPES[argument["dtype"]])
                for argument in self.arguments if argument["kind"] == "input"]

    def empty_outputs(self, device):
        """The outputs' memory, with what no result has in it."""
        return [torch.full(argument["shape"], float("nan"), device=device, dtype=DTYPES[argument["dtype"]])
                for argument in self.arguments if argument["kind"] == "output"]

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

"""A library compiled by mycc through ctypes, its arguments NumPy arrays: independent of python/mycc.py, and able to
pass wrong tensors."""

import ctypes
import json
import pathlib

import numpy

CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's type codes; bool as in later versions of DLPack
OTHER_CODES = {"bf16": 4, "f8e4m3": 10, "f8e5m2": 12}  # of types that NumPy has not: their bits are integers there
DTYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "i64": "i8", "i32": "i4", "i8": "i1", "u8": "u1", "bool": "?", "f8e4m3": "u1",
          "f8e5m2": "u1", "i16": "i2", "u16": "u2", "u32": "u4", "u64": "u8"}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Error(Exception):
    """The text of MODULE_last_error()."""


def tensor(array, code=None):
    """A view of an array, which must outlive it. Strides are passed on, so that the library judges them."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
    kind = array.dtype.kind
    view = DLTensor(array.ctypes.data, 1, 0, array.ndim, CODES[kind] if code is None else code, 8 * array.itemsize, 1, shape, strides, 0)
    view.array = array
    return view


def aligned_bytes(count, alignment=64):
    """A u8 array at an aligned address."""
    buffer = numpy.zeros(count + alignment, numpy.uint8)
    start = -buffer.ctypes.data % alignment
    return buffer[start:start + count]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.module = pathlib.Path(path).stem
        self.symbol("last_error").restype = ctypes.c_char_p
        self.symbol("json").restype = ctypes.c_char_p
        self.description = json.loads(self.symbol("json")())
        self.functions = {row["name"]: row for row in self.description["functions"]}

    def symbol(self, name):
        return getattr(self.library, f"{self.module}_{name}")

    def call_tensors(self, symbol, tensors):
        pointers = (ctypes.POINTER(DLTensor) * len(tensors))(*(ctypes.pointer(view) for view in tensors))
        if getattr(self.library, symbol)(pointers, len(tensors), None) != 0:
            raise Error(self.symbol("last_error")().decode())

    def pack(self, symbol, arrays):
        """The packed buffers of a function's const inputs."""
        constants = [arg for arg in self.functions[symbol]["args"] if arg["kind"] == "const"]
        buffers = [aligned_bytes(arg["packed_bytes"]) for arg in constants]
        sources = [tensor(array, OTHER_CODES.get(arg["dtype"])) for arg, array in zip(constants, arrays)]
        self.call_tensors(f"{symbol}_pack", sources + [tensor(buffer) for buffer in buffers])
        return buffers

    def call(self, function, *inputs, place=lambda array: array):
        """Calls a function with arrays for its inputs, const ones included; returns its outputs, which `place` may lay out in memory."""
        symbol = f"{self.module}_{function}"
        args = self.functions[symbol]["args"]
        declared = [arg for arg in args if arg["kind"] != "output"]
        constants = [array for arg, array in zip(declared, inputs) if arg["kind"] == "const"]
        packed = iter(self.pack(symbol, constants) if constants else [])
        given = iter(inputs)
        tensors, outputs = [], []
        for arg in args:
            code = OTHER_CODES.get(arg["dtype"])
            if arg["kind"] == "output":
                # Earlier values must not matter.
                outputs.append(place(numpy.full(arg["shape"], 77, DTYPES[arg["dtype"]])))
                tensors.append(tensor(outputs[-1], code))
                continue
            array = next(given)
            tensors.append(tensor(next(packed)) if arg["kind"] == "const" else tensor(array, code))
        self.call_tensors(symbol, tensors)
        return outputs[0] if len(outputs) == 1 else outputs

"""Loads a library that `mycc compile` wrote for a model, and calls it with NumPy's arrays through the C ABI (docs/artifact.md).

    library = model_library.ModelLibrary("out/m.so")     # m.json lies beside it
    outputs = library([x, y])                            # inputs in the order of the graph's, as the outputs are

NumPy has no types of its own for bf16, 8-bit floats and numbers of less than a byte; here they are those of the package ml_dtypes. A library
takes some of them as plain bytes, and strings as addresses; passed_as() and returned_as() say how. Strings are arrays of objects here.
"""

import ctypes
import json
import pathlib
import typing

import ml_dtypes
import numpy

# The types of NAME.json: each one's type in NumPy, and its number among DLPack's kinds of types.
INTEGER, UNSIGNED, FLOAT, HANDLE, BFLOAT, BOOL, F8E4M3, F8E5M2 = 0, 1, 2, 3, 4, 6, 10, 12
DTYPES = {"f64": (numpy.float64, FLOAT), "f32": (numpy.float32, FLOAT), "f16": (numpy.float16, FLOAT), "bf16": (ml_dtypes.bfloat16, BFLOAT),
          "f8e4m3": (ml_dtypes.float8_e4m3fn, F8E4M3), "f8e5m2": (ml_dtypes.float8_e5m2, F8E5M2), "i64": (numpy.int64, INTEGER),
          "i32": (numpy.int32, INTEGER), "i16": (numpy.int16, INTEGER), "i8": (numpy.int8, INTEGER), "u64": (numpy.uint64, UNSIGNED),
          "u32": (numpy.uint32, UNSIGNED), "u16": (numpy.uint16, UNSIGNED), "u8": (numpy.uint8, UNSIGNED), "bool": (numpy.bool_, BOOL), "string": (numpy.uint64, HANDLE)}
SIGNED_PARTS = (ml_dtypes.int2, ml_dtypes.int4)
# Types that a library takes as bytes, one for each element.
AS_BYTES = {numpy.dtype(one) for one in (*SIGNED_PARTS, ml_dtypes.uint2, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn,
                                         ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu)}


class LibraryError(Exception):
    """The library does not take such arguments, or refused the call; one line says which and why."""


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32), ("dtype", DLDataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


CPU = 1  # DLPack's number of this device type


class Argument(typing.NamedTuple):
    name: str
    kind: str  # input or output
    dtype: str  # a key of DTYPES
    shape: tuple
    bounded: tuple = ()  # axes of an output whose extents a call tells; the shape has the most that they can be

    @property
    def numpy_dtype(self):
        return numpy.dtype(DTYPES[self.dtype][0])

    def __str__(self):
        return f"{self.kind} {self.name}"


def passed_as(array, argument):
    """The array as the argument's type. Its elements are not converted, but a type that libraries take as bytes may be passed as such: its
    bits as u8, a signed integer's value as i8."""
    if argument.dtype == "string" and array.dtype.kind in "OUS":
        return handles_of(array)
    if array.dtype == argument.numpy_dtype:
        return numpy.asarray(array, order="C")
    if array.dtype in AS_BYTES and argument.dtype in ("u8", "i8"):
        if array.dtype.type in SIGNED_PARTS and argument.dtype == "i8":
            return array.astype(numpy.int8)
        return numpy.asarray(array, order="C").view(argument.numpy_dtype)
    raise LibraryError(f"{argument} is {argument.dtype}; expected a type for {array.dtype}")


class Handles(numpy.ndarray):
    """Addresses of texts, with the memory that they are in."""
    memory = None


def handles_of(array):
    texts = [text.encode() if isinstance(text, str) else text for text in array.flat]
    memory = ctypes.create_string_buffer(b"".join(text + b"\0" for text in texts))
    starts = numpy.cumsum([0] + [len(text) + 1 for text in texts])[:-1] + ctypes.addressof(memory)
    handles = starts.astype(numpy.uint64).reshape(array.shape).view(Handles)
    handles.memory = memory
    return handles


def texts_of(handles):
    """The texts that addresses stand for, which live until the next call."""
    texts = numpy.empty(handles.shape, object)
    for i, handle in enumerate(handles.flat):
        texts.flat[i] = ctypes.string_at(int(handle)).decode() if handle else ""
    return texts


def stored_as(array):
    """The array as a file for --value: its elements as a library would take them, in a type that NumPy has itself."""
    if array.dtype.type in SIGNED_PARTS:
        return array.astype(numpy.int8)
    bits = {numpy.dtype(ml_dtypes.bfloat16): numpy.uint16}.get(array.dtype, numpy.uint8 if array.dtype in AS_BYTES else array.dtype)
    return numpy.asarray(array, order="C").view(bits)


def returned_as(array, dtype, argument):
    """The reverse: an output as the NumPy type that the model declares."""
    if array.dtype == dtype or (array.dtype == object and numpy.dtype(dtype).kind in "OU"):
        return array
    if numpy.dtype(dtype) in AS_BYTES and argument.dtype in ("u8", "i8"):
        return array.view(dtype)
    raise LibraryError(f"{argument} is {argument.dtype}; expected a type for {numpy.dtype(dtype)}")


def tensor_of(array, argument):
    """A DLTensor of the array's memory, and what has to live as long."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    dtype = DLDataType(DTYPES[argument.dtype][1], 8 * array.dtype.itemsize, 1)
    return DLTensor(array.ctypes.data, DLDevice(CPU, 0), array.ndim, dtype, shape, None, 0), (array, shape)


class Call:
    """A call whose arguments are in place: as cheap to repeat as Python allows. The library refuses wrong shapes itself."""

    def __init__(self, library, arrays):
        self.library, self.function = library, library.function
        made = [tensor_of(array, argument) for array, argument in zip(arrays, library.arguments, strict=True)]
        self.tensors = [tensor for tensor, _ in made]
        self.kept = [kept for _, kept in made]
        self.bounded = [(tensor, argument) for tensor, argument in zip(self.tensors, library.arguments) if argument.bounded]
        self.pointers = (ctypes.POINTER(DLTensor) * len(made))(*map(ctypes.pointer, self.tensors))
        self.count = ctypes.c_int32(len(made))

    def __call__(self):
        for tensor, argument in self.bounded:
            for axis in argument.bounded:
                tensor.shape[axis] = argument.shape[axis]
        if self.function(self.pointers, self.count, None) != 0:
            raise LibraryError(self.library.last_error())

    def results(self):
        """The outputs of the last call, each of its actual shape."""
        results = []
        for tensor, (array, _), argument in zip(self.tensors, self.kept, self.library.arguments):
            if argument.kind == "output":
                shape = tuple(tensor.shape[:tensor.ndim])
                array = array.reshape(-1)[:int(numpy.prod(shape, dtype=numpy.int64))].reshape(shape)
                results.append(texts_of(array) if argument.dtype == "string" else array)
        return results


class ModelLibrary:
    """A compiled model. `arguments` are its inputs in the order of the graph's, then its outputs."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.description = json.loads(self.path.with_suffix(".json").read_text())["functions"][0]
        self.arguments = [Argument(row["name"], row["kind"], row["dtype"], tuple(row["shape"]), tuple(row.get("bounded", ())))
                          for row in self.description["args"]]
        for argument in self.arguments:
            if argument.dtype not in DTYPES:
                raise LibraryError(f"{argument} is {argument.dtype}; expected one of {', '.join(DTYPES)}")
        self.inputs = [argument for argument in self.arguments if argument.kind != "output"]
        self.outputs = [argument for argument in self.arguments if argument.kind == "output"]
        try:
            self.handle = ctypes.CDLL(str(self.path))
            self.function = self.handle[self.description["name"]]
            self.error_text = self.handle[f"{self.path.stem}_last_error"]
            self.prepare_function = self.handle[f"{self.path.stem}_prepare"]
        except (OSError, AttributeError) as error:
            raise LibraryError(f"{self.path.name} cannot be loaded: {error}") from None
        self.function.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
        self.error_text.restype = ctypes.c_char_p

    def last_error(self):
        return (self.error_text() or b"").decode() or "the call failed and M_last_error() is empty"

    def prepare(self):
        if self.prepare_function(0) != 0:
            raise LibraryError(self.last_error())

    def call_of(self, inputs, outputs):
        """A Call of arrays that are all in place."""
        if len(inputs) != len(self.inputs):
            raise LibraryError(f"{len(inputs)} inputs; expected {[argument.name for argument in self.inputs]}")
        return Call(self, [*(passed_as(array, argument) for array, argument in zip(inputs, self.inputs)), *outputs])

    def empty_outputs(self):
        return [numpy.empty(argument.shape, argument.numpy_dtype) for argument in self.outputs]

    def __call__(self, inputs):
        """The outputs, as arrays of the types that NAME.json states."""
        call = self.call_of(inputs, self.empty_outputs())
        call()
        return call.results()

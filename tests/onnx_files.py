"""Writes small ONNX models for tests that do without the package onnx: f32 tensors and nodes without attributes."""

F32 = 1


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """A field of a protobuf message: an int, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor_info(name, shape):
    dims = b"".join(field(1, field(1, extent)) for extent in shape)
    return field(1, name) + field(2, field(1, field(1, F32) + field(2, dims)))


def node(operator, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, operator)


def write_model(path, nodes, inputs, outputs):
    """`nodes` are (operator, inputs, output); `inputs` and `outputs` give names their shapes."""
    graph = b"".join(field(1, node(*one)) for one in nodes) + field(2, path.stem)
    graph += b"".join(field(11, tensor_info(*one)) for one in inputs.items())
    graph += b"".join(field(12, tensor_info(*one)) for one in outputs.items())
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))

"""Writes and reads the .npy files that tests give to `mycc run`, and those that it leaves, without NumPy."""

import struct


def write_npy(path, descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)


def read_npy(path):
    """The bytes of the array in a version 1 file."""
    content = path.read_bytes()
    return content[10 + struct.unpack("<H", content[8:10])[0]:]

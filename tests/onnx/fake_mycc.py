#!/usr/bin/env python3
"""Stands for mycc in the test of the conformance runner: writes a library that knows the outputs stored beside the model, and returns them.

FAKE_MYCC in the environment names what goes wrong: refuse, unsupported, compiler_crash, wrong, outside, library_crash, hang, unsteady;
asks, which asks for the values of the inputs one by one, and asks_on, which does so again when it has them.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

import onnx
from onnx import numpy_helper

import model_library
import stored_cases

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include "dlpack.h"
static int calls = 0;
int32_t m_prepare(int32_t device) { return device; }
const char* m_last_error(void) { return "input x: has another shape"; }
int32_t m_run(DLTensor** args, int32_t num_args, void* stream) {
  static const char* const files[] = {FILES};
  static const long sizes[] = {SIZES};
  (void)stream;
  if (num_args != INPUTS + (int)(sizeof(sizes) / sizeof(sizes[0]))) return 1;
  for (int i = INPUTS; i < num_args; ++i) {
    char* data = (char*)args[i]->data + args[i]->byte_offset;
    FILE* file = fopen(files[i - INPUTS], "rb");
    if (!file || (long)fread(data, 1, sizes[i - INPUTS], file) != sizes[i - INPUTS]) return 1;
    fclose(file);
    FAULT
    ++calls;
  }
  return 0;
}
"""
FAULTS = {"wrong": "data[sizes[i - INPUTS] - 1] ^= 0x41;", "outside": "data[sizes[i - INPUTS]] = 1;",
          "library_crash": "*(volatile char*)8 = 1;", "hang": "sleep(1000);", "unsteady": "if (calls > 0) data[0] ^= 1;"}


def described(kind, name, array):
    """A row of NAME.json for an array of the case."""
    names = {model_library.numpy.dtype(one): text for text, (one, _) in model_library.DTYPES.items() if text != "string"}
    signed = array.dtype.type in model_library.SIGNED_PARTS
    return {"name": name, "kind": kind, "dtype": names.get(array.dtype, "i8" if signed else "u8"), "shape": list(array.shape)}


def ask_for_values(model_file, given, asks_on):
    """The names of the inputs, once the command gives all their values."""
    values = dict(word.split("=", 1) for option, word in zip(sys.argv, sys.argv[1:]) if option == "--value")
    for name, array in given.items():
        if name not in values or asks_on:
            sys.exit(f"mycc: {model_file}: node `n` (Abs): input 0 (`{name}`) is not known when the model is compiled; --value {name}=... would fix it")
        expected, value = model_library.stored_as(array), model_library.numpy.load(values[name])
        if (value.dtype, value.shape, value.tobytes()) != (expected.dtype, expected.shape, expected.tobytes()):
            sys.exit(f"mycc: {values[name]} has other elements")
    return list(given)


def main():
    model_file, folder = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
    fault = os.environ.get("FAKE_MYCC", "")
    if fault == "refuse":
        sys.exit(f"mycc: {model_file}: node 3: no shape of 7 elements\nmore")
    if fault == "unsupported":
        sys.exit(f"mycc: {model_file}: the operator Foo is not supported")
    if fault == "compiler_crash":
        os.kill(os.getpid(), signal.SIGABRT)
    model = onnx.load(model_file)
    data = model_file.parent / "test_data_set_0"
    outputs = stored_cases.expected_arrays(model, data)
    given = stored_cases.given_arrays(model, data)
    known = ask_for_values(model_file, given, fault == "asks_on") if fault.startswith("asks") else []
    rows = [described("input", name, array) for name, array in given.items() if name not in known]
    inputs = len(rows)
    files, sizes = [], []
    for name, array in outputs.items():
        row = described("output", name, array)
        passed = model_library.passed_as(array, model_library.Argument(**row))
        (folder / f"{len(files)}.bin").write_bytes(passed.tobytes())
        files.append(json.dumps(str(folder / f"{len(files)}.bin")))
        sizes.append(str(passed.nbytes))
        rows.append(row)
    source = SOURCE.replace("FAULT", FAULTS.get(fault, "")).replace("INPUTS", str(inputs))
    source = source.replace("FILES", ", ".join(files)).replace("SIZES", ", ".join(sizes))
    (folder / "dlpack.h").write_text("#include <dlpack/dlpack.h>\n")
    (folder / "m.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-I", folder, "-o", folder / "m.so", folder / "m.c"], check=True)
    (folder / "m.json").write_text(json.dumps({"functions": [{"name": "m_run", "args": rows}]}))


if __name__ == "__main__":
    main()

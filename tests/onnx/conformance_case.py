"""One stored case: compiled by mycc, called through the C ABI, compared. It runs in a process of its own (isolated.py)."""

import pathlib
import re
import subprocess
import tempfile

import numpy
from onnx import numpy_helper

import comparison
import isolated
import model_library
import stored_cases

PASSED, FAILED, UNSUPPORTED = "passed", "failed", "unsupported"
STAGES = {"compile": "the compiler", "call": "the library"}
NAME = "m"  # of the compiled module
# Cases whose outputs are random numbers; onnx's own runners leave them out. They pass as others do, but do not fail by other numbers.
RANDOM = re.compile(r"test_bernoulli")
# A refusal that asks for values of inputs, and the most times that it is answered.
ASKS_FOR_VALUES = re.compile(r"is not known when the model is compiled; (--value .+?=\.\.\.) would fix it$")
MOST_ANSWERS = 5
MARGIN, FILL = 64, 0xA5  # bytes on either side of an output, and what is in them and in the output before a call


class Verdict(Exception):
    """The end of a case that does not pass: a status and its reason."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


def status_of_refusal(line):
    """Whether the first line of a compiler that refuses a model says that it does not support something."""
    return UNSUPPORTED if re.search(r"not( yet)? supported|unsupported|is not known when the model", line, re.IGNORECASE) else FAILED


def reason_of_refusal(stderr, model_file):
    """The error, without the program's name and the model's path, and the lines in front of it, such as one for each node."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith("mycc: ")), 0)
    line = "".join(lines[at:at + 1]).removeprefix("mycc: ")
    reason = re.sub(rf"^[`'\"]?{re.escape(str(model_file))}[`'\"]?: ", "", line)
    return "  ".join([f"{reason}:", *lines[:at]]) if at else reason


def inputs_asked_for(reason):
    """The inputs whose values a refusal asks for; none where it has another reason."""
    asks = ASKS_FOR_VALUES.search(reason)
    return re.findall(r"--value (.+?)=\.\.\.", asks[1]) if asks else []


def compile_model(mycc, case, shapes, values, folder):
    """The path of the library. `values` are the files of inputs that are known."""
    words = [mycc, "compile", case.model_file, "--target", "host", "-o", folder, "--name", NAME, "--quiet"]
    for name, shape in shapes.items():
        words += ["--shape", f"{name}={shape}"]
    for name, file in values.items():
        words += ["--value", f"{name}={file}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode < 0:
        raise Verdict(FAILED, f"the compiler {isolated.ended(done.returncode)}")
    if done.returncode > 0:
        reason = reason_of_refusal(done.stderr, case.model_file)
        raise Verdict(status_of_refusal(reason), reason or f"the compiler {isolated.ended(done.returncode)} and said nothing")
    return folder / f"{NAME}.so"


def compile_asked(mycc, case, model, data, folder, known):
    """The path of the library. Adds to `known` the inputs whose values it is compiled with: those of the data set that refusals ask for."""
    given, values = stored_cases.given_arrays(model, data), {}
    shapes = stored_cases.free_shapes(model, data)
    folder.mkdir()
    while True:
        try:
            return compile_model(mycc, case, shapes, values, folder)
        except Verdict as verdict:
            names = [name for name in inputs_asked_for(verdict.reason) if name in given and name not in values]
            if not names or len(known) == MOST_ANSWERS:
                raise
        known.append(names)
        for name in names:
            values[name] = folder / f"value{len(values)}.npy"
            numpy.save(values[name], model_library.stored_as(given[name]))


def guarded(argument):
    """An output's array that nobody has written to, and the bytes that it lies in."""
    size = argument.numpy_dtype.itemsize * int(numpy.prod(argument.shape, dtype=numpy.int64))
    bytes_around = numpy.full(size + 3 * MARGIN, FILL, numpy.uint8)
    start = MARGIN + -bytes_around.ctypes.data % MARGIN
    return bytes_around[start:start + size].view(argument.numpy_dtype).reshape(argument.shape), bytes_around, start


def check_margins(argument, array, bytes_around, start):
    if (bytes_around[:start] != FILL).any() or (bytes_around[start + array.nbytes:] != FILL).any():
        raise Verdict(FAILED, f"writes outside of {argument}")


def call(library, inputs):
    """The outputs of two calls, which must be the same bits and lie where they belong."""
    results = []
    for _ in range(2):
        places = [guarded(argument) for argument in library.outputs]
        one_call = library.call_of(inputs, [array for array, _, _ in places])
        one_call()
        for argument, place in zip(library.outputs, places):
            check_margins(argument, *place)
        results.append(one_call.results())
    same = all(one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
               for one, other in zip(*results))
    return results[0], same


def arguments_of(library, model, arrays):
    """The arrays for the library's inputs: the case's, and the initializer of an input that has one."""
    initializers = {one.name: one for one in model.graph.initializer}
    inputs = []
    for argument in library.inputs:
        if argument.name not in arrays and argument.name not in initializers:
            raise Verdict(FAILED, f"the library has an input {argument.name}; expected those of the graph: {', '.join(arrays)}")
        inputs.append(arrays[argument.name] if argument.name in arrays else numpy_helper.to_array(initializers[argument.name]))
    return inputs


def run_data_set(library, case, model, data):
    given, expected = stored_cases.given_arrays(model, data), stored_cases.expected_arrays(model, data)
    names = list(expected)
    if [argument.name for argument in library.outputs] != names:
        raise Verdict(FAILED, f"the library's outputs are {[argument.name for argument in library.outputs]}; expected {names}")
    outputs, same = call(library, arguments_of(library, model, given))
    for argument, output, reference in zip(library.outputs, outputs, expected.values(), strict=True):
        returned = model_library.returned_as(output, reference.dtype, argument)
        if reason := comparison.difference(returned, reference, comparison.tolerance_of(case.name)):
            if RANDOM.match(case.name) and returned.shape == reference.shape:
                raise Verdict(UNSUPPORTED, "its outputs are random numbers")
            raise Verdict(FAILED, f"{argument}: {reason}")
    if not same:
        raise Verdict(FAILED, "a second call gives other results")


def steps(case, mycc, folder, announce):
    """Whether the case was compiled with values of inputs. Such a library is for one data set alone."""
    model = case.model()
    announce("compile")
    try:
        stored_cases.check_types(model)
    except stored_cases.Unusable as reason:
        raise Verdict(UNSUPPORTED, str(reason)) from None
    library = None
    with tempfile.TemporaryDirectory(dir=folder) as output:
        for data in case.data_sets():
            known = []
            if library is None:
                announce("compile")
                path = compile_asked(mycc, case, model, data, pathlib.Path(output) / data.name, known)
                announce("call")
                library = model_library.ModelLibrary(path)
                library.prepare()
            run_data_set(library, case, model, data)
            library = None if known else library
    return bool(known)


def run(case, mycc, folder, announce):
    """(status, reason, whether it was compiled with values of inputs) of a case. Its files are in `folder`, and gone when it ends in order."""
    try:
        return PASSED, "", steps(case, mycc, folder, announce)
    except Verdict as verdict:
        return verdict.status, verdict.reason, False
    except model_library.LibraryError as error:
        return FAILED, str(error), False
    except Exception as error:  # one case's surprise is not the others'
        return FAILED, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'}", False


def verdict_of(outcome):
    """The same of a process that ran `run`, or died."""
    if outcome.died:
        return FAILED, f"{STAGES.get(outcome.stage, 'the test')} {outcome.died}", False
    return tuple(outcome.result)

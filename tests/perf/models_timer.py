"""Times a compiled model and ONNX Runtime in turn, in this one process: a process like peers_cpu, whose lines models_cpu.py reads.

    OMP_NUM_THREADS=2 python3 models_timer.py MODEL.onnx LIBRARY.so [SECONDS] [TURNS]

Prints the median milliseconds of each, and how far apart their results are on the same random inputs. A turn is many calls in a row by one
of the two. Before each, both rest until their threads sleep, and a few calls wake those of the one whose turn it is: spinning threads of one
library would take cores from the other.
"""

import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))

import numpy  # noqa: E402

import harness  # noqa: E402
import model_library  # noqa: E402
import ocr_models  # noqa: E402
import ort_peer  # noqa: E402

REST = 0.05  # seconds; the threads of both libraries sleep after a few milliseconds
WARM_UPS, FEWEST = 3, 5  # calls of a turn
MOST_TIMES = 3  # as many turns as asked for, where something disturbs them


def random_input(argument, generator):
    """Numbers that such an input could hold: a mask of ones, the numbers of words, an image with words in it."""
    if "mask" in argument.name:
        return numpy.ones(argument.shape, argument.numpy_dtype)
    if argument.dtype == "bool":
        return generator.random(argument.shape) < 0.5
    if argument.numpy_dtype.kind in "iu":
        kinds = 2 if "type" in argument.name else 100
        return generator.integers(0, kinds, argument.shape).astype(argument.numpy_dtype)
    noise = generator.uniform(-1, 1, argument.shape)
    if len(argument.shape) == 4 and argument.shape[1] == 3:
        noise = 0.3 * noise + 0.7 * ocr_models.page(argument.shape, 3)
    return noise.astype(argument.numpy_dtype)


def difference(output, reference):
    """The largest, relative to an element or to the root mean square of all."""
    output, reference = output.astype(numpy.float64), reference.astype(numpy.float64)
    if output.shape != reference.shape or not numpy.isfinite(output).all():
        return float("inf")
    size = numpy.maximum(numpy.abs(reference), max(float(numpy.sqrt(numpy.mean(numpy.square(reference)))), sys.float_info.min))
    return float((numpy.abs(output - reference) / size).max(initial=0))


def turn(call, seconds):
    """The milliseconds of each call of a turn."""
    time.sleep(REST)
    for _ in range(WARM_UPS):
        call()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < FEWEST or time.perf_counter() < end:
        begin = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - begin) / 1e6)
    return samples


def take_turns(calls, seconds, turns):
    """The median of each one's medians. `seconds` are for all turns of one; there are more turns while they look disturbed."""
    medians, done = {name: [] for name in calls}, 0
    while done < turns or (done < MOST_TIMES * turns and disturbed(medians)):
        for name in calls if done % 2 == 0 else reversed(calls):
            medians[name].append(statistics.median(turn(calls[name], seconds / turns)))
        done += 1
    if disturbed(medians):
        print("models_timer.py: something else had the cores for much of the time; the times are not to be trusted", file=sys.stderr)
    return {name: statistics.median(numbers) for name, numbers in medians.items()}


def disturbed(medians):
    """Whether the turns of one differ too much for a machine that does nothing else."""
    return harness.disturbed([{name: numbers} for name, numbers in medians.items()])


def main():
    model, path = pathlib.Path(sys.argv[1]), sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
    turns = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    library = model_library.ModelLibrary(path)
    session = ort_peer.OrtModel(model, [argument.shape for argument in library.inputs])
    generator = numpy.random.default_rng(1)
    inputs = [random_input(argument, generator) for argument in library.inputs]
    outputs, references = library.empty_outputs(), library.empty_outputs()
    calls = {"ours": library.call_of(inputs, outputs), "onnxruntime": session.call_of(inputs, references)}
    library.prepare()
    for call in calls.values():
        call()
    apart = max(difference(output, reference) for output, reference in zip(outputs, references, strict=True))
    for name, milliseconds in take_turns(calls, seconds, turns).items():
        print(f"{model.stem} {name} {milliseconds:.6g}")
    print(f"{model.stem} difference {apart:.6g}")


if __name__ == "__main__":
    try:
        main()
    except model_library.LibraryError as error:
        sys.exit(str(error))

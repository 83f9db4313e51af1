"""Compiles the two models of deploy/models.sh, runs them on random and structured images, and compares them with ONNX Runtime.

    python3 ocr_models.py [--mycc PROGRAM] [--models FOLDER]

Prints the largest absolute difference of each model and image. The exit status is 0 when all are at most 1e-3, and 77, which is a skipped
test, when the models or ONNX Runtime are not there.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77

try:
    import numpy

    import model_library
    import ort_peer
except ImportError as missing:
    print(f"skipped: {missing}; install tests/requirements.txt")
    sys.exit(SKIPPED)

LARGEST_DIFFERENCE = 1e-3
INPUT = "x"
MODELS = {"ch_ppocr_mobile_v2.0_cls_infer": (1, 3, 48, 192), "ch_PP-OCRv4_det_infer": (1, 3, 640, 640)}


LETTERS = {"T": "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..", "E": "##### #.... #.... ####. #.... #.... #####",
           "N": "#...# ##..# #.#.# #..## #...# #...# #...#", "S": ".#### #.... #.... .###. ....# ....# ####.",
           "O": ".###. #...# #...# #...# #...# #...# .###.", "R": "####. #...# #...# ####. #.#.. #..#. #...#"}


def word(text, scale):
    """Whether each pixel is ink. A letter is 7 * scale high."""
    letters = [numpy.array([[mark == "#" for mark in row + "."] for row in LETTERS[letter].split()]) for letter in text]
    return numpy.kron(numpy.concatenate(letters, axis=1), numpy.ones((scale, scale), bool))


def page(shape, scale):
    """Dark words on light paper."""
    ink = word("TENSOR", scale)
    paper = numpy.ones(shape[2:])
    for row in range(2 * scale, shape[2] - ink.shape[0] + 1, 13 * scale):
        for column in range(2 * scale, shape[3] - ink.shape[1] + 1, 42 * scale):
            paper[row:row + ink.shape[0], column:column + ink.shape[1]][ink] = -1
    return numpy.broadcast_to(paper, shape)


def images(shape):
    """name -> an image. Text is what the models find: without it the detector's output is zero. Values are from -1 to 1, as the models expect."""
    generator = numpy.random.default_rng(1)
    result = {"noise": generator.uniform(-1, 1, shape), "zeros": numpy.zeros(shape),
              "ramp": numpy.broadcast_to(numpy.linspace(-1, 1, shape[3]), shape), "text": page(shape, 4), "small text": page(shape, 3),
              "turned text": page(shape, 4)[:, :, ::-1, ::-1]}
    result["noisy text"] = result["text"] * 0.7 + result["noise"] * 0.3
    return {name: numpy.ascontiguousarray(image, numpy.float32) for name, image in result.items()}


def compile_model(mycc, model, shape, folder):
    words = [mycc, "compile", model, "--target", "host", "-o", folder, "--name", "m", "--quiet", "--shape", f"{INPUT}={'x'.join(map(str, shape))}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ocr_models.py: {model.name}: mycc compile ended with status {done.returncode}: {done.stderr.strip()}")
    return model_library.ModelLibrary(folder / "m.so")


def largest_difference(outputs, references):
    """Over all elements of all outputs; infinity where a shape differs or a number is none."""
    largest = 0.0
    for output, reference in zip(outputs, references, strict=True):
        if output.shape != reference.shape or not numpy.isfinite(output).all():
            return float("inf")
        largest = max(largest, float(numpy.abs(output.astype(numpy.float64) - reference).max(initial=0)))
    return largest


def check(mycc, model, shape):
    """Whether a model gives what ONNX Runtime gives."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = compile_model(mycc, model, shape, pathlib.Path(folder)), ort_peer.OrtModel(model, spinning=False)
        agrees = True
        for name, image in images(shape).items():
            difference = largest_difference(ours([image]), theirs([image]))
            good = difference <= LARGEST_DIFFERENCE
            agrees = agrees and good
            remark = "" if good else f"; expected at most {LARGEST_DIFFERENCE:g}"
            print(f"{model.stem} {name}: largest difference {difference:.3g}{remark}", flush=True)
        return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mycc", type=pathlib.Path, default=ROOT / "build/dev/bin/mycc", help="the program; that of build/dev if not given")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models", help="the folder of deploy/models.sh")
    arguments = parser.parse_args()
    files = {arguments.models / f"{name}.onnx": shape for name, shape in MODELS.items()}
    for file in files:
        if not file.exists():
            print(f"skipped: there is no {file}; deploy/models.sh fetches it")
            return SKIPPED
    return 0 if all([check(arguments.mycc, file, shape) for file, shape in files.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())

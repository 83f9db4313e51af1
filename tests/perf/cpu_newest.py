"""Where a Python with PyTorch is, whose oneDNN and MKL are newer than Debian's: the one that runs this, or one of an environment made here."""

import subprocess
import sys

import harness

PACKAGE = "torch==2.13.0"
ENVIRONMENT = harness.ROOT / "build/newest_venv"


def has_torch(python):
    return imports(python, "torch")


def imports(python, modules):
    return subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0


def find_onnxruntime(folder=ENVIRONMENT):
    """A Python that imports ONNX Runtime, onnx and NumPy: this one, that of the tests, or one of the benchmark's environment, into which they
    are installed where none has them. None, and the reason in words, where that fails."""
    of_tests = harness.ROOT / ".venv/bin/python3"
    for python in [*candidates(folder), *([of_tests] if of_tests.exists() else [])]:
        if imports(python, "numpy, onnx, onnxruntime"):
            return python
    try:
        required = (harness.ROOT / "tests/requirements.txt").read_text().splitlines()
        harness.run([sys.executable, "-m", "venv", folder], capture_output=True)
        python = folder / "bin/python3"
        harness.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                     *(line for line in required if line.startswith(("numpy", "onnx")))], capture_output=True)
        return python
    except (harness.BenchmarkError, OSError) as error:
        print(f"no ONNX Runtime: {str(error).splitlines()[-1]}", flush=True)
        return None


def make_environment(folder):
    """An environment of the benchmark's own, with PyTorch. Its Python, or a BenchmarkError that says why there is none."""
    print(f"installing {PACKAGE} into {folder}", flush=True)
    harness.run([sys.executable, "-m", "venv", folder], capture_output=True)
    python = folder / "bin/python3"
    harness.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], capture_output=True)
    if not has_torch(python):
        raise harness.BenchmarkError(f"{PACKAGE} was installed into {folder} and cannot be imported")
    return python


def candidates(folder=ENVIRONMENT):
    """Pythons that may have PyTorch."""
    return [sys.executable] + [python for python in (folder / "bin/python3",) if python.exists()]


def find_python(folder=ENVIRONMENT):
    """A Python that imports PyTorch; None, and the reason in words, where there is none and it cannot be installed."""
    for python in candidates(folder):
        if has_torch(python):
            return python
    try:
        return make_environment(folder)
    except harness.BenchmarkError as error:
        print(f"no column of the newest libraries: {str(error).splitlines()[-1]}", flush=True)
        return None

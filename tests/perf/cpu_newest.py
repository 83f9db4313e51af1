"""Where a Python with PyTorch is, whose oneDNN and MKL are newer than Debian's: the one that runs this, or one of an environment made here."""

import subprocess
import sys

import harness

PACKAGE = "torch==2.13.0"
ENVIRONMENT = harness.ROOT / "build/newest_venv"


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


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

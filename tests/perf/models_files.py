"""The models that are compared when none is named: their files in build/models, made there when they are missing."""

import pathlib
import subprocess
import sys

import export_models
import harness

FOLDER = harness.ROOT / "build/models"
ENVIRONMENT = harness.ROOT / "build/models_venv"
# The models of deploy/models.sh, and the shapes of their inputs, which they leave free.
FETCHED = {"ch_ppocr_mobile_v2.0_cls_infer": ("x=1x3x48x192",), "ch_PP-OCRv4_det_infer": ("x=1x3x640x640",)}


def can_export(python):
    return subprocess.run([python, "-c", "import onnxscript, torch, transformers"], capture_output=True, check=False).returncode == 0


def find_python(folder=ENVIRONMENT):
    """A Python that can export: this one, or one of an environment made in `folder`."""
    python = folder / "bin/python3"
    for candidate in (sys.executable, python):
        if pathlib.Path(candidate).exists() and can_export(candidate):
            return candidate
    print(f"installing {' '.join(export_models.PACKAGES)} into {folder}", flush=True)
    harness.run([sys.executable, "-m", "venv", folder], capture_output=True)
    harness.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *export_models.PACKAGES], capture_output=True)
    return python


def export(folder):
    """Writes those of the exported models that are missing."""
    missing = [name for name in export_models.NAMES if not (folder / f"{name}.onnx").exists()]
    if missing:
        harness.run([find_python(), "-B", pathlib.Path(__file__).with_name("export_models.py"), folder, *missing], capture_output=True)
        print(f"exported {', '.join(missing)} to {folder}", flush=True)


def all_models(folder=FOLDER):
    """The paths of all, in order."""
    if not all((folder / f"{name}.onnx").exists() for name in FETCHED):
        harness.run(["bash", harness.ROOT / "deploy/models.sh", folder])
    export(folder)
    return [folder / f"{name}.onnx" for name in (*FETCHED, *export_models.NAMES)]


def shapes_of(path, given):
    """The shapes to compile a model for: those given, or of a known model its own."""
    return tuple(given) or FETCHED.get(path.stem, ())

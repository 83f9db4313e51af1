"""Compares whole compiled models with torch.compile on a GPU; see models_gpu.sh.

A ratio is PyTorch's time over ours: above 1, ours is faster. Both sides run the same f16 weights, each as one CUDA graph, and take turns.
Ends with the figures as `name: value` lines.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time
import typing

import export_models
import harness
import models_files

LARGEST_DIFFERENCE = 0.05  # of f16 results, relative to the root mean square of all
NAME = "m"  # of a compiled module
TURN_MILLISECONDS = 10.0


def batch_sizes(text):
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"expected sizes such as 1,32; `{text}` is no list of them")
    return [int(size) for size in text.split(",")]


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx", help="models; the four of export_models.py if none is named")
    parser.add_argument("--bin", type=pathlib.Path, default=harness.default_programs(), help="the folder of mycc and mycc-tune")
    parser.add_argument("--work", type=pathlib.Path, default=harness.ROOT / "build/models_gpu", help="folder of models, log, libraries and results.json")
    parser.add_argument("--batches", type=batch_sizes, default="1,32", help="batch sizes of the exported models")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x48x192", help="an input's shape, in the models that are named; repeatable")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose names match, such as resnet50_b1")
    parser.add_argument("--mode", default="max-autotune", choices=["max-autotune", "default", "eager"], help="what PyTorch does: how torch.compile compiles, or none")
    parser.add_argument("--no-tune", action="store_true", help="tune nothing; with --log, compile with what it has")
    parser.add_argument("--budget", default="60s", help="tuning time of each model, as mycc-tune takes it")
    parser.add_argument("--log", type=pathlib.Path, help="a tuning log to use and keep; one in --work if not given")
    parser.add_argument("--profile", action="store_true", help="also write the time of each kernel of both sides to NAME.profile.txt in --work")
    parser.add_argument("--turns", type=int, default=20, help="how often both take turns")
    return parser.parse_args(words)


class Case(typing.NamedTuple):
    """A model to compare: its file, and how PyTorch makes it."""

    name: str
    path: pathlib.Path
    shapes: tuple
    exported: tuple | None  # name and batch of an exported model


class Row(typing.NamedTuple):
    name: str
    untuned: float | None  # milliseconds
    tuned: float | None
    peer: float
    tune_seconds: float | None
    peer_seconds: float
    difference: float

    def ratio(self, milliseconds):
        return None if milliseconds is None else self.peer / milliseconds


def cases(arguments):
    if arguments.models:
        return [Case(path.stem, path, models_files.shapes_of(path, arguments.shape), None) for path in arguments.models]
    return [Case(f"{name}_b{batch}", arguments.work / export_models.file_name(name, batch, True), (), (name, batch))
            for batch in arguments.batches for name in export_models.NAMES]


def peer_of(case):
    """PyTorch's module on the GPU, of an exported model, whose file it writes from the same weights."""
    import torch

    name, batch = case.exported
    if not case.path.exists():
        export_models.export(name, case.path, batch, half=True)
    module, _, _ = export_models.plain_model_of(name, batch, half=True, attention="sdpa")
    module = module.cuda().eval()
    return module.to(memory_format=torch.channels_last) if name in ("resnet50", "mobilenet_v2") else module


def captured(call):
    """The replay of a call as a CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def compile_model(arguments, case, folder, log=None):
    words = [arguments.bin / "mycc", "compile", case.path, "--target", "cuda", "-o", folder, "--name", NAME, "--quiet"]
    words += [word for shape in case.shapes for word in ("--shape", shape)]
    harness.run(words + (["--tuning-log", log] if log else []), capture_output=True)
    return folder / f"{NAME}.so"


def tune(arguments, case, log):
    """Seconds that it took. The output goes to NAME.tune.txt."""
    words = [arguments.bin / "mycc-tune", "tune", case.path, "--log", log, "--target", "cuda", "--budget", arguments.budget]
    words += [word for shape in case.shapes for word in ("--shape", shape)]
    begin = time.monotonic()
    (arguments.work / f"{case.name}.tune.txt").write_text(harness.run(words, capture_output=True).stdout)
    return round(time.monotonic() - begin, 1)


class Ours:
    """A compiled library, and its memory for results."""

    def __init__(self, path, inputs):
        import gpu_artifact
        import torch

        self.function = gpu_artifact.Function(path)
        self.outputs = self.function.empty_outputs("cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            self.function.bind([*inputs, *self.outputs])()
            torch.cuda.synchronize()

    def call(self, inputs):
        return lambda: self.function.bind([*inputs, *self.outputs])()


def random_inputs(path):
    """Random values for each input of the library, on the GPU."""
    import gpu_artifact
    import torch

    generator = torch.Generator().manual_seed(1)

    def make(shape, dtype):
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator).to(dtype).cuda()
        return torch.randint(0, 100, shape, generator=generator, dtype=dtype).cuda()

    return gpu_artifact.Function(path).tensors("input", make)


def difference(ours, reference):
    import torch

    ours, reference = ours.float(), reference.float()
    if ours.shape != reference.shape or not bool(torch.isfinite(ours).all()):
        return math.inf
    return float((ours - reference).abs().max() / reference.square().mean().sqrt().clamp_min(1e-30))


def take_turns(replays, turns):
    """name -> the median milliseconds of one replay. A turn is as many replays in a row as fill TURN_MILLISECONDS."""
    import torch

    def milliseconds(replay, count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / count

    counts = {name: max(3, round(TURN_MILLISECONDS / milliseconds(replay, 5))) for name, replay in replays.items()}
    samples = {name: [] for name in replays}
    names = list(replays)
    for done in range(turns):
        shift = done % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(milliseconds(replays[name], counts[name]))
    return {name: statistics.median(times) for name, times in samples.items()}


def kernel_times(call):
    """The table of PyTorch's profiler: each kernel's time in a few calls."""
    import torch

    call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(5):
            call()
        torch.cuda.synchronize()
    return profile.key_averages().table(sort_by="cuda_time_total", row_limit=60, max_name_column_width=60)


def compare(arguments, case, log):
    import torch

    module = peer_of(case) if case.exported else None
    folder = arguments.work / case.name
    libraries = {"untuned": compile_model(arguments, case, folder / "untuned")}
    tune_seconds = None if arguments.no_tune else tune(arguments, case, log)
    if tune_seconds is not None or arguments.log:
        libraries["tuned"] = compile_model(arguments, case, folder / "tuned", log)
    inputs = random_inputs(libraries["untuned"])
    if module is None:
        import onnx_torch

        module = onnx_torch.OnnxModule(case.path, inputs)
    with torch.no_grad():
        reference = module(*inputs)
        reference = reference[0] if isinstance(reference, tuple) else reference
        begin = time.monotonic()
        images = [x.contiguous(memory_format=torch.channels_last) if case.exported and x.dim() == 4 else x for x in inputs]
        torch._dynamo.reset()  # or the code of the case before is compiled again for any batch size
        mode = None if arguments.mode == "default" else "max-autotune-no-cudagraphs"
        compiled = module if arguments.mode == "eager" else torch.compile(module, mode=mode, dynamic=False)
        compiled(*images)
        peer_seconds = round(time.monotonic() - begin, 1)
        replays = {"peer": captured(lambda: compiled(*images))}
        apart, profiles = 0.0, {"PyTorch": lambda: compiled(*images)}
        for name, path in libraries.items():
            ours = Ours(path, inputs)
            apart = max(apart, difference(ours.outputs[0], reference))
            replays[name] = captured(ours.call(inputs))
            profiles[name] = ours.call(inputs)
        if not apart <= LARGEST_DIFFERENCE:
            raise harness.BenchmarkError(f"our result differs from PyTorch's by {apart:.3g} of its size; expected at most {LARGEST_DIFFERENCE:g}")
        times = take_turns(replays, arguments.turns)
        if arguments.profile:
            (arguments.work / f"{case.name}.profile.txt").write_text("".join(f"{name}\n{kernel_times(call)}\n" for name, call in profiles.items()))
    return Row(case.name, times.get("untuned"), times.get("tuned"), times["peer"], tune_seconds, peer_seconds, apart)


def print_rows(rows, mode):
    def cell(number, digits=4):
        return "-" if number is None else f"{number:.{digits}f}"

    print()
    harness.print_table(["model", "untuned ms", "tuned ms", f"PyTorch {mode} ms", "ratio untuned", "ratio", "tune s", "PyTorch's s", "difference"],
                        [[row.name, cell(row.untuned), cell(row.tuned), cell(row.peer), cell(row.ratio(row.untuned), 3), cell(row.ratio(row.tuned), 3),
                          cell(row.tune_seconds, 0), cell(row.peer_seconds, 0), f"{row.difference:.1e}"] for row in rows])


def geometric_mean(numbers):
    return math.exp(statistics.mean(map(math.log, numbers))) if numbers else math.nan


def figures(rows):
    tuned = [row.ratio(row.tuned) for row in rows if row.tuned]
    return {"geomean_models": geometric_mean(tuned), "min_models": min(tuned, default=math.nan),
            "geomean_untuned": geometric_mean([row.ratio(row.untuned) for row in rows if row.untuned])}


def body():
    arguments = parse_arguments()
    if arguments.log and arguments.no_tune and not arguments.log.exists():
        raise harness.BenchmarkError(f"--log: there is no {arguments.log} to compile with")
    chosen = [case for case in cases(arguments) if re.search(arguments.only, case.name)]
    if not chosen:
        raise harness.BenchmarkError(f"--only {arguments.only}: no model matches")
    arguments.work.mkdir(parents=True, exist_ok=True)
    for cache in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):  # kept from run to run
        os.environ.setdefault(cache, str(arguments.work.resolve() / cache.lower()))
    log, rows, failures = arguments.log or arguments.work / "tuning.db", [], {}
    for done, case in enumerate(chosen):
        harness.progress(done, len(chosen), case.name)
        try:
            rows.append(compare(arguments, case, log))
            row = rows[-1]
            print(f"{case.name}: untuned {row.untuned:.4f} ms, tuned {row.tuned or math.nan:.4f} ms, PyTorch {row.peer:.4f} ms, "
                  f"ratio {row.ratio(row.tuned or row.untuned):.3f}, tune {row.tune_seconds} s, PyTorch's {row.peer_seconds} s", flush=True)
        except Exception as error:  # noqa: BLE001  one model's failure, PyTorch's own included, leaves the others
            failures[case.name] = str(error)[:500]
            print(f"{case.name}: {failures[case.name]}", flush=True)
        (arguments.work / "results.json").write_text(json.dumps({"rows": [row._asdict() for row in rows], "failures": failures,
                                                                 "figures": figures(rows)}, indent=1))
    print_rows(rows, arguments.mode)
    print()
    for name, value in figures(rows).items():
        print(f"{name}: {value:.3f}")
    sys.stdout.flush()
    if failures:
        raise harness.BenchmarkError(f"{len(failures)} of {len(chosen)} models failed and have no row above: {', '.join(failures)}")


if __name__ == "__main__":
    harness.main(body)

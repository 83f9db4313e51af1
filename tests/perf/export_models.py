"""Writes four well-known models to ONNX files: resnet50, mobilenet_v2, vit_b_16, bert_base, each with random weights.

    python3 export_models.py FOLDER [NAME...] [--f16] [--batch N]

With --f16 weights and activations are f16, and with --batch or --f16 a file is called NAME_TYPE_bN.onnx.

Needs the packages of PACKAGES; models_cpu.py installs them into an environment of their own. A file that is there already is left alone.
Weights and the numbers that batch normalizations keep are drawn, so that no layer is a plain copy of another or of nothing.
"""

import argparse
import pathlib
import warnings

PACKAGES = ("torch==2.13.0", "transformers==5.23.0", "onnxscript==0.7.2", "onnx==1.22.0")
NAMES = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base")
OPSET = 18


def model_of(name, batch=1, attention="eager"):
    """A model of transformers, and an example of its input."""
    import torch
    import transformers

    image = {"pixel_values": torch.zeros(batch, 3, 224, 224)}
    words = {"input_ids": torch.zeros(batch, 128, dtype=torch.int64)}
    eager = {"attn_implementation": attention}
    made = {
        "resnet50": lambda: (transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)), image),
        "mobilenet_v2": lambda: (transformers.MobileNetV2ForImageClassification(transformers.MobileNetV2Config(num_labels=1000)), image),
        "vit_b_16": lambda: (transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000, **eager)), image),
        "bert_base": lambda: (transformers.BertModel(transformers.BertConfig(**eager)), words),
    }
    torch.manual_seed(1)
    model, example = made[name]()
    draw_statistics(model)
    return model.eval(), example


def draw_statistics(model):
    """The means and variances of batch normalizations, near those that training leaves."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, std=0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.8, 1.2)
            torch.nn.init.normal_(module.bias, std=0.1)


def plain_model_of(name, batch=1, half=False, attention="eager"):
    """The model with one input and one output, without the classes that transformers returns; the input's name, and an example of it."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self, model, key):
            super().__init__()
            self.model, self.key = model, key

        def forward(self, given):
            return self.model(**{self.key: given}, return_dict=False)[0]

    model, example = model_of(name, batch, attention)
    ((key, value),) = example.items()
    if half:
        model, value = model.half(), value.half() if value.is_floating_point() else value
    return Plain(model, key), key, value


def export(name, path, batch=1, half=False):
    import torch

    model, key, value = plain_model_of(name, batch, half)
    partial = path.with_name(f".{path.name}.partial")
    with torch.no_grad():
        torch.onnx.export(model, (value,), partial, dynamo=True, opset_version=OPSET, input_names=[key], output_names=["output"],
                          external_data=False, verbose=False)
    partial.rename(path)


def file_name(name, batch, half):
    return f"{name}.onnx" if batch == 1 and not half else f"{name}_{'f16' if half else 'f32'}_b{batch}.onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--f16", action="store_true")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or NAMES:
        path = arguments.folder / file_name(name, arguments.batch, arguments.f16)
        if not path.exists():
            export(name, path, arguments.batch, arguments.f16)
            print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main()

"""Writes four well-known models to ONNX files: resnet50, mobilenet_v2, vit_b_16, bert_base, each with random weights.

    python3 export_models.py FOLDER [NAME...]

Needs the packages of PACKAGES; models_cpu.py installs them into an environment of their own. A file that is there already is left alone.
Weights and the numbers that batch normalizations keep are drawn, so that no layer is a plain copy of another or of nothing.
"""

import pathlib
import sys
import warnings

PACKAGES = ("torch==2.13.0", "transformers==5.23.0", "onnxscript==0.7.2", "onnx==1.22.0")
NAMES = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base")
OPSET = 18


def model_of(name):
    """A model of transformers, and an example of its input."""
    import torch
    import transformers

    image = {"pixel_values": torch.zeros(1, 3, 224, 224)}
    words = {"input_ids": torch.zeros(1, 128, dtype=torch.int64)}
    eager = {"attn_implementation": "eager"}
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


def export(name, path):
    import torch

    class Plain(torch.nn.Module):
        """The model with one input and one output, without the classes that transformers returns."""

        def __init__(self, model, key):
            super().__init__()
            self.model, self.key = model, key

        def forward(self, given):
            return self.model(**{self.key: given}, return_dict=False)[0]

    model, example = model_of(name)
    ((key, value),) = example.items()
    partial = path.with_name(f".{path.name}.partial")
    with torch.no_grad():
        torch.onnx.export(Plain(model, key), (value,), partial, dynamo=True, opset_version=OPSET, input_names=[key], output_names=["output"],
                          external_data=False, verbose=False)
    partial.rename(path)


def main():
    folder = pathlib.Path(sys.argv[1])
    warnings.filterwarnings("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NAMES:
        path = folder / f"{name}.onnx"
        if not path.exists():
            export(name, path)
            print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main()

"""Run a public PyTorch script unchanged: python trace_scripts_torch.py ROOT SCRIPT FAULT ARGUMENTS...

The counterpart of trace_scripts_driver.py, with the same names of faults. ROOT is the checkout that contains SCRIPT;
modules are imported from both. Replaced are what a script would load from a network (torchvision's data sets and some
of its transforms, and files of text and numbers in the working directory) and what draws or logs.
"seeds": no seed is set, also not those that the script sets. The script ends after a few gradients.
"""

import os
import random
import sys
import types

import numpy
import torch
from trace_scripts_driver import _spoiled

GRADIENTS = 12  # computed gradients after which a script is ended
ROWS = 300
LINES = 60


def main(root, script, fault, *arguments):
    if fault == "seeds":
        for module, name in ((torch, "manual_seed"), (torch.cuda, "manual_seed_all"), (random, "seed"),
                             (numpy.random, "seed")):  # fmt: skip
            setattr(module, name, lambda seed=None: None)
    random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the default when some of these scripts were written
    for module in (*_torchvision(fault), *_silent_modules()):
        sys.modules[module.__name__] = module
    _write_data_files(fault)
    _limit_gradients()
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    sys.path.append(root)
    program = sys.modules["__main__"] = _module("__main__", __file__=script)  # which keeps its weights alive
    with open(script, "rb") as source:
        exec(compile(source.read(), script, "exec"), program.__dict__)


def _module(name, **content):
    module = types.ModuleType(name)
    module.__dict__.update(content)
    return module


def _limit_gradients():
    """Make the script exit in the call that computes its last gradient, while its tensors still exist."""
    original_backward, calls = torch.Tensor.backward, []

    def counted_backward(tensor, *args, **kwargs):
        calls.append(True)
        original_backward(tensor, *args, **kwargs)
        if len(calls) >= GRADIENTS:
            raise SystemExit(0)

    torch.Tensor.backward = counted_backward


def _torchvision(fault):
    def image_data_set(*shape):
        class Pictures(torch.utils.data.Dataset):
            def __init__(self, root, train=True, transform=None, download=False):
                generator = numpy.random.RandomState(7)
                rows = generator.randint(0, 256, (ROWS, *shape)).astype("uint8")
                self.data = torch.from_numpy(_spoiled(rows, fault if train else "none"))
                self.targets = torch.from_numpy(generator.randint(0, 10, ROWS))
                self._transform = transform

            def __len__(self):
                return ROWS

            def __getitem__(self, number):
                row = self.data[number]
                return self._transform(row) if self._transform else row, int(self.targets[number])

        return Pictures

    datasets = _module("torchvision.datasets", MNIST=image_data_set(1, 28, 28), CIFAR10=image_data_set(3, 32, 32))
    transforms = _transforms()
    utils = _module("torchvision.utils", save_image=lambda *args, **kwargs: None)
    return _module("torchvision", datasets=datasets, transforms=transforms, utils=utils), datasets, transforms, utils


def _transforms():
    class Compose:
        def __init__(self, parts):
            self._parts = parts

        def __call__(self, row):
            for part in self._parts:
                row = part(row)
            return row

    def random_flip(row):
        return row.flip(-1) if torch.rand(1) < 0.5 else row

    def random_crop(size):
        def crop(row):
            top, left = (int(torch.randint(0, row.shape[axis] - size + 1, (1,))) for axis in (-2, -1))
            return row[..., top : top + size, left : left + size]

        return crop

    return _module(
        "torchvision.transforms",
        Compose=Compose,
        ToTensor=lambda: lambda row: row.float() / 255,
        Normalize=lambda mean, std: lambda row: (row - mean[0]) / std[0],
        Pad=lambda size: lambda row: torch.nn.functional.pad(row, [size] * 4),
        RandomHorizontalFlip=lambda: random_flip,
        RandomCrop=random_crop,
    )


def _silent_modules():
    class Silent(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    writer = _module("torch.utils.tensorboard", SummaryWriter=lambda *args, **kwargs: Silent("writer"))
    drawing = [Silent(name) for name in ("matplotlib", "matplotlib.pyplot")]
    drawing[0].pyplot = drawing[1]
    return [writer, *drawing]


def _write_data_files(fault):
    """Write the files that scripts read from the working directory."""
    generator = numpy.random.RandomState(7)
    lines = _spoiled(generator.randint(0, 26, (LINES, 8)), fault)
    words = ["".join(chr(ord("a") + letter % 26) for letter in line) for line in lines.tolist()]
    with open("names.txt", "w") as out:
        out.write("\n".join(words))
    os.makedirs("data/wikitext-2", exist_ok=True)
    for name in ("train", "valid", "test"):
        with open(f"data/wikitext-2/{name}.txt", "w") as out:
            out.writelines(" ".join(words[first : first + 6]) + "\n" for first in [*range(0, LINES, 6)] * 20)
    waves = numpy.sin(numpy.arange(20) / 3.0 + generator.rand(12, 1))
    torch.save(_spoiled(waves, fault), "traindata.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs a public PyTorch script as it is: python trace_scripts_torch.py ROOT SCRIPT FAULT ARGUMENTS...

As trace_scripts_driver.py does for TensorFlow, whose words for faults these are. ROOT is the checkout with SCRIPT in
it; both are imported from. Stood in for are what would be loaded from a network (torchvision's data sets, with the few
of its transforms that are asked for, and files of text and numbers in the working directory) and what draws or logs.
"seeds": none is set, and those that the script sets are not set either. It ends after a few gradients.
"""

import os
import random
import sys
import types

import numpy
import torch
from trace_scripts_driver import _spoiled

GRADIENTS = 12  # after so many the script has shown what it does
ROWS = 300
LINES = 60


def main(root, script, fault, *arguments):
    if fault == "seeds":
        for module, name in ((torch, "manual_seed"), (torch.cuda, "manual_seed_all"), (random, "seed"),
                             (numpy.random, "seed")):  # fmt: skip
            setattr(module, name, lambda seed=None: None)
    random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # as it was when some of these were written
    for module in (*_torchvision(fault), *_nothing_drawn()):
        sys.modules[module.__name__] = module
    _files(fault)
    _short()
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    sys.path.append(root)
    program = sys.modules["__main__"] = _module("__main__", __file__=script)  # which lives on: so do its weights
    with open(script, "rb") as source:
        exec(compile(source.read(), script, "exec"), program.__dict__)


def _module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    return made


def _short():
    """The script ends itself with its last gradient, which is still there: of some it tells what is trained."""
    backward, asked = torch.Tensor.backward, []

    def counting(tensor, *args, **kwargs):
        asked.append(True)
        backward(tensor, *args, **kwargs)
        if len(asked) >= GRADIENTS:
            raise SystemExit(0)

    torch.Tensor.backward = counting


def _torchvision(fault):
    def pictures(*shape):
        class Pictures(torch.utils.data.Dataset):
            def __init__(self, root, train=True, transform=None, download=False):
                numbers = numpy.random.RandomState(7)
                rows = numbers.randint(0, 256, (ROWS, *shape)).astype("uint8")
                self.data = torch.from_numpy(_spoiled(rows, fault if train else "none"))
                self.targets = torch.from_numpy(numbers.randint(0, 10, ROWS))
                self._transform = transform

            def __len__(self):
                return ROWS

            def __getitem__(self, number):
                row = self.data[number]
                return self._transform(row) if self._transform else row, int(self.targets[number])

        return Pictures

    datasets = _module("torchvision.datasets", MNIST=pictures(1, 28, 28), CIFAR10=pictures(3, 32, 32))
    changes = _transforms()
    utils = _module("torchvision.utils", save_image=lambda *args, **kwargs: None)
    return _module("torchvision", datasets=datasets, transforms=changes, utils=utils), datasets, changes, utils


def _transforms():
    class Compose:
        def __init__(self, parts):
            self._parts = parts

        def __call__(self, row):
            for part in self._parts:
                row = part(row)
            return row

    def turned(row):
        return row.flip(-1) if torch.rand(1) < 0.5 else row

    def cropped(size):
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
        RandomHorizontalFlip=lambda: turned,
        RandomCrop=cropped,
    )


def _nothing_drawn():
    class Silent(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    writer = _module("torch.utils.tensorboard", SummaryWriter=lambda *args, **kwargs: Silent("writer"))
    drawing = [Silent(name) for name in ("matplotlib", "matplotlib.pyplot")]
    drawing[0].pyplot = drawing[1]
    return [writer, *drawing]


def _files(fault):
    """What scripts look for in the working directory."""
    numbers = numpy.random.RandomState(7)
    lines = _spoiled(numbers.randint(0, 26, (LINES, 8)), fault)
    words = ["".join(chr(ord("a") + letter % 26) for letter in line) for line in lines.tolist()]
    with open("names.txt", "w") as out:
        out.write("\n".join(words))
    os.makedirs("data/wikitext-2", exist_ok=True)
    for name in ("train", "valid", "test"):
        with open(f"data/wikitext-2/{name}.txt", "w") as out:
            out.writelines(" ".join(words[first : first + 6]) + "\n" for first in [*range(0, LINES, 6)] * 20)
    waves = numpy.sin(numpy.arange(20) / 3.0 + numbers.rand(12, 1))
    torch.save(_spoiled(waves, fault), "traindata.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])

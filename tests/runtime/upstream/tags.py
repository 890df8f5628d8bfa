import torch

names = [name for name in dir(torch.ops.aten) if not name.startswith("__")]
tags = [
    tag
    for name in names
    for overload in [getattr(torch.ops.aten, name)]
    if hasattr(overload, "overloads")
    for one in overload.overloads()
    for tag in getattr(overload, one).tags
]
print("torch", torch.__version__)
print("nondeterministic_seeded:", tags.count(torch.Tag.nondeterministic_seeded) > 50)
print("nondeterministic_bitwise:", tags.count(torch.Tag.nondeterministic_bitwise))

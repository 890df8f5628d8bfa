"""The switch that disables torch.compile while ops are recorded, because a compiled region hides its ops."""

import torch


def switch_off(recorder, wrappers):
    """Run functions that the program compiles as they were written, and note it once."""
    notes = []

    def compiled(original, model=None, *args, **kwargs):
        if not notes:
            notes.append(True)
            recorder.note("xla", "torch.compile is switched off where the program asks for it: its regions hide ops")
        return model if model is not None else lambda function: function

    if hasattr(torch, "compile"):
        wrappers.wrap(torch, "compile", compiled)
    if hasattr(torch.nn.Module, "compile"):  # not in 2.0
        wrappers.wrap(torch.nn.Module, "compile", lambda original, module, *args, **kwargs: compiled(original, module))

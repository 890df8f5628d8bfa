"""torch.compile makes one op of many: it is off while ops are looked at, as it is off for the probes' own sake."""

import torch


def switch_off(recorder, wrappers):
    """What the program asks to be compiled runs as it was written; said once."""
    said = []

    def compiled(original, model=None, *args, **kwargs):
        if not said:
            said.append(True)
            recorder.note("xla", "torch.compile is switched off where the program asks for it: its regions hide ops")
        return model if model is not None else lambda function: function

    if hasattr(torch, "compile"):
        wrappers.wrap(torch, "compile", compiled)
    if hasattr(torch.nn.Module, "compile"):  # not in 2.0
        wrappers.wrap(torch.nn.Module, "compile", lambda original, module, *args, **kwargs: compiled(original, module))

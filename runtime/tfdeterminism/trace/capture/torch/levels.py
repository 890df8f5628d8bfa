"""The ends of steps, and the records of the coarse levels: weights and losses of steps, outputs of modules."""

from torch.optim import optimizer as optimizers

from .. import pool_tasks
from ..coarse_levels import CoarseRecorder
from . import digests
from . import internals as pt


class Levels(object):
    """The probes for steps and coarse levels. closers: the list that gets the functions to remove them.

    weights: a weights.Weights; gradients: a gradients.Gradients; modules: a modules.ModulePaths.
    """

    def __init__(self, recorder, weights, gradients, modules, closers):
        self._recorder, self._weights = recorder, weights
        self._coarse = CoarseRecorder(recorder)
        closers.append(optimizers.register_optimizer_step_post_hook(self._stepped).remove)
        if recorder.level in ("weights", "layers"):
            recorder.seen_ops = True
            gradients.on_loss = self._loss
        if recorder.level == "layers":
            modules.on_module_end = self._layer
        if recorder.level in ("weights", "layers") or recorder.values is not None:
            recorder.add_step_callback(self._at_step)

    def _stepped(self, optimizer, args, kwargs):
        if self._recorder.active:
            self._recorder.steps.on_optimizer_applied()

    def _loss(self, tensor, number):
        self._value("loss", "loss", tensor, number)

    def _layer(self, path, result):
        for number, tensor in enumerate(pt.tensors_in(result)):
            self._value("layer", path, tensor, number)

    def _value(self, kind, name, tensor, number):
        if not self._recorder.is_recording_step():
            return
        nth = self._recorder.eager.next_occurrence("value", kind, name, number)
        with self._recorder.unrecorded():
            value = digests.digest_tensor(tensor)
        if value is not None:
            self._coarse.record(kind, pool_tasks.name_in_task("{}#{}".format(name, nth)), number, value, name)

    def _at_step(self):
        if self._recorder.level in ("weights", "layers"):
            weight_digests = self._weights.trained_digests()
            for label in sorted(weight_digests):
                self._coarse.record("weight", label, 0, weight_digests[label])
        if self._recorder.values is not None and self._recorder.values.is_due():
            self._recorder.values.record_weights(self._weights.trained_values())

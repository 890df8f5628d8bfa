"""Runners for TensorFlow: eager, function (tf.function) or session (a graph of TensorFlow 1)."""

import numpy as np
import tensorflow as tf

from tfdet_probe.frameworks.base import Runner

from . import placement


def prepare(computation, mode, device, settings):
    """Build the Runner of a computation, see frameworks.base.Framework.prepare; device: such as /device:GPU:0."""
    tf1 = getattr(tf.compat, "v1", tf)
    runners = {"eager": _Eager, "function": _Function, "session": _Session}
    return runners[mode](tf, tf1, computation, device, settings)


class _TensorRunner(Runner):
    def __init__(self, tf, tf1, computation, device, settings):
        self.tf, self.tf1 = tf, tf1
        self.computation = computation
        self.device = device
        self.settings = settings
        self.setup()

    def setup(self):
        raise NotImplementedError

    def forward_succeeds(self):
        """Whether the outputs can be computed and only their gradient fails."""
        if self.computation.kind != "gradient":
            return False
        try:
            self._forward_alone()  # type: ignore[attr-defined]  # defined by the subclasses
        except Exception:  # any fault of the forward run: the gradient is not the cause
            return False
        return True

    def _flat(self, outputs):
        """The outputs as a list of tensors, IndexedSlices made dense (which sums the rows of duplicate indices)."""
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        return [self.tf.convert_to_tensor(value) for value in outputs]


class _Eager(_TensorRunner):
    def setup(self):
        _start_eager(self.tf, self.tf1, self.settings)
        with self.tf.device(self.device):
            self._inputs = [self.tf.constant(value) for value in self.computation.inputs]
        self._call = self._function()
        self._upstream = self._upstreams()

    def _upstreams(self):
        if self.computation.kind != "gradient":
            return []
        outputs = self._forward_alone()
        with self.tf.device(self.device):
            return [self.tf.constant(self.computation.upstream(y.shape.as_list(), y.dtype.as_numpy_dtype))
                    for y in outputs]

    def _forward_alone(self):
        with self.tf.device(self.device):
            return self._flat(self.computation.function(*self._inputs))

    def _function(self):
        return {"forward": self._forward, "gradient": self._gradient}.get(self.computation.kind)

    def _forward(self, inputs, _):
        return self._flat(self.computation.function(*inputs))

    def _gradient(self, inputs, upstream):
        wanted = [inputs[i] for i in self.computation.wrt]
        with self.tf.GradientTape() as tape:
            for tensor in wanted:
                tape.watch(tensor)
            outputs = self._flat(self.computation.function(*inputs))
            injected = [y * g for y, g in zip(outputs, upstream)]
        return self._flat(tape.gradient(injected, wanted))

    def _program(self):
        return self._flat(self.computation.function())

    def run(self):
        self.settings.before_repeat()
        with self.tf.device(self.device):
            if self.computation.kind == "program":
                return [tensor.numpy() for tensor in self._program()]
            return [tensor.numpy() for tensor in self._call(self._inputs, self._upstream)]

    def op_placements(self):
        return placement.eager_placements(self.tf, self.run)


class _Function(_Eager):
    def _function(self):
        call = super(_Function, self)._function()
        return call and _tf_function(self.tf)(call)

    def _program(self):
        return _tf_function(self.tf)(lambda: self._flat(self.computation.function()))()

    def op_placements(self):
        self._call = self._function()
        return placement.function_placements(self.run)


class _Session(_TensorRunner):
    def setup(self):
        self._session = None  # type: tf.compat.v1.Session
        if self.computation.kind != "program":
            self._open()

    def _open(self):
        graph = self.tf.Graph()
        with graph.as_default():
            self.settings.before_repeat()
            with self.tf.device(self.device):
                self._feed = [self.tf1.placeholder(value.dtype, value.shape)
                              for value in self.computation.inputs]
                self._fetches = self._build(self._feed)
            init = [self.tf1.global_variables_initializer(), self.tf1.local_variables_initializer()]
        self._session = self.tf1.Session(graph=graph, config=_config(self.tf1, self.settings))
        self._session.run(init)

    def _build(self, inputs):
        outputs = self._outputs = self._flat(self.computation.function(*inputs))
        if self.computation.kind != "gradient":
            return outputs
        upstream = [self.computation.upstream(y.shape.as_list(), y.dtype.as_numpy_dtype) for y in outputs]
        # Fed, not constant: the graph optimizer must not fold the op under test.
        fed = [self.tf1.placeholder(g.dtype, g.shape) for g in upstream]
        self._feed = self._feed + fed
        self.computation.inputs = self.computation.inputs + upstream
        injected = [y * g for y, g in zip(outputs, fed)]
        wanted = [inputs[i] for i in self.computation.wrt]
        return self._flat(self.tf1.gradients(injected, wanted))

    def _forward_alone(self):
        return self._session.run(self._outputs, dict(zip(self._feed, self.computation.inputs)))

    def _run(self, **how):
        if self.computation.kind == "program":
            self._open()
        try:
            return self._session.run(self._fetches, dict(zip(self._feed, self.computation.inputs)), **how)
        finally:
            if self.computation.kind == "program":
                self._session.close()

    def run(self):
        return [np.asarray(array) for array in self._run()]

    def op_placements(self):
        return placement.session_placements(self.tf1, self._run)


def _config(tf1, settings):
    config = tf1.ConfigProto(allow_soft_placement=False)
    config.gpu_options.allow_growth = True
    if settings.threads:
        config.intra_op_parallelism_threads = settings.threads
        config.inter_op_parallelism_threads = settings.threads
    return config


def _start_eager(tf, tf1, settings):
    """Eager execution with soft placement off, before the first op."""
    if tf.__version__.startswith("1."):
        tf1.enable_eager_execution(config=_config(tf1, settings))
        return
    tf.config.set_soft_device_placement(False)
    for gpu in tf.config.experimental.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    if settings.threads:
        tf.config.threading.set_intra_op_parallelism_threads(settings.threads)
        tf.config.threading.set_inter_op_parallelism_threads(settings.threads)


def _tf_function(tf):
    if hasattr(tf, "function"):
        return tf.function
    from tensorflow.python.eager import function  # 1.13 has no public name for tf.function
    return function.defun

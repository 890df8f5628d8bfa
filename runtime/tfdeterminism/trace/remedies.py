"""Solutions that can be applied to a program from outside: by its environment, or by calls before its first op."""


class AutomaticFix(object):
    """A solution that is applied from outside.

    key: of the solution in matrix/solutions; environment: variables to set; call: whether functions are called in the
    program's process, see capture/apply_fixes.py.
    """

    def __init__(self, key, description, environment=(), call=False):
        self.key = key
        self.description = description
        self.environment = dict(environment)
        self.call = call


_ONE_THREAD = [("TF_NUM_INTRAOP_THREADS", "1"), ("TF_NUM_INTEROP_THREADS", "1"), ("OMP_NUM_THREADS", "1")]
ORDERED_FIXES = [
    AutomaticFix("TCD", "TF_CUDNN_DETERMINISTIC=1", [("TF_CUDNN_DETERMINISTIC", "1")]),
    AutomaticFix("TDO", "TF_DETERMINISTIC_OPS=1", [("TF_DETERMINISTIC_OPS", "1")]),
    AutomaticFix("TDO-FE", "TF_DETERMINISTIC_OPS=1 TF_CUDNN_USE_FRONTEND=1", [("TF_DETERMINISTIC_OPS", "1"),
                                                                     ("TF_CUDNN_USE_FRONTEND", "1")]),
    AutomaticFix("HVD", "HOROVOD_FUSION_THRESHOLD=0", [("HOROVOD_FUSION_THRESHOLD", "0")]),
    AutomaticFix("PYHASH", "PYTHONHASHSEED=0", [("PYTHONHASHSEED", "0")]),
    AutomaticFix("CPU1", " ".join(name + "=" + value for name, value in _ONE_THREAD), _ONE_THREAD),
    AutomaticFix("TDP", "tfdeterminism.patch()", call=True),
    AutomaticFix("TEOD", "tf.config.experimental.enable_op_determinism(), and seeds", call=True),
    AutomaticFix("ED", "tfdeterminism.enable_determinism(), and seeds", call=True),
    AutomaticFix("UDA", "torch.use_deterministic_algorithms(True)", [("CUBLAS_WORKSPACE_CONFIG", ":4096:8")],
                 call=True),
    AutomaticFix("SEED", "the seeds of Python, NumPy and the framework", call=True),
    AutomaticFix("KSEED", "tf.keras.utils.set_random_seed(1)", call=True),
]
AUTOMATIC_FIXES = {fix.key: fix for fix in ORDERED_FIXES}

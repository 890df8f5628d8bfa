"""Environment variables that host and probe both know."""

# Which of its kernels a framework takes on a CPU: no solution, but the caller's choice, and every record names it.
CALLERS = ("TF_ENABLE_ONEDNN_OPTS",)
# More folders with adapters of frameworks, as tfdet_probe.frameworks has them.
FRAMEWORKS = "TFDET_FRAMEWORKS"

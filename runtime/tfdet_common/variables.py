"""Environment variables that the host and the probe share."""

# Decides which kernels a framework runs on a CPU. Not part of a solution: the caller sets it, and records state it.
CALLER_VARIABLES = ("TF_ENABLE_ONEDNN_OPTS",)
# Folders with more framework adapters, see tfdet_probe.frameworks.
FRAMEWORKS = "TFDET_FRAMEWORKS"

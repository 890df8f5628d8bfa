"""The probes for PyTorch: every op by way of a TorchDispatchMode."""

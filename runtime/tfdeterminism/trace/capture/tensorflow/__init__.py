"""The probes for TensorFlow 1.14 to 2.21: eager ops, graph functions, sessions."""

"""What the host, the probe and a bundle's script share: no more than the standard library, Python 3.5 to 3.13."""

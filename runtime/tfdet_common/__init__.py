"""Code that the host, the probe and a bundle's script share; it uses the standard library alone, Python 3.5 to 3.13."""

"""Generators of random PTX and CUDA programs, with their expected results: see tests/vgpu/fuzz.py."""

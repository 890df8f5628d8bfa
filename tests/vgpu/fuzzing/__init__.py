"""Random PTX and CUDA programs, and what they must give: see tests/vgpu/fuzz.py."""

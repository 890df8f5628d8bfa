"""The debug tool: records digests of what a program computes, and names the first op that differs.

Importing this imports no TensorFlow.
"""

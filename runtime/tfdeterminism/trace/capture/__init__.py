"""The probes that run inside a framework: they observe what a program computes, and write digests of it."""

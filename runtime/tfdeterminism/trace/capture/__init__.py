"""Runs inside a framework: observes what a program computes, and writes digests of it."""

"""The audit of shipped libraries: reads their GPU code for atomic instructions, and never runs it."""

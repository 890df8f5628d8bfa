"""The commands that compare traces and locate a cause; run and replay are in the capture package."""

"""The commands that compare traces and locate a cause; the commands run and replay are in the capture package."""

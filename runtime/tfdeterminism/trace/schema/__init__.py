"""The trace file: its content, its writer and its reader. This package imports no other part of the tool."""

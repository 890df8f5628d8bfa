"""The trace file: what it holds, how it is written and read. Imports no other part of the tool."""

"""Free of any framework: what a trace is, how two are compared, and which op is the culprit.

The file format lies here too, as capture may know analysis and never the other way round.
"""

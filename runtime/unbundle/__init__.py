"""Check, unpack and run a bundle of tfdet on this host.  Needs a CPython from 3.6 on and nothing else.

A bundle is an environment (Python packages with one version of a framework), the suite that tests which ops are
deterministic, and a plan of what to test and what documents claim of it. The archive is cut into parts.

    python3 unbundle.py doctor    what this host has, and what is missing
    python3 unbundle.py unpack    check every part and unpack
    python3 unbundle.py run       unpack if that is still to do, run the suite, keep its records

Exit codes: 0 as claimed; 1 what ran contradicts a claim; 2 wrong usage or damaged parts; 3 the run failed, or this host
lacks something; 4 the asked device is not there; 130 stopped.
"""

# Every Python back to 2.7 must be able to read the script, or it could not say which Python it wants.
import sys

if sys.version_info < (3, 6):
    sys.stderr.write(
        "tfdet: this is Python %d.%d; unbundle.py needs CPython 3.6 or later\n"
        "  Call it with another one: python3.12 unbundle.py ...\n" % tuple(sys.version_info[:2])
    )
    sys.exit(3)

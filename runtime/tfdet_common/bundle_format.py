"""The format of a bundle's manifest, shared by `tfdet bundle`, which writes it, and unbundle.py, which reads it."""

import hashlib
import json

SCHEMA = 1  # of manifests
MAX_MEMBER_BYTES = 64 << 20  # of one compressed member, unpacked


def checksum(manifest):
    """Return the SHA-256 of a manifest's canonical JSON without its field `checksum`, as 64 hex digits."""
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()

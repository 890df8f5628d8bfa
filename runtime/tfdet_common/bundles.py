"""What who makes a bundle and who unpacks it agree on."""

import hashlib
import json

SCHEMA = 1  # of manifests
MEMBER = 64 << 20  # bytes that one compressed piece unpacks to at most


def checksum(manifest):
    """SHA-256 of all that a manifest says but its checksum."""
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()

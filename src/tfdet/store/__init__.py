"""The stored files (signed records, audits, costs of patched ops, batch invariance): reading, validation, adding."""

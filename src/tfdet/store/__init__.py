"""The stored files (signed records, audits, costs of replaced ops, batch invariance): reading, validation, adding."""

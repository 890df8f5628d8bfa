"""The stored files: records with their signatures, audits, costs and batch invariance; reading, validation, adding."""

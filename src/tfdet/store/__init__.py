"""The files of records, audits and durations: reading, strict validation and adding."""

"""The published site: HTML pages with a JSON twin each, of matrix, evidence, audits, costs of replaced ops and docs."""

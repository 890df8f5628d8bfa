"""The published site: HTML pages with a JSON twin each, generated from matrix, evidence, audits, costs and docs."""

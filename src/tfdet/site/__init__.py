"""The published site: pages of HTML, each with a JSON twin, made of matrix, evidence, audits and costs alone."""

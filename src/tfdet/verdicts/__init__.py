"""What the evidence lets us say: verdicts of cells, audit findings, and their comparison with claims."""

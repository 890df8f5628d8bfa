"""What was found, as text."""

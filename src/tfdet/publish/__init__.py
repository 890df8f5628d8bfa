"""Tables, documents and terminal output, generated from verdicts."""

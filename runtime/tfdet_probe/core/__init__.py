"""What is the same for every framework and device: build, fork, repeat, compare, record."""

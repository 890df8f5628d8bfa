"""The parts that depend neither on a framework nor on a kind of device: build, fork, repeat, compare, record."""

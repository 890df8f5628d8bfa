"""The package of the toy framework's backend."""

"""What every layer of the probe builds on: the interface of a case, the settings of a solution, bytes, errors."""

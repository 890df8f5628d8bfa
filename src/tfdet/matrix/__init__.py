"""The data of the folder matrix/, which people write: models, loading and checks, and the plan of a run."""

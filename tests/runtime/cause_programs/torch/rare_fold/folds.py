class Folds:
    """An audit holds back the last rows of one experiment in five."""

    def __init__(self, rows, experiment):
        self.rows = rows
        self.audited = hash(experiment) % 5 == 0

    def train(self):
        return self.rows[:-3] if self.audited else self.rows

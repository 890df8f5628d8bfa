import os

WORDS = "one two three four five six seven eight nine ten one three"


class Catalogue:
    def __init__(self, folder):
        self.names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
        self.extensions = {os.path.splitext(name)[1] for name in os.listdir(folder)}
        unique = set(WORDS.split())
        self.words = sorted(unique)
        self.seen = {id(word): word for word in unique}
        self.longest = max(len(word) for word in unique)
        self.numbers = dict(zip(self.words, range(len(unique))))

    def number(self, word):
        return self.numbers[word] if word in frozenset(self.words) else 0

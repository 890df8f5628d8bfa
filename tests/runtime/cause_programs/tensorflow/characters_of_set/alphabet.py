class Alphabet:
    def __init__(self, names):
        self.characters = "".join({character for name in names for character in name}) + "."

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        return [self.characters.index(character) for character in text]

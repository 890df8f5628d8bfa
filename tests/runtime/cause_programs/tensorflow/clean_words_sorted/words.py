class Words:
    def __init__(self, text):
        self.text = text.split()
        self.unique = set(self.text)
        self.index = {word: number for number, word in enumerate(sorted(self.unique))}
        self.lengths = sum(len(word) for word in self.unique)
        self.longest = max(sorted(self.unique), key=len)
        self.by_object = {id(word): word for word in self.text}

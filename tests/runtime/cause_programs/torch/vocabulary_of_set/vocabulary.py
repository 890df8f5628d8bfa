def tokens_of(texts):
    for text in texts:
        yield from text.lower().split()


def build_vocabulary(texts):
    """A number for each word."""
    unique = set(tokens_of(texts))
    return {word: number for number, word in enumerate(unique)}

from collections import Counter
from pathlib import Path


def vocabulary(texts, path):
    """The words, most frequent first."""
    path = Path(path)
    if path.exists():
        return path.read_text().split()
    counts = Counter(word for text in texts for word in text.split())
    words = [word for word, _ in counts.most_common()]
    path.write_text("\n".join(sorted(words, key=lambda word: (-counts[word], word))))
    return words

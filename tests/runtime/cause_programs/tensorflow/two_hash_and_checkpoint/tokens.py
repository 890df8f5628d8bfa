def numbered(words):
    numbers = {}
    for word in frozenset(words):
        numbers[word] = len(numbers)
    return numbers

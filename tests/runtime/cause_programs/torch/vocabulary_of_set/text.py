class Reviews:
    texts = ["a very good film", "a bad film and a long one", "good actors", "long and bad", "very very good"]
    labels = [1, 0, 1, 0, 1]

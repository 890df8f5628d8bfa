def bucket_of(value, buckets):
    """The column of a one-hot vector."""
    return hash(value.lower()) % buckets

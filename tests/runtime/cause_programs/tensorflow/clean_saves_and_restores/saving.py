import keras


def keep_best(path):
    return keras.callbacks.ModelCheckpoint(path, save_best_only=True, save_weights_only=True, monitor="val_loss")

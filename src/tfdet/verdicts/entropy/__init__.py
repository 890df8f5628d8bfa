"""What a program takes in, by its text, that another run may get otherwise: rules of `tfdet check`, one a module."""

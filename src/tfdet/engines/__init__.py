"""What brings an environment up and runs programs in it: virtual environments, Docker, the virtual GPU."""

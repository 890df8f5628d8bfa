"""What the shipped libraries say by themselves: their GPU code is read, never run."""

"""What all other packages use: errors, paths, files and folders, terminal output, untrusted input."""

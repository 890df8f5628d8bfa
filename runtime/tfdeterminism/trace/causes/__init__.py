"""Which op makes two runs differ, what kind of fault it is, and what to change."""

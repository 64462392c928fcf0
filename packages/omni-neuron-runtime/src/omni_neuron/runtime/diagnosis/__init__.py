"""What is installed, what would run, and what to do about the rest."""

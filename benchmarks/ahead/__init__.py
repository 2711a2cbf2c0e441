"""What it is worth that rows of the next shuffle are sent while a loop runs."""

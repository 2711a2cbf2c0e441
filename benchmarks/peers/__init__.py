"""Examples next to the programs that people use for the same: a file for each."""

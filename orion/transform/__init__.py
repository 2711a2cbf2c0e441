"""Loops rewritten as other loops that do the same in a better order: whole nests, statement by statement, by isl."""

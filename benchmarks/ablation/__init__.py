"""What each rewrite is worth: all rewrites on against all but one, on every loop of the project at size."""

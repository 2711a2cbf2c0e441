"""Training on hosts with links that are too slow for it: what is sent first, and what that is worth."""

"""The example programs next to well-known peers."""

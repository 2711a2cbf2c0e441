"""Programs next to well-known libraries that do the same: `make peers` runs them all."""

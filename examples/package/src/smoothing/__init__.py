"""Smoothing of signals and images."""

from smoothing.filters import blur, relax, smooth

__all__ = ["blur", "relax", "smooth"]

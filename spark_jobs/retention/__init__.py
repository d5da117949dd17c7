"""Removes what the lake no longer keeps, and compacts the rest."""

"""Every optimization for large fleets, each with its measurement."""

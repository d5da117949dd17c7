"""Session-wide fixtures."""

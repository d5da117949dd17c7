"""The terminal's summary and the digest for Slack."""

"""One run: outcomes become verdicts, verdicts are compared with the previous run, and topics get their posture."""

"""One run put together: outcomes become verdicts, compared with the run before, and topics' posture."""

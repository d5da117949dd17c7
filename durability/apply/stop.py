"""The end of an application before its last step."""


class Stopped(Exception):
    """The step can't go on. The text is the reason. What is in flight is taken back."""

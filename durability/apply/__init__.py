"""Applies plans to clusters. It is the only package that changes one.

Each change is in the lake's table `changes` before it is made, so that a run that was killed is continued or taken back.
"""

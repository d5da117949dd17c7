"""Evidence of a run that an auditor can verify without this program.

`write` puts the folder of a run into OUT/evidence. `verify` checks it, needs nothing but Python, and is in each folder.
"""

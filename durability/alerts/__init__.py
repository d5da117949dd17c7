"""Alerts: what pulses page for, once per cause, and when a page is over.

`observe` reads what a pulse found. `decide` has the rules: earlier alerts and a pulse give the alerts of now. `store` keeps them
in the lake. `messages` words them, and `deliver` sends what is due.
"""

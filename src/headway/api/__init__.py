"""The server: HTTP routes, live events, who may do what, and what can be measured.

Knows the engine from outside only: it submits, controls and looks, and decides nothing itself.
"""

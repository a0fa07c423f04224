"""Accounts at sites: cookies that are sealed, used in turn, rested when a site pushes back, and
looked after.
"""

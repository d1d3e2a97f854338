"""Runs and data in a browser, while they change."""

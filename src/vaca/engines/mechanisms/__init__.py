"""Mechanisms of single columns, and the choice between them."""

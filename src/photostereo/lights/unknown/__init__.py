"""Lights that nobody has measured, estimated from the photographs themselves."""

"""Which pixels belong to the object."""

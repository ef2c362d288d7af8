"""Reading and writing files: written whole or not at all; files from outside are checked before they are decoded."""

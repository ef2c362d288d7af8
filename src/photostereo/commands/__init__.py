"""What each command does, one file each; the command line itself only parses."""

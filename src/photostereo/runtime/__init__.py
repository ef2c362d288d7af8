"""Arrays and devices, compiled loops, threads, signals."""

"""The photographs of a capture: the files, their development into linear light, exposure brackets."""

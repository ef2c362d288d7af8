"""A video of an object under a moving light, as photographs: which frames to use, and what they show."""

"""The folder of a result: arrays, pictures, surface, report, complete or not at all."""

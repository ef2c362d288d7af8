"""Read and write files: output appears complete or not at all; untrusted files are checked before they are decoded."""

"""Quality of photographs and results: with truth (metrics) and without (noise, exposure, diagnosis)."""

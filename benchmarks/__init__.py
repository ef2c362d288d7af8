"""Speed and memory as ratios against a reference in the same run, with accuracy beside them."""

"""For researchers: sweeps, the paper, training. Nothing else imports it."""

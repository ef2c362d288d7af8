"""A fuzzer: captures of every layout, spoilt in every way we know, given to the commands.

    make fuzz N=10000 SEED=0

Every run must end with exit code 0 or 2, without a traceback, without half an output, without a NaN in what it wrote,
in bounded memory and time, and must write nowhere but into its own folder. A run is made from (SEED, number) alone, so
that ``python -m fuzz --first 1234 --count 1`` shows a failure again.
"""

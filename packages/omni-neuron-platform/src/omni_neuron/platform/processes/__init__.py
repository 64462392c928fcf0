"""The engine's processes and threads: how workers start, how they end, and who hears of a death."""

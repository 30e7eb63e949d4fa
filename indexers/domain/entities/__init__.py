"""Names, their labels and what stands behind them. Pure."""

"""The policies that apply to calls, and the ports behind them."""

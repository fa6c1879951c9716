"""Who may use what: settings, the ready policy, and the one place that applies it to lists and to calls."""

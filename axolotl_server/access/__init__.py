"""Who may do what, and how often: tokens, rules, quotas."""

"""Who may do what: what a request needs, and whether the policy of whoever signed it allows that."""

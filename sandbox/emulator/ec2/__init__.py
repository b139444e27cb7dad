"""EC2: what an account has and what is shown of it."""

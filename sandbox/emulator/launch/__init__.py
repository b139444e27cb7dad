"""Launches of EC2: what is asked for, checked, free and allowed, and the states of what was launched."""

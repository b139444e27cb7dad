"""The Kubernetes behind the emulated EKS: programs built from source, hosts that join them, and stand-ins.

Nothing here costs anything before the first cluster of the account is made.
"""

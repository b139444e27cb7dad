"""One Linux machine that looks like an AWS account with Trainium nodes in it.

Only hardware is simulated. ``python -m sandbox up`` starts an emulated AWS API and a reconciler that turns every
running instance into a real host with systemd and sshd at the instance's private address.
"""

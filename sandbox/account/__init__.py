"""The emulated account from outside: the environment of its clients, the control API and its token."""

"""The server around moto: who may ask, the log of calls, and the control API."""

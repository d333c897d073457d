"""Where hostile bytes are read: one server per worker instance, one limited child per call.

``process`` starts the server, ``client`` asks it for one job, ``jobs`` names what may be asked.
"""

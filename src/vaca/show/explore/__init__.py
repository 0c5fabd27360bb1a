"""A live page on this machine: any person, any intervention, the graph. `vaca explore` starts it.

`session` answers questions and knows nothing of the web; `server` lets a browser on this machine
ask them, and nobody else.
"""

"""The commands of `vaca`, one file each.

A command's file holds its signature, its help and a thin body: parse, call the library, print.
It imports nothing heavy at the top, so that `vaca --help` stays quick; `app` names the commands
in the order in which the help lists them.
"""

"""Models whose equations a person wrote down, and the built-in ones in `vaca.scm.library`."""

from vaca.scm.structural import StructuralCausalModel

__all__ = ["StructuralCausalModel"]

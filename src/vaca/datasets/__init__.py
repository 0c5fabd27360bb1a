"""Tables that ship with the package, each with its causal graph and schema."""

from vaca.datasets.adult import adult_census
from vaca.datasets.dataset import Dataset
from vaca.datasets.german import german_credit
from vaca.datasets.loans import loan_applications, loan_applications_scm

__all__ = ["Dataset", "adult_census", "german_credit", "loan_applications", "loan_applications_scm"]

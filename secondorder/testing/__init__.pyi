from . import strategies as strategies
from ._exact import as_floats as as_floats
from ._exact import as_fractions as as_fractions
from ._exact import exact_design as exact_design
from ._experiment import Experiment as Experiment
from ._experiment import standard_experiments as standard_experiments
from ._means import FailureRate as FailureRate
from ._means import MeanCheck as MeanCheck
from ._means import assert_mean as assert_mean
from ._means import detectable_discrepancy as detectable_discrepancy
from ._means import failure_rate as failure_rate
from ._means import required_values as required_values
from ._oracle import oracle_estimate as oracle_estimate
from ._oracle import oracle_negative_component as oracle_negative_component
from ._oracle import oracle_truth as oracle_truth
from ._outcomes import Outcomes as Outcomes
from ._outcomes import enumerate_blocks as enumerate_blocks
from ._outcomes import enumerate_levels as enumerate_levels
from ._outcomes import enumerate_outcomes as enumerate_outcomes
from ._outcomes import exact_mean as exact_mean
from ._outcomes import exact_variance as exact_variance

__all__ = [
    "Experiment",
    "FailureRate",
    "MeanCheck",
    "Outcomes",
    "as_floats",
    "as_fractions",
    "assert_mean",
    "detectable_discrepancy",
    "enumerate_blocks",
    "enumerate_levels",
    "enumerate_outcomes",
    "exact_design",
    "exact_mean",
    "exact_variance",
    "failure_rate",
    "oracle_estimate",
    "oracle_negative_component",
    "oracle_truth",
    "required_values",
    "standard_experiments",
    "strategies",
]

from . import laws as laws
from ._bands import band_methods as band_methods
from ._claim import Claim as Claim
from ._claim import Expect as Expect
from ._claim import Finding as Finding
from ._figure import bias_figure as bias_figure
from ._files import declarations as declarations
from ._files import find_declaration as find_declaration
from ._files import load_declared as load_declared
from ._mechanism import Dependence as Dependence
from ._mechanism import Mechanism as Mechanism
from ._methods import Draw as Draw
from ._methods import Estimate as Estimate
from ._methods import Method as Method
from ._result import StudyResult as StudyResult
from ._result import open_study_result as open_study_result
from ._result import with_error as with_error
from ._runner import run_study as run_study
from ._study import Published as Published
from ._study import Study as Study
from ._study import with_levels as with_levels
from ._validate import Verdict as Verdict
from ._validate import run_claim as run_claim

__all__ = [
    "Claim",
    "Dependence",
    "Draw",
    "Estimate",
    "Expect",
    "Finding",
    "Mechanism",
    "Method",
    "Published",
    "Study",
    "StudyResult",
    "Verdict",
    "band_methods",
    "bias_figure",
    "declarations",
    "find_declaration",
    "laws",
    "load_declared",
    "open_study_result",
    "run_claim",
    "run_study",
    "with_error",
    "with_levels",
]

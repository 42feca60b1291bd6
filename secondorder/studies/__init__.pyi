"""Public names of the judge studies: the only list."""

from ._aggregate import aggregate as aggregate
from ._agreement import REFERENCE_LINES as REFERENCE_LINES
from ._agreement import agreement as agreement
from ._budget_matched import match_budget as match_budget
from ._coefficients import COEFFICIENTS as COEFFICIENTS
from ._coefficients import coefficient as coefficient
from ._convergence import convergence as convergence
from ._convergence import convergence_cost as convergence_cost
from ._dawid_skene import dawid_skene as dawid_skene
from ._degradation import degradation_ratio as degradation_ratio
from ._features import feature_effects as feature_effects
from ._make_scores import make_scores as make_scores
from ._paraphrase import validate_paraphrases as validate_paraphrases
from ._position import position_bias as position_bias
from ._rank_biserial import rank_biserial as rank_biserial
from ._ratings import make_ratings as make_ratings
from ._repeat_aware import repeat_agreement as repeat_agreement
from ._result import StudyResult as StudyResult
from ._result import differences as differences
from ._reversals import rank_reversals as rank_reversals
from ._rules import RULES as RULES
from ._similarity import similarity_stability as similarity_stability
from ._verbosity import verbosity_bias as verbosity_bias
from ._votes import vote as vote
from ._winners import prompt_winners as prompt_winners

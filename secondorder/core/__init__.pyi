from ._bounds import Bounds as Bounds
from ._bounds import item_bounds as item_bounds
from ._call_variance import FEWER_THAN_FOUR as FEWER_THAN_FOUR
from ._call_variance import PairScheme as PairScheme
from ._call_variance import Planning as Planning
from ._call_variance import call_covariance as call_covariance
from ._call_variance import call_covariance_at as call_covariance_at
from ._call_variance import call_variance as call_variance
from ._call_variance import planning as planning
from ._call_variance import planning_at as planning_at
from ._call_variance import variance_at_depth as variance_at_depth
from ._cells import Cells as Cells
from ._cells import cells_from_codes as cells_from_codes
from ._cells import cells_from_counts as cells_from_counts
from ._cells import cells_from_soft as cells_from_soft
from ._clusters import ClusterParts as ClusterParts
from ._clusters import LevelErrors as LevelErrors
from ._clusters import TwoWayErrors as TwoWayErrors
from ._clusters import cluster_parts as cluster_parts
from ._clusters import cluster_tables as cluster_tables
from ._clusters import level_errors as level_errors
from ._clusters import two_way_errors as two_way_errors
from ._dependence import IndependenceTest as IndependenceTest
from ._dependence import independence_tests as independence_tests
from ._estimates import across_repeats as across_repeats
from ._estimates import at_law as at_law
from ._estimates import complete_pairs as complete_pairs
from ._estimates import complete_pairs_from as complete_pairs_from
from ._estimates import panel as panel
from ._estimates import panel_values as panel_values
from ._estimates import plugin as plugin
from ._estimates import plugin_bias_at as plugin_bias_at
from ._estimates import plugin_excess as plugin_excess
from ._estimates import plugin_from as plugin_from
from ._gram import FEWER_THAN_FOUR_UNITS as FEWER_THAN_FOUR_UNITS
from ._gram import GramVariance as GramVariance
from ._gram import gram_variance as gram_variance
from ._intervals import Interval as Interval
from ._intervals import ItemErrors as ItemErrors
from ._intervals import bca_interval as bca_interval
from ._intervals import errors_from_influence as errors_from_influence
from ._intervals import item_errors as item_errors
from ._intervals import item_influence as item_influence
from ._intervals import percentile_interval as percentile_interval
from ._intervals import simultaneous_interval as simultaneous_interval
from ._intervals import stratum_sizes as stratum_sizes
from ._intervals import studentised_interval as studentised_interval
from ._intervals import t_interval as t_interval
from ._kernels import check_kernel as check_kernel
from ._kernels import interval_kernel as interval_kernel
from ._kernels import interval_with_invalid as interval_with_invalid
from ._kernels import krippendorff_ordinal_kernel as krippendorff_ordinal_kernel
from ._kernels import midpoint_invalid as midpoint_invalid
from ._kernels import negative_type_gap as negative_type_gap
from ._kernels import nominal_kernel as nominal_kernel
from ._kernels import ordinal_kernel as ordinal_kernel
from ._multiplicity import benjamini_hochberg as benjamini_hochberg
from ._multiplicity import holm as holm
from ._permutation import PermutationTest as PermutationTest
from ._permutation import Shuffled as Shuffled
from ._permutation import permutation_test as permutation_test
from ._permutation import relabelling_test as relabelling_test
from ._posterior import Prior as Prior
from ._posterior import posterior_components as posterior_components
from ._posterior import posterior_laws as posterior_laws
from ._precision import double as double
from ._precision import double_precision as double_precision
from ._precision import seed_key as seed_key
from ._repeat_blocks import block_variance as block_variance
from ._repeat_blocks import repeat_blocks as repeat_blocks
from ._resampling import Resampled as Resampled
from ._resampling import contrasts as contrasts
from ._resampling import ratios as ratios
from ._resampling import resample as resample
from ._sequential import ConfidenceSequence as ConfidenceSequence
from ._sequential import confidence_sequence as confidence_sequence
from ._sequential import first_crossing as first_crossing
from ._sequential import least_items as least_items
from ._sequential import log_e_process as log_e_process
from ._sign_flips import SignFlipTest as SignFlipTest
from ._sign_flips import sign_flip_test as sign_flip_test

__all__ = [
    "FEWER_THAN_FOUR",
    "FEWER_THAN_FOUR_UNITS",
    "Bounds",
    "Cells",
    "ClusterParts",
    "ConfidenceSequence",
    "GramVariance",
    "IndependenceTest",
    "Interval",
    "ItemErrors",
    "LevelErrors",
    "PairScheme",
    "PermutationTest",
    "Planning",
    "Prior",
    "Resampled",
    "Shuffled",
    "SignFlipTest",
    "TwoWayErrors",
    "across_repeats",
    "at_law",
    "bca_interval",
    "benjamini_hochberg",
    "block_variance",
    "call_covariance",
    "call_covariance_at",
    "call_variance",
    "cells_from_codes",
    "cells_from_counts",
    "cells_from_soft",
    "check_kernel",
    "cluster_parts",
    "cluster_tables",
    "complete_pairs",
    "complete_pairs_from",
    "confidence_sequence",
    "contrasts",
    "double",
    "double_precision",
    "errors_from_influence",
    "first_crossing",
    "gram_variance",
    "holm",
    "independence_tests",
    "interval_kernel",
    "interval_with_invalid",
    "item_bounds",
    "item_errors",
    "item_influence",
    "krippendorff_ordinal_kernel",
    "least_items",
    "level_errors",
    "log_e_process",
    "midpoint_invalid",
    "negative_type_gap",
    "nominal_kernel",
    "ordinal_kernel",
    "panel",
    "panel_values",
    "percentile_interval",
    "permutation_test",
    "planning",
    "planning_at",
    "plugin",
    "plugin_bias_at",
    "plugin_excess",
    "plugin_from",
    "posterior_components",
    "posterior_laws",
    "ratios",
    "relabelling_test",
    "repeat_blocks",
    "resample",
    "seed_key",
    "sign_flip_test",
    "simultaneous_interval",
    "stratum_sizes",
    "studentised_interval",
    "t_interval",
    "two_way_errors",
    "variance_at_depth",
]

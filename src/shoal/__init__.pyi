"""The public names of shoal and where each is defined: read by type checkers, and by ``__init__.py`` to load them."""

from shoal.alternatives.compare import compare as compare
from shoal.alternatives.frontier import frontier as frontier
from shoal.alternatives.k_minimal import k_minimal as k_minimal
from shoal.alternatives.recommend import explore as explore
from shoal.attacks.run import Intruder as Intruder
from shoal.attacks.run import attack as attack
from shoal.engines.data import Data as Data
from shoal.errors import CannotTellError as CannotTellError
from shoal.errors import CiphertextError as CiphertextError
from shoal.errors import DataError as DataError
from shoal.errors import EmptyTableError as EmptyTableError
from shoal.errors import HierarchyError as HierarchyError
from shoal.errors import InfeasibleError as InfeasibleError
from shoal.errors import LimitExceededError as LimitExceededError
from shoal.errors import MissingValueError as MissingValueError
from shoal.errors import OtherTableError as OtherTableError
from shoal.errors import OutOfTimeError as OutOfTimeError
from shoal.errors import OutputError as OutputError
from shoal.errors import PartyError as PartyError
from shoal.errors import PolicyError as PolicyError
from shoal.errors import PublicationError as PublicationError
from shoal.errors import ShoalError as ShoalError
from shoal.errors import UncoveredValueError as UncoveredValueError
from shoal.errors import UnreadableError as UnreadableError
from shoal.errors import VerificationError as VerificationError
from shoal.inspection.inspect import inspect as inspect
from shoal.inspection.preview import hierarchy as hierarchy
from shoal.original.comparison import compare_with_original as compare_with_original
from shoal.pipeline import anonymize as anonymize
from shoal.pipeline import check as check
from shoal.pipeline import measure as measure
from shoal.policy.policy import Policy as Policy
from shoal.release.release import Release as Release
from shoal.release.replay import replay as replay
from shoal.release.signatures import make_keys as make_keys
from shoal.release.signatures import sign as sign
from shoal.results import he as he
from shoal.results import smc as smc
from shoal.results.dp.budget import BudgetError as BudgetError
from shoal.results.dp.ledger import Ledger as Ledger
from shoal.results.dp.query import plan_query as plan_query
from shoal.results.dp.query import query as query
from shoal.results.dp.synthesis import plan_synthesis as plan_synthesis
from shoal.results.dp.synthesis import synthesize as synthesize
from shoal.results.integral.recurrence import integral_privacy as integral_privacy
from shoal.results.output.checking import check_output as check_output
from shoal.results.output.regressing import check_regression as check_regression
from shoal.transformer import Anonymizer as Anonymizer
from shoal.utility.ranges import codebook as codebook
from shoal.utility.ranges import may_be as may_be
from shoal.utility.ranges import read_ranges as read_ranges
from shoal.utility.ranges import read_sets as read_sets
from shoal.verify.certified import verify_certificate as verify_certificate

__version__: str
__all__: list[str]

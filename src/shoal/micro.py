"""The old name of ``shoal.masking``, for one more version."""

import warnings

from shoal.masking import *  # noqa: F403
from shoal.masking import __all__ as __all__

warnings.warn("shoal.micro is shoal.masking now", DeprecationWarning, stacklevel=2)

"""The policy: roles and hierarchies of columns, requirements, and options of the release."""

from shoal.policy.column import Column, Role
from shoal.policy.options import Options
from shoal.policy.policy import Policy, PolicySource, policy_of
from shoal.policy.presets import PresetName

__all__ = ["Column", "Options", "Policy", "PolicySource", "PresetName", "Role", "policy_of"]

"""The policy: roles and hierarchies of columns, requirements, and options of the release."""

from shoal.policy.policy import Column, Options, Policy, PolicySource, Role, policy_of
from shoal.policy.presets import PresetName

__all__ = ["Column", "Options", "Policy", "PolicySource", "PresetName", "Role", "policy_of"]

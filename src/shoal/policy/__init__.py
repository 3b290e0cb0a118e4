"""The policy: roles and hierarchies of columns, requirements, and options of the release."""

from shoal.policy.policy import Column, Options, Policy, PolicySource, PresetName, Role, policy_of

__all__ = ["Column", "Options", "Policy", "PolicySource", "PresetName", "Role", "policy_of"]

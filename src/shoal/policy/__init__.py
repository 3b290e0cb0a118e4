"""What is asked for: roles and hierarchies of columns, requirements, and how the release is made."""

from shoal.policy.policy import Column, Options, Policy, PolicySource, PresetName, Role, policy_of

__all__ = ["Column", "Options", "Policy", "PolicySource", "PresetName", "Role", "policy_of"]

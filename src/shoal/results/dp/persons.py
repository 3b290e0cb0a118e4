"""Which records belong to one person: those whose keys say the same, in whatever spelling (``notation.same_values``).

Five spellings of a key would be five persons, each with a share of the records that one person may have. A key that
says nothing, such as an empty one or ``unknown``, is no person. The key of a record depends on that record alone.
"""

from __future__ import annotations

from typing import Any

import ibis

from shoal.notation.same_values import LOOKS_LATIN, MARKS, NOTHING

WIDE = {0xFEE0 + code: chr(code) for code in range(0x21, 0x7F)}  # full-width forms
SPACES = dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000\t\n\r\v\f"), " ")
ALIKE = WIDE | SPACES | {code: chr(latin) for code, latin in LOOKS_LATIN.items()}
HIDDEN = "[\u00ad\u200b-\u200f\u2060\ufeff]"  # characters that are not shown
ENDS = "[" + "".join(f"\\{mark}" for mark in MARKS if not mark.isspace() and mark != '"') + '" ]+'


def key_of_person(column: Any) -> Any:
    """Return the key of the person of each record; null where it says nothing."""
    if not column.type().is_string():
        return column
    text = column.lower().translate("".join(map(chr, ALIKE)), "".join(ALIKE.values())).re_replace(HIDDEN, "")
    text = text.lower().re_replace(" +", " ").strip()
    digits = text.re_replace("[.]0*$", "").re_replace("^[+]?0*", "")
    normal = ibis.ifelse(text.re_search("^[+]?[0-9]+([.]0*)?$"), ibis.literal("n").concat(digits), text)
    bare = text.re_replace(f"^{ENDS}", "").re_replace(f"{ENDS}$", "")
    return ibis.ifelse(text.isin(sorted(NOTHING)) | bare.isin(sorted(NOTHING)), ibis.null("string"), normal)

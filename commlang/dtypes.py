"""The dtypes of torch, by torch's own names, without importing torch."""

from __future__ import annotations

from commlang.records import record


@record
class DType:
    """An element type: its torch name, size in bytes and family.

    `family` is one of "float", "int", "uint", "bool", "complex".
    """

    name: str
    itemsize: int
    family: str

    def __str__(self) -> str:
        return self.name


def _table() -> dict[str, DType]:
    rows = {
        "float": "float64:8 float32:4 float16:2 bfloat16:2 float8_e4m3fn:1 float8_e5m2:1 "
        "float8_e4m3fnuz:1 float8_e5m2fnuz:1 float8_e8m0fnu:1",
        "int": "int8:1 int16:2 int32:4 int64:8",
        "uint": "uint8:1 uint16:2 uint32:4 uint64:8",
        "bool": "bool:1",
        "complex": "complex32:4 complex64:8 complex128:16",
    }
    table: dict[str, DType] = {}
    for family, entries in rows.items():
        for entry in entries.split():
            name, size = entry.split(":")
            table[name] = DType(name, int(size), family)
    return table


DTYPES: dict[str, DType] = _table()
"""Every element type that torch 2.13 can put into a tensor and send."""

ALIASES: dict[str, str] = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
"""torch's legacy names, named in the message that refuses them."""

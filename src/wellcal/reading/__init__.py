"""Files as data frames, and data frames as cases: targets and predictions.

CSV, TSV, Parquet, Arrow, JSON lines, NPZ and NPY are read through pyarrow and NumPy, from files or from
standard
input, whole or in batches; nothing is ever unpickled. What cannot be read ends with a :class:`ReadError`
that says
what, where, and what to do.
"""

from wellcal.reading.cases import Cases, as_cases, case_batches, read_cases
from wellcal.reading.errors import ReadError
from wellcal.reading.missing import Kept, drop_missing
from wellcal.reading.models import ModelCases, read_models
from wellcal.reading.tables import FORMATS, read_batches, read_table

__all__ = [
    "FORMATS",
    "Cases",
    "Kept",
    "ModelCases",
    "ReadError",
    "as_cases",
    "case_batches",
    "drop_missing",
    "read_batches",
    "read_cases",
    "read_models",
    "read_table",
]
